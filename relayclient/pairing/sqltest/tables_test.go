package sqltest_test

import (
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/pairing/storetest"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

func newDevice(id string) pairing.Device {
	return pairing.Device{ID: id, Name: "phone " + id, Platform: "ios", PushToken: secret.New("token of " + id),
		PublicKey: seal.GenerateKey().Public(), CreatedAt: time.Date(2026, 7, 23, 14, 0, 0, 0, time.UTC), CreatedBy: "parker"}
}

func pair(t *testing.T, s pairing.Store, id string) {
	t.Helper()
	if _, _, err := s.Pair(t.Context(), newDevice(id)); err != nil {
		t.Fatalf("pair %s: %v", id, err)
	}
}

func checkLoad(t *testing.T, s pairing.Store, ids ...string) pairing.Snapshot {
	t.Helper()
	snap, err := s.Load(t.Context())
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	got := map[string]bool{}
	for _, d := range snap.Devices {
		if d.Unusable == nil {
			got[d.ID] = true
		}
	}
	for _, id := range ids {
		if !got[id] {
			t.Errorf("%s is missing", id)
		}
	}
	if len(got) != len(ids) {
		t.Errorf("got %v, want %q", snap.Devices, ids)
	}
	return snap
}

// unusable is why no alert can be sealed to some devices of a snapshot.
func unusable(snap pairing.Snapshot) []error {
	var reasons []error
	for _, d := range snap.Devices {
		if d.Unusable != nil {
			reasons = append(reasons, d.Unusable)
		}
	}
	return reasons
}

// refuses checks that an error is there and says all that is wanted.
func refuses(t *testing.T, what string, err error, wanted ...string) {
	t.Helper()
	for _, want := range wanted {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %q in the error: %v", what, want, err)
		}
	}
}

// Somebody drops the tables, or restores a database without them: alerts go on to the phones that were known.
func TestTablesThatVanish(t *testing.T) {
	for _, drop := range []string{"sealpush_devices", "sealpush_settings", "both"} {
		t.Run(drop, func(t *testing.T) {
			forEachDatabase(t, func(t *testing.T, db *sql.DB, d database) {
				s := newStore(t, db, d.dialect)
				reg, err := pairing.NewRegistry(s)
				if err != nil {
					t.Fatal(err)
				}
				request := pairing.Request{Name: "phone", Platform: "ios", PushToken: secret.New("a token"), PublicKey: seal.GenerateKey().Public()}
				if _, _, err := reg.Pair(t.Context(), request, "parker"); err != nil {
					t.Fatal(err)
				}
				for _, table := range []string{"sealpush_devices", "sealpush_settings"} {
					if drop == table || drop == "both" {
						exec(t, db, `DROP TABLE `+table)
					}
				}
				_, loadErr := s.Load(t.Context())
				refuses(t, "Load", loadErr, "vanished")
				_, saltErr := s.EnsureSalt(t.Context(), secret.New("salt"))
				refuses(t, "EnsureSalt", saltErr, "vanished")
				refuses(t, "Revoke", s.Revoke(t.Context(), "1"), "vanished")
				if got := reg.Recipients(t.Context()); !errors.Is(got.Err, pairing.ErrUnavailable) || len(got.Devices) != 1 {
					t.Errorf("an alert goes to %v, error %v", got.Devices, got.Err)
				}

				pair(t, s, "2")
				snap, err := s.Load(t.Context())
				if want := map[string]int{"sealpush_settings": 2}[drop]; err != nil || len(snap.Devices) != max(want, 1) {
					t.Errorf("after a pairing: got %v, %v", snap.Devices, err)
				}
			})
		})
	}
}

// A database in memory is one of each connection of the pool, so that a phone would be paired in one of several.
func TestMemoryDatabase(t *testing.T) {
	for _, dsn := range []string{":memory:", "file::memory:", "file::memory:?cache=shared", ""} {
		db := open(t, "sqlite", dsn)
		s := newStore(t, db, pairing.SQLite)
		_, _, err := s.Pair(t.Context(), newDevice("1"))
		refuses(t, dsn, err, "memory", "SetMaxOpenConns(1)")
		_, err = s.Load(t.Context())
		refuses(t, dsn, err, "memory", "SetMaxOpenConns(1)")
	}
	db := open(t, "sqlite", ":memory:")
	db.SetMaxOpenConns(1)
	s := newStore(t, db, pairing.SQLite)
	pair(t, s, "1")
	checkLoad(t, s, "1")
}

// The database aborts the first three writes.
func TestSerializationFailuresAreRepeated(t *testing.T) {
	db := open(t, "pgx", newPostgresSchema(t))
	s := newStore(t, db, pairing.PostgreSQL)
	pair(t, s, "1")
	exec(t, db, `CREATE SEQUENCE attempts`)
	exec(t, db, `CREATE FUNCTION abort() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		IF nextval('attempts') % 4 <> 0 THEN RAISE serialization_failure; END IF;
		RETURN COALESCE(NEW, OLD); END $$`)
	exec(t, db, `CREATE TRIGGER abort BEFORE INSERT OR DELETE ON sealpush_devices FOR EACH ROW EXECUTE FUNCTION abort()`)
	pair(t, s, "2")
	if err := s.Revoke(t.Context(), "1"); err != nil {
		t.Errorf("Revoke: %v", err)
	}
	checkLoad(t, s, "2")
}

// A database, or its pooler, may be set up so that transactions can fail, or forgets statements between them.
func TestPostgreSQLSetUpOtherwise(t *testing.T) {
	for name, parameter := range map[string][2]string{
		"serializable":    {"default_transaction_isolation", "serializable"},
		"simple protocol": {"default_query_exec_mode", "simple_protocol"},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, storetest.Backend{
				New: func(t *testing.T) string { return withParameter(t, newPostgresSchema(t), parameter[0], parameter[1]) },
				Open: func(t *testing.T, place string) pairing.Store {
					return newStore(t, open(t, "pgx", place), pairing.PostgreSQL)
				},
			})
		})
	}
}

// A pooler such as PgBouncer gives each transaction another session, which does not know the statements that were
// prepared in an earlier one.
func TestPoolerThatForgetsStatements(t *testing.T) {
	for mode, works := range map[string]bool{"simple_protocol": true, "cache_statement": false} {
		db := open(t, "pgx", withParameter(t, newPostgresSchema(t), "default_query_exec_mode", mode))
		db.SetMaxOpenConns(1)
		s := newStore(t, db, pairing.PostgreSQL)
		var err error
		for _, id := range []string{"1", "2", "3", "4"} {
			exec(t, db, `DEALLOCATE ALL`)
			_, loadErr := s.Load(t.Context())
			_, _, pairErr := s.Pair(t.Context(), newDevice(id))
			err = errors.Join(err, loadErr, pairErr)
		}
		if works != (err == nil) {
			t.Errorf("%s: got %v", mode, err)
		}
	}
}

// Tables may have been made by hand, with other types and no constraints.
func TestOddRowsFailNoLoad(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, db *sql.DB, d database) {
		exec(t, db, `CREATE TABLE sealpush_settings (name TEXT UNIQUE, value TEXT)`)
		exec(t, db, `CREATE TABLE sealpush_devices (id TEXT, public_key TEXT UNIQUE, name TEXT, platform INTEGER, push_token TEXT,
			created_at TIMESTAMP, created_by TEXT)`)
		exec(t, db, `INSERT INTO sealpush_settings VALUES ('collapse_salt', NULL)`)
		row := func(values string) {
			exec(t, db, `INSERT INTO sealpush_devices VALUES (`+strings.ReplaceAll(values, "KEY", "'"+seal.GenerateKey().Public().String()+"'")+`)`)
		}
		row(`'good', KEY, 'n', NULL, 'a token', '2026-07-23 14:00:00', NULL`)
		row(`'no name', KEY, NULL, 5, 'a token', NULL, NULL`)
		row(`'no token', KEY, 'n', 5, NULL, NULL, NULL`)
		row(`'empty token', KEY, 'n', 5, '', NULL, NULL`)
		row(`NULL, KEY, 'n', 5, 'a token', NULL, NULL`)
		row(`'no key', NULL, 'n', 5, 'a token', NULL, NULL`)
		s := newStore(t, db, d.dialect)
		snap := checkLoad(t, s, "good", "no name")
		if len(unusable(snap)) != 4 {
			t.Errorf("unusable: %v", unusable(snap))
		}
		for _, d := range snap.Devices {
			if d.ID == "good" && !d.CreatedAt.Equal(time.Date(2026, 7, 23, 14, 0, 0, 0, time.UTC)) {
				t.Errorf("created at %v", d.CreatedAt)
			}
		}
		if salt, err := s.EnsureSalt(t.Context(), secret.New("salt")); err != nil || salt.Reveal() != "salt" {
			t.Errorf("got %q, %v", salt.Reveal(), err)
		}
	})
}

// The statements of docs/fleet.md: the tables, their rights, the columns that older tables lack.
func guideStatements(t *testing.T, containing, role string) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/fleet.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(page), "```sql\n")[1:] {
		if block, _, _ := strings.Cut(part, "```"); strings.Contains(block, containing) {
			return strings.ReplaceAll(block, "mydaemon", role)
		}
	}
	t.Fatalf("docs/fleet.md has no SQL with %s", containing)
	return ""
}

// A role that may only read and write rows is enough once the tables are there.
func TestTablesMadeBeforehand(t *testing.T) {
	dsn := newPostgresSchema(t)
	admin := open(t, "pgx", dsn)
	role, writer := newRole(t, admin, dsn)
	s := newStore(t, writer, pairing.PostgreSQL)
	_, _, err := s.Pair(t.Context(), newDevice("1"))
	refuses(t, "without tables", err, "docs/fleet.md", "permission denied")

	exec(t, admin, guideStatements(t, "CREATE TABLE", role))
	if salt, err := s.EnsureSalt(t.Context(), secret.New("salt")); err != nil || salt.Reveal() != "salt" {
		t.Errorf("got %q, %v", salt.Reveal(), err)
	}
	pair(t, s, "1")
	checkLoad(t, s, "1")
	if err := s.Revoke(t.Context(), "1"); err != nil {
		t.Error(err)
	}
}

// What the first version made, and how it writes.
const (
	oldDevices = `CREATE TABLE sealpush_devices (
		id         TEXT PRIMARY KEY,
		public_key TEXT NOT NULL UNIQUE,
		name       TEXT NOT NULL,
		platform   TEXT NOT NULL,
		push_token TEXT NOT NULL,
		created_at TEXT NOT NULL,
		created_by TEXT
	)`
	oldSettings = `CREATE TABLE sealpush_settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)`
	oldUpsert   = `INSERT INTO sealpush_devices (id, public_key, name, platform, push_token, created_at, created_by)
		VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (public_key) DO UPDATE
			SET name = excluded.name, platform = excluded.platform, push_token = excluded.push_token
		RETURNING id, created_at, created_by`
)

// A key is of the suite that stands beside it; none means x25519. One of a suite that this version does not know stays.
func TestSuites(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, db *sql.DB, d database) {
		s := newStore(t, db, d.dialect)
		wide := newDevice("wide")
		wide.PublicKey = seal.XWing.GenerateKey().Public()
		wide.UpdatedAt, wide.UpdatedBy = wide.CreatedAt.Add(time.Hour), "quinn"
		if _, _, err := s.Pair(t.Context(), wide); err != nil {
			t.Fatal(err)
		}
		pair(t, s, "narrow")
		pair(t, s, "future")
		exec(t, db, `UPDATE sealpush_devices SET suite = 'future-1' WHERE id = 'future'`)
		exec(t, db, `UPDATE sealpush_devices SET suite = '' WHERE id = 'narrow'`)
		snap := checkLoad(t, s, "wide", "narrow")
		for _, d := range snap.Devices {
			if d.ID == "wide" && (d.PublicKey != wide.PublicKey || !d.UpdatedAt.Equal(wide.UpdatedAt) || d.UpdatedBy != "quinn") {
				t.Errorf("got %v, updated at %v by %q", d, d.UpdatedAt, d.UpdatedBy)
			}
		}
		if reasons := unusable(snap); len(reasons) != 1 || !errors.Is(reasons[0], seal.ErrUnknownSuite) {
			t.Errorf("unusable: %v", reasons)
		}
		var suites string
		err := db.QueryRowContext(t.Context(), `SELECT suite FROM sealpush_devices WHERE id = 'wide'`).Scan(&suites)
		if err != nil || suites != "xwing" {
			t.Errorf("stored as %q, %v", suites, err)
		}
	})
}

// A row with a suite outside the grammar of identifiers costs its own alert, is listed, and stays as it is.
func TestHostileSuites(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, db *sql.DB, d database) {
		s := newStore(t, db, d.dialect)
		hostile := map[string]any{"17 characters": "x25519-and-more-1", "upper case": "X25519", "number": 25519, "space": " ", "underscore": "x_25519", "hyphen": "-a"}
		set := func(id string, suite any) {
			pair(t, s, id)
			exec(t, db, `UPDATE sealpush_devices SET suite = $1 WHERE id = $2`, suite, id)
		}
		for id, suite := range hostile {
			if n, ok := suite.(int); ok && d.dialect == pairing.PostgreSQL {
				suite = fmt.Sprint(n) // which takes no number for a text
			}
			set(id, suite)
		}
		set("empty", "")
		set("null", nil)

		reg, err := pairing.NewRegistry(s, pairing.WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		request := pairing.Request{Name: "new", Platform: "p", PushToken: secret.New("t"), PublicKey: seal.GenerateKey().Public()}
		if _, _, err := reg.Pair(t.Context(), request, ""); err != nil {
			t.Fatal(err)
		}
		if n := len(reg.Recipients(t.Context()).Devices); n != 3 {
			t.Errorf("%d phones are paged, want those with an empty suite, with none, and the new one", n)
		}
		devices, err := reg.Devices(t.Context())
		if err != nil || len(devices) != len(hostile)+3 {
			t.Errorf("%d phones are listed, want %d: %v", len(devices), len(hostile)+3, err)
		}
		for _, d := range devices {
			if _, bad := hostile[d.ID]; (d.Unusable != nil) != bad {
				t.Errorf("%s: unusable: %v", d.ID, d.Unusable)
			}
		}
		for id, suite := range hostile {
			var stored string
			err := db.QueryRowContext(t.Context(), `SELECT suite FROM sealpush_devices WHERE id = $1`, id).Scan(&stored)
			if err != nil || stored != fmt.Sprint(suite) {
				t.Errorf("%s: stored as %q, %v", id, stored, err)
			}
		}
	})
}

// Nodes of an older version read and write the same tables, before and after a node of this one has added its columns.
func TestTablesOfAnOlderVersion(t *testing.T) {
	forEachDatabase(t, func(t *testing.T, db *sql.DB, d database) {
		old := func(id string) {
			t.Helper()
			exec(t, db, oldUpsert, id, seal.GenerateKey().Public().String(), "n", "p", "token of "+id, "2026-07-23T14:00:00+00:00", nil)
		}
		exec(t, db, oldDevices)
		exec(t, db, oldSettings)
		old("old 1")
		old("old 2")
		s := newStore(t, db, d.dialect)
		checkLoad(t, s, "old 1", "old 2")
		if salt, err := s.EnsureSalt(t.Context(), secret.New("salt")); err != nil || salt.Reveal() != "salt" {
			t.Errorf("got %q, %v", salt.Reveal(), err)
		}
		if err := s.Revoke(t.Context(), "old 2"); err != nil {
			t.Error(err)
		}
		if _, err := db.ExecContext(t.Context(), `SELECT updated_at FROM sealpush_devices`); err == nil {
			t.Error("columns were added before anybody paired")
		}
		var nodes sync.WaitGroup
		for _, id := range []string{"new 1", "new 2", "new 3"} {
			nodes.Go(func() { pair(t, newStore(t, db, d.dialect), id) })
		}
		nodes.Wait()
		old("old 3")
		checkLoad(t, s, "old 1", "old 3", "new 1", "new 2", "new 3")
	})
}

func TestOlderTablesThatTheRoleMayNotChange(t *testing.T) {
	dsn := newPostgresSchema(t)
	admin := open(t, "pgx", dsn)
	role, writer := newRole(t, admin, dsn)
	exec(t, admin, oldDevices)
	exec(t, admin, oldSettings)
	exec(t, admin, `GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA `+schemaOf(t, admin)+` TO `+role)
	s := newStore(t, writer, pairing.PostgreSQL)
	checkLoad(t, s)
	_, _, err := s.Pair(t.Context(), newDevice("1"))
	refuses(t, "Pair", err, "docs/fleet.md", "must be owner")
	exec(t, admin, guideStatements(t, "ADD COLUMN", role))
	pair(t, s, "1")
	checkLoad(t, s, "1")
}

// Nothing that another role can do without rights in the schema keeps the first nodes from making the tables.
func TestAnotherRoleCannotHoldFirstUseUp(t *testing.T) {
	dsn := newPostgresSchema(t)
	admin := open(t, "pgx", dsn)
	_, mallory := newRole(t, admin, dsn)
	session, err := mallory.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if _, err := session.ExecContext(t.Context(), `SELECT pg_advisory_lock(8387230152716420)`); err != nil {
		t.Fatal(err)
	}
	pair(t, newStore(t, open(t, "pgx", withParameter(t, dsn, "lock_timeout", "10s")), pairing.PostgreSQL), "1")
}

// Mallory may create tables in a schema of the search path. A trigger of hers would run as the daemon.
func TestTablesOfAnotherRoleAreNotUsed(t *testing.T) {
	dsn := newPostgresSchema(t)
	admin := open(t, "pgx", dsn)
	shared := schemaOf(t, admin)
	malloryName, mallory := newRole(t, admin, dsn)
	daemonName, daemon := newRole(t, admin, dsn)
	exec(t, admin, `GRANT CREATE ON SCHEMA `+shared+` TO `+malloryName+`, `+daemonName)
	exec(t, mallory, `CREATE TABLE caught (name TEXT)`)
	exec(t, mallory, `CREATE FUNCTION catch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		INSERT INTO `+shared+`.caught VALUES (current_user); RETURN NEW; END $$`)
	prepare := func(schema string) {
		t.Helper()
		exec(t, mallory, strings.ReplaceAll(oldDevices, "sealpush_devices", schema+".sealpush_devices"))
		exec(t, mallory, strings.ReplaceAll(oldSettings, "sealpush_settings", schema+".sealpush_settings"))
		for _, table := range []string{"sealpush_devices", "sealpush_settings"} {
			exec(t, mallory, `CREATE TRIGGER catch BEFORE INSERT ON `+schema+`.`+table+` FOR EACH ROW EXECUTE FUNCTION `+shared+`.catch()`)
			exec(t, mallory, `GRANT ALL ON `+schema+`.`+table+` TO PUBLIC`)
		}
	}
	exec(t, mallory, `GRANT ALL ON caught TO PUBLIC`)
	prepare(shared)
	uncaught := func() {
		t.Helper()
		var n int
		if err := admin.QueryRowContext(t.Context(), `SELECT count(*) FROM caught`).Scan(&n); err != nil || n != 0 {
			t.Errorf("the trigger ran %d times, %v", n, err)
		}
	}

	s := newStore(t, daemon, pairing.PostgreSQL)
	_, loadErr := s.Load(t.Context())
	_, saltErr := s.EnsureSalt(t.Context(), secret.New("salt"))
	_, _, pairErr := s.Pair(t.Context(), newDevice("1"))
	for call, err := range map[string]error{"Load": loadErr, "EnsureSalt": saltErr, "Pair": pairErr} {
		refuses(t, call, err, shared, malloryName, "drop it")
	}
	uncaught()

	// With a schema of its own, first or last in the path, the daemon uses that one.
	private := shared + "_private"
	exec(t, admin, `CREATE SCHEMA `+private+` AUTHORIZATION `+daemonName)
	t.Cleanup(func() { admin.Exec(`DROP SCHEMA ` + private + ` CASCADE`) })
	for i, path := range []string{private + "," + shared, shared + "," + private} {
		db := open(t, "pgx", withParameter(t, withParameter(t, dsn, "role", daemonName), "search_path", path))
		s := newStore(t, db, pairing.PostgreSQL)
		id := string(rune('1' + i))
		pair(t, s, id)
		checkLoad(t, s, []string{"1", "2"}[:i+1]...)
	}
	uncaught()

	// A schema with the daemon's name, which "$user" means, may be mallory's too.
	exec(t, admin, `CREATE SCHEMA `+daemonName+` AUTHORIZATION `+malloryName)
	t.Cleanup(func() { admin.Exec(`DROP SCHEMA ` + daemonName + ` CASCADE`) })
	exec(t, mallory, `GRANT ALL ON SCHEMA `+daemonName+` TO `+daemonName)
	prepare(daemonName)
	db := open(t, "pgx", withParameter(t, withParameter(t, dsn, "role", daemonName), "search_path", `"$user"`))
	_, _, err := newStore(t, db, pairing.PostgreSQL).Pair(t.Context(), newDevice("3"))
	refuses(t, "Pair", err, daemonName, malloryName)
	uncaught()
}

// The owner of a schema that the search path names, and a role that the daemon is a member of, may have made the tables.
func TestTablesOfATrustedRole(t *testing.T) {
	for _, c := range []struct{ name, grant string }{
		{"the schema's owner", `ALTER SCHEMA SCHEMA OWNER TO OWNER`},
		{"a role of which the daemon is a member", `GRANT CREATE ON SCHEMA SCHEMA TO OWNER; GRANT OWNER TO DAEMON`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dsn := newPostgresSchema(t)
			admin := open(t, "pgx", dsn)
			ownerName, owner := newRole(t, admin, dsn)
			daemonName, daemon := newRole(t, admin, dsn)
			exec(t, admin, strings.NewReplacer("SCHEMA SCHEMA", "SCHEMA "+schemaOf(t, admin), "OWNER TO OWNER", "OWNER TO "+ownerName,
				"TO OWNER", "TO "+ownerName, "GRANT OWNER", "GRANT "+ownerName, "DAEMON", daemonName).Replace(c.grant))
			pair(t, newStore(t, owner, pairing.PostgreSQL), "1")
			exec(t, owner, `GRANT SELECT, INSERT, UPDATE, DELETE ON sealpush_devices, sealpush_settings TO `+daemonName)
			s := newStore(t, daemon, pairing.PostgreSQL)
			checkLoad(t, s, "1")
			pair(t, s, "2")
		})
	}
}
