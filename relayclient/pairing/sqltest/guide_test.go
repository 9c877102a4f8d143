package sqltest_test

import (
	"context"
	"database/sql"
	"os"
	"testing"

	"github.com/sealpush/sealpush/relayclient/pairing"
)

// What docs/fleet.md says to write.
func TestFleetGuide(t *testing.T) {
	t.Setenv("DATABASE_URL", newPostgresSchema(t))
	if err := useRegistry(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func useRegistry(ctx context.Context) error {
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	store, err := pairing.NewSQL(db, pairing.PostgreSQL)
	if err != nil {
		return err
	}
	registry, err := pairing.NewRegistry(store)
	if err != nil {
		return err
	}

	defer db.Close()
	_, err = registry.Devices(ctx)
	return err
}
