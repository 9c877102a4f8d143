package sqltest_test

import (
	"crypto/rand"
	"database/sql"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relay/statetest"
)

// A database is one of the databases under test.
type database struct {
	driver  string
	dialect relay.Dialect
	newDSN  func(*testing.T) string // of an empty database
}

var databases = map[string]database{
	"SQLite":     {"sqlite", relay.SQLite, newSQLiteFile},
	"PostgreSQL": {"pgx", relay.PostgreSQL, newPostgresSchema},
}

func newSQLiteFile(t *testing.T) string {
	return "file:" + filepath.ToSlash(filepath.Join(t.TempDir(), "relay.db"))
}

// newPostgresSchema makes a schema of its own for one test.
func newPostgresSchema(t *testing.T) string {
	t.Helper()
	dsn := os.Getenv("SEALPUSH_TEST_POSTGRES")
	if dsn == "" {
		t.Fatal("SEALPUSH_TEST_POSTGRES is not set: run the tests under .ci/postgres")
	}
	schema := "test_" + strings.ToLower(rand.Text())
	admin, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.ExecContext(t.Context(), `CREATE SCHEMA `+schema); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := admin.Exec(`DROP SCHEMA ` + schema + ` CASCADE`); err != nil {
			t.Error(err)
		}
		admin.Close()
	})
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal("SEALPUSH_TEST_POSTGRES is not a postgres:// URL")
	}
	query := u.Query()
	query.Set("search_path", schema)
	u.RawQuery = query.Encode()
	return u.String()
}

func open(t *testing.T, d database, dsn string) (*sql.DB, relay.State) {
	t.Helper()
	db, err := sql.Open(d.driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(8)
	t.Cleanup(func() { db.Close() })
	state, err := relay.NewSQLState(db, d.dialect)
	if err != nil {
		t.Fatal(err)
	}
	return db, state
}

func TestSQLite(t *testing.T)     { runSuite(t, databases["SQLite"]) }
func TestPostgreSQL(t *testing.T) { runSuite(t, databases["PostgreSQL"]) }

func runSuite(t *testing.T, d database) {
	statetest.Run(t, func(t *testing.T) statetest.Opener {
		dsn := d.newDSN(t)
		return func(t *testing.T) relay.State {
			_, state := open(t, d, dsn)
			return state
		}
	})
}

func forEachDatabase(t *testing.T, run func(t *testing.T, db *sql.DB, state relay.State)) {
	for name, d := range databases {
		t.Run(name, func(t *testing.T) {
			db, state := open(t, d, d.newDSN(t))
			run(t, db, state)
		})
	}
}

func countRows(t *testing.T, db *sql.DB) (rows int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM sealpush_relay_devices`).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// The table grows with the devices that matter, and no further.
func TestOldRowsMakeRoom(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, db *sql.DB, state relay.State) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for hour := range 20 {
			for range 5 {
				at := now.Add(time.Duration(hour) * time.Hour)
				err := state.Update(t.Context(), at, rand.Text(), func([]byte) ([]byte, time.Time) {
					return []byte("a record"), at.Add(time.Hour)
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		if rows := countRows(t, db); rows > 10 {
			t.Errorf("%d rows of 5 devices an hour that matter for one", rows)
		}
	})
}

// Many relays change one row, and no change is lost.
func TestNoChangeIsLost(t *testing.T) {
	for name, d := range databases {
		t.Run(name, func(t *testing.T) {
			dsn := d.newDSN(t)
			const relays, changes = 4, 25
			done := make(chan error, relays)
			for range relays {
				_, state := open(t, d, dsn)
				go func() {
					for range changes {
						err := state.Update(t.Context(), time.Now(), "device", func(record []byte) ([]byte, time.Time) {
							return append(record[:len(record):len(record)], 'x'), time.Now().Add(time.Hour)
						})
						if err != nil {
							done <- err
							return
						}
					}
					done <- nil
				}()
			}
			for range relays {
				if err := <-done; err != nil {
					t.Fatal(err)
				}
			}
			_, state := open(t, d, dsn)
			err := state.Update(t.Context(), time.Now(), "device", func(record []byte) ([]byte, time.Time) {
				if len(record) != relays*changes {
					t.Errorf("%d changes kept, want %d", len(record), relays*changes)
				}
				return nil, time.Time{}
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A role that may use the table and make none is enough, once the table is there.
func TestTableThatWasMadeBefore(t *testing.T) {
	dsn := newPostgresSchema(t)
	db, state := open(t, databases["PostgreSQL"], dsn)
	if err := state.Update(t.Context(), time.Now(), "a", keep); err != nil {
		t.Fatal(err)
	}
	role := "user_" + strings.ToLower(rand.Text())
	for _, statement := range []string{
		`CREATE ROLE ` + role, `GRANT ` + role + ` TO CURRENT_USER`,
		`GRANT SELECT, INSERT, UPDATE, DELETE ON sealpush_relay_devices TO ` + role,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		db.Exec(`DROP OWNED BY ` + role)
		db.Exec(`DROP ROLE ` + role)
	})
	u, _ := url.Parse(dsn)
	if _, err := db.ExecContext(t.Context(), `GRANT USAGE ON SCHEMA `+u.Query().Get("search_path")+` TO `+role); err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("role", role)
	u.RawQuery = query.Encode()
	_, limited := open(t, databases["PostgreSQL"], u.String())
	if err := limited.Update(t.Context(), time.Now(), "b", keep); err != nil {
		t.Error(err)
	}
}
