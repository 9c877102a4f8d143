package sqltest_test

import (
	"crypto/rand"
	"database/sql"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relay/webpush"
)

func execute(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func keep([]byte) ([]byte, time.Time) { return []byte("a record"), time.Now().Add(time.Hour) }

// Mallory may create tables in the relay's schema. A trigger of hers would run as
// the relay.
func TestTablesOfAnotherRoleAreNotUsed(t *testing.T) {
	dsn := newPostgresSchema(t)
	admin, _ := open(t, databases["PostgreSQL"], dsn)
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("SEALPUSH_TEST_POSTGRES is not a URL")
	}
	schema := u.Query().Get("search_path")
	as := func(path string) (role string, db *sql.DB) {
		t.Helper()
		role = "role_" + strings.ToLower(rand.Text())
		execute(t, admin, `CREATE ROLE `+role)
		t.Cleanup(func() {
			if _, err := admin.Exec(`DROP OWNED BY ` + role + `; DROP ROLE ` + role); err != nil {
				t.Error(err)
			}
		})
		execute(t, admin, `GRANT USAGE, CREATE ON SCHEMA `+schema+` TO `+role)
		login, query := *u, u.Query()
		query.Set("role", role)
		query.Set("search_path", path)
		login.RawQuery = query.Encode()
		db, _ = open(t, databases["PostgreSQL"], login.String())
		return role, db
	}
	malloryName, mallory := as(schema)
	_, daemon := as(schema)
	execute(t, mallory, `CREATE TABLE caught (name TEXT); GRANT ALL ON caught TO PUBLIC`)
	execute(t, mallory, `CREATE FUNCTION catch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO `+schema+`.caught VALUES (current_user); RETURN NEW; END $$`)
	execute(t, mallory, `CREATE TABLE sealpush_relay_devices (device TEXT PRIMARY KEY, record BYTEA NOT NULL, forget_at BIGINT NOT NULL)`)
	execute(t, mallory, `CREATE TABLE sealpush_relay_subscriptions (device TEXT PRIMARY KEY, secret_hash TEXT NOT NULL, endpoint TEXT NOT NULL,
		p256dh TEXT NOT NULL, auth TEXT NOT NULL, updated_at BIGINT NOT NULL)`)
	execute(t, mallory, `CREATE TABLE sealpush_relay_settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)`)
	for _, table := range []string{"devices", "subscriptions", "settings"} {
		execute(t, mallory, `CREATE TRIGGER catch BEFORE INSERT ON sealpush_relay_`+table+` FOR EACH ROW EXECUTE FUNCTION `+schema+`.catch()`)
		execute(t, mallory, `GRANT ALL ON sealpush_relay_`+table+` TO PUBLIC`)
	}

	use := func(db *sql.DB) map[string]error {
		t.Helper()
		state, err := relay.NewSQLState(db, relay.PostgreSQL)
		if err != nil {
			t.Fatal(err)
		}
		store, err := webpush.NewSQLStore(db, relay.PostgreSQL)
		if err != nil {
			t.Fatal(err)
		}
		_, keyErr := store.Key(t.Context())
		return map[string]error{
			"Update": state.Update(t.Context(), time.Now(), "a", keep),
			"Key":    keyErr,
			"Add":    store.Add(t.Context(), webpush.Stored{Device: "a", Updated: time.Now()}, 10),
		}
	}
	for call, err := range use(daemon) {
		if err == nil || !strings.Contains(err.Error(), malloryName) || !strings.Contains(err.Error(), "drop it") {
			t.Errorf("%s: %v", call, err)
		}
	}

	// With a schema of its own, the relay works all the same.
	private := schema + "_private"
	owner, own := as(private + "," + schema)
	execute(t, admin, `CREATE SCHEMA `+private+` AUTHORIZATION `+owner)
	t.Cleanup(func() { admin.Exec(`DROP SCHEMA ` + private + ` CASCADE`) })
	for call, err := range use(own) {
		if err != nil {
			t.Errorf("%s: %v", call, err)
		}
	}
	var caught int
	if err := admin.QueryRowContext(t.Context(), `SELECT count(*) FROM caught`).Scan(&caught); err != nil || caught != 0 {
		t.Errorf("the trigger ran %d times, %v", caught, err)
	}
}

// Somebody drops the table under a running relay: one post goes without limits, and
// the next ones are counted again.
func TestTableThatVanishes(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, db *sql.DB, state relay.State) {
		if err := state.Update(t.Context(), time.Now(), "a", keep); err != nil {
			t.Fatal(err)
		}
		execute(t, db, `DROP TABLE sealpush_relay_devices`)
		if err := state.Update(t.Context(), time.Now(), "a", keep); err == nil {
			t.Error("nobody is told")
		}
		if err := state.Update(t.Context(), time.Now(), "a", keep); err != nil || countRows(t, db) != 1 {
			t.Errorf("the table is not made again: %v", err)
		}
	})
}

// Each connection of a pool would have a database of its own.
func TestDatabaseInMemory(t *testing.T) {
	for _, connections := range []int{8, 1} {
		db, err := sql.Open("sqlite", ":memory:")
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		db.SetMaxOpenConns(connections)
		state, err := relay.NewSQLState(db, relay.SQLite)
		if err != nil {
			t.Fatal(err)
		}
		store, err := webpush.NewSQLStore(db, relay.SQLite)
		if err != nil {
			t.Fatal(err)
		}
		_, keyErr := store.Key(t.Context())
		for call, err := range map[string]error{"Update": state.Update(t.Context(), time.Now(), "a", keep), "Key": keyErr} {
			if connections == 1 && err != nil || connections > 1 && (err == nil || !strings.Contains(err.Error(), "SetMaxOpenConns(1)")) {
				t.Errorf("%s with %d connections: %v", call, connections, err)
			}
		}
	}
}
