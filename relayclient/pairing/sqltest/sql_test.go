package sqltest_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/pairing/storetest"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// database is one of the databases under test.
type database struct {
	driver  string
	dialect pairing.Dialect
	newDSN  func(*testing.T) string // of an empty database
}

var databases = map[string]database{
	"SQLite":     {"sqlite", pairing.SQLite, newSQLiteFile},
	"PostgreSQL": {"pgx", pairing.PostgreSQL, newPostgresSchema},
}

func newSQLiteFile(t *testing.T) string {
	return "file:" + filepath.ToSlash(filepath.Join(t.TempDir(), "registry.db"))
}

// newPostgresSchema makes a schema of its own for one test, so that its tables meet nobody else's.
func newPostgresSchema(t *testing.T) string {
	t.Helper()
	dsn := os.Getenv("SEALPUSH_TEST_POSTGRES")
	if dsn == "" {
		t.Fatal("SEALPUSH_TEST_POSTGRES is not set: run the tests under .ci/postgres")
	}
	schema := "test_" + strings.ToLower(rand.Text())
	admin := open(t, "pgx", dsn)
	exec(t, admin, `CREATE SCHEMA `+schema)
	t.Cleanup(func() {
		if _, err := admin.Exec(`DROP SCHEMA IF EXISTS ` + schema + ` CASCADE`); err != nil {
			t.Error(err)
		}
	})
	return withParameter(t, dsn, "search_path", schema)
}

// withParameter adds a run-time parameter to a postgres:// URL.
func withParameter(t *testing.T, dsn, name, value string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("SEALPUSH_TEST_POSTGRES is not a postgres:// URL")
	}
	query := u.Query()
	query.Set(name, value)
	u.RawQuery = query.Encode()
	return u.String()
}

func open(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(4) // a dozen stores at once must not use up the server's connections
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func exec(t *testing.T, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatal(err)
	}
}

func newStore(t *testing.T, db *sql.DB, dialect pairing.Dialect) *pairing.SQLStore {
	t.Helper()
	s, err := pairing.NewSQL(db, dialect)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSQLite(t *testing.T)     { runSuite(t, databases["SQLite"]) }
func TestPostgreSQL(t *testing.T) { runSuite(t, databases["PostgreSQL"]) }

func runSuite(t *testing.T, d database) {
	storetest.Run(t, storetest.Backend{
		New: d.newDSN,
		Open: func(t *testing.T, place string) pairing.Store {
			return newStore(t, open(t, d.driver, place), d.dialect)
		},
	})
}

func forEachDatabase(t *testing.T, run func(t *testing.T, db *sql.DB, d database)) {
	for name, d := range databases {
		t.Run(name, func(t *testing.T) { run(t, open(t, d.driver, d.newDSN(t)), d) })
	}
}

// One row that cannot be used, by somebody else's hand, costs nobody else a page.
func TestOneBadRowIsSkipped(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, db *sql.DB, d database) {
		s := newStore(t, db, d.dialect)
		good := pairing.Device{ID: "02177c7da112d2b0", Name: "phone", Platform: "ios", PushToken: secret.New("a token"),
			PublicKey: seal.GenerateKey().Public(), CreatedAt: time.Now()}
		if _, _, err := s.Pair(t.Context(), good); err != nil {
			t.Fatal(err)
		}
		exec(t, db, `INSERT INTO sealpush_devices (id, public_key, name, platform, push_token, created_at)
			VALUES ('low-order', 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=', 'n', 'p', 'secret token', 'no date')`)
		snap, err := s.Load(t.Context())
		if err != nil || len(snap.Devices) != 2 || len(unusable(snap)) != 1 {
			t.Fatalf("got %v, unusable %v, error %v", snap.Devices, unusable(snap), err)
		}
		reason := unusable(snap)[0]
		if text := reason.Error(); !strings.Contains(text, "low-order") || strings.Contains(text, "secret") {
			t.Errorf("skipped with %q", text)
		}
		if !errors.Is(reason, seal.ErrInvalidKey) {
			t.Errorf("%v is not seal.ErrInvalidKey", reason)
		}
		if err := s.Revoke(t.Context(), "low-order"); err != nil {
			t.Error(err)
		}
	})
}

// newRole makes a role that may use the schema of an admin's connection, and returns its name and a connection as it.
func newRole(t *testing.T, admin *sql.DB, dsn string) (role string, as *sql.DB) {
	t.Helper()
	role = "role_" + strings.ToLower(rand.Text())
	exec(t, admin, `CREATE ROLE `+role)
	t.Cleanup(func() {
		if _, err := admin.Exec(`DROP OWNED BY ` + role + `; DROP ROLE ` + role); err != nil {
			t.Error(err)
		}
	})
	exec(t, admin, `GRANT USAGE ON SCHEMA `+schemaOf(t, admin)+` TO `+role)
	return role, open(t, "pgx", withParameter(t, dsn, "role", role))
}

func schemaOf(t *testing.T, db *sql.DB) (schema string) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), `SELECT current_schema()`).Scan(&schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// A database that is not there costs an alert one bounded wait and is no empty registry.
func TestServerThatIsNotThere(t *testing.T) {
	db := open(t, "pgx", "postgres://user:the-password@127.0.0.1:1/postgres?sslmode=disable")
	reg, err := pairing.NewRegistry(newStore(t, db, pairing.PostgreSQL))
	if err != nil {
		t.Fatal(err)
	}
	got := reg.Recipients(t.Context())
	if !errors.Is(got.Err, pairing.ErrUnavailable) || got.Salt.IsZero() {
		t.Errorf("got %+v", got)
	}
	if got.Err != nil && strings.Contains(got.Err.Error(), "the-password") {
		t.Errorf("the error quotes the password: %v", got.Err)
	}
}

func TestNilContext(t *testing.T) {
	s := newStore(t, open(t, "sqlite", newSQLiteFile(t)), pairing.SQLite)
	var none context.Context
	if _, _, err := s.Pair(none, newDevice("1")); err != nil {
		t.Errorf("Pair: %v", err)
	}
	if _, err := s.EnsureSalt(none, secret.New("salt")); err != nil {
		t.Errorf("EnsureSalt: %v", err)
	}
	if snap, err := s.Load(none); err != nil || len(snap.Devices) != 1 {
		t.Errorf("Load: got %v, %v", snap.Devices, err)
	}
	if err := s.Revoke(none, "1"); err != nil {
		t.Errorf("Revoke: %v", err)
	}
}

func TestNewSQLRefuses(t *testing.T) {
	db := open(t, "sqlite", newSQLiteFile(t))
	if _, err := pairing.NewSQL(nil, pairing.SQLite); err == nil {
		t.Error("no database was accepted")
	}
	if _, err := pairing.NewSQL(db, "oracle"); err == nil {
		t.Error("an unknown dialect was accepted")
	}
}
