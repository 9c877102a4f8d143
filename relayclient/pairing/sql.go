package pairing

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sealpush/sealpush/secret"
)

// Dialect is the kind of database behind an [SQLStore].
type Dialect string

// The dialects that [NewSQL] knows.
const (
	PostgreSQL Dialect = "PostgreSQL" // 9.5 or newer
	SQLite     Dialect = "SQLite"     // 3.35 or newer
)

// SQLStore keeps the registry in a database, for fleets that outgrow one machine: one row a device, in the tables
// sealpush_devices and sealpush_settings. It is safe for concurrent use, by goroutines and by nodes, also of older
// versions of this package. An operation that the database aborts, for serialization or to end a deadlock, is repeated.
//
// The tables are made on first use, in the first schema of the connection's search path, by however many nodes come
// first together. When they vanish under a running node, its reads and revocations fail, and only a pairing makes them
// again. Tables of an older version are used as they are until a pairing adds the columns that they lack. For a
// database user who may not make tables, docs/fleet.md has the statements for one who may.
//
// On PostgreSQL, a table is used only when those who could have put triggers on it are trusted anyway. Its owner is the
// connection's role or one that it is a member of; a superuser; the owner of the database; or the owner of the schema,
// unless that schema is the "$user" of the search path. Other roles may be able to create tables there, and a trigger
// runs with the rights of the role that writes to its table.
type SQLStore struct {
	db      *sql.DB
	dialect Dialect
	seen    atomic.Bool // this store has found its tables
}

// NewSQL returns the store in a database that was opened with a driver of the caller's choice, such as
// github.com/jackc/pgx/v5/stdlib or modernc.org/sqlite. It does not connect yet. Closing db is the caller's.
//
// An SQLite database in memory belongs to one connection: the store refuses to work with it unless db has at most one
// (SetMaxOpenConns), and what it holds is lost with that connection.
func NewSQL(db *sql.DB, dialect Dialect) (*SQLStore, error) {
	if db == nil {
		return nil, errors.New("pairing: NewSQL needs a database")
	}
	if dialect != PostgreSQL && dialect != SQLite {
		return nil, fmt.Errorf("pairing: unknown SQL dialect %q: use PostgreSQL or SQLite", string(dialect))
	}
	return &SQLStore{db: db, dialect: dialect}, nil
}

// Format writes the dialect, whatever the verb: the database's password is within.
func (s *SQLStore) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "pairing.SQLStore{%s}", s.dialect) }

// Both dialects number their parameters $1, $2, …, know ON CONFLICT, and return what they wrote. Times are text, which
// every driver reads alike and which sorts. {schema} stands for the schema in which the tables were found: a name
// without it could mean a table of somebody else.
const (
	selectSalt = `SELECT value FROM {schema}.sealpush_settings WHERE name = 'collapse_salt'`
	insertSalt = `INSERT INTO {schema}.sealpush_settings AS stored (name, value) VALUES ('collapse_salt', $1)
		ON CONFLICT (name) DO UPDATE SET value = COALESCE(NULLIF(stored.value, ''), excluded.value)
		RETURNING value`

	selectDevices = `SELECT id, public_key, name, platform, push_token, created_at, created_by, updated_at, updated_by, suite
		FROM {schema}.sealpush_devices`
	selectOldDevices = `SELECT id, public_key, name, platform, push_token, created_at, created_by, NULL, NULL, NULL
		FROM {schema}.sealpush_devices`
	upsertDevice = `INSERT INTO {schema}.sealpush_devices
			(id, public_key, name, platform, push_token, created_at, created_by, updated_at, updated_by, suite)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		ON CONFLICT (public_key) DO UPDATE
			SET name = excluded.name, platform = excluded.platform, push_token = excluded.push_token,
				updated_at = excluded.updated_at, updated_by = excluded.updated_by, suite = excluded.suite
		RETURNING id, created_at, created_by`
	deleteDevice = `DELETE FROM {schema}.sealpush_devices WHERE id = $1`
)

// Load implements [Store].
func (s *SQLStore) Load(ctx context.Context) (snap Snapshot, err error) {
	ctx = orBackground(ctx)
	err = s.do(ctx, "read the registry", func(conn *sql.Conn, found tables) error {
		snap = Snapshot{}
		if err := s.check(found); err != nil || !found.complete() {
			return err
		}
		var salt text
		err := conn.QueryRowContext(ctx, found.name(selectSalt)).Scan(&salt)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		snap.Salt = secret.New(string(salt))
		statement := selectDevices
		if len(found.missing) > 0 {
			statement = selectOldDevices
		}
		rows, err := conn.QueryContext(ctx, found.name(statement))
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			if err := snap.scan(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	})
	if err != nil {
		return Snapshot{}, err
	}
	return snap, nil
}

// scan adds the device of one row.
func (snap *Snapshot) scan(rows *sql.Rows) error {
	var id, key, name, platform, token, createdAt, createdBy, updatedAt, updatedBy, suite text
	err := rows.Scan(&id, &key, &name, &platform, &token, &createdAt, &createdBy, &updatedAt, &updatedBy, &suite)
	if err != nil {
		return err
	}
	d := Device{ID: string(id), Name: string(name), Platform: string(platform), PushToken: secret.New(string(token)),
		CreatedAt: parseTime(string(createdAt)), CreatedBy: string(createdBy),
		UpdatedAt: parseTime(string(updatedAt)), UpdatedBy: string(updatedBy)}
	d.ReadKey(string(suite), string(key))
	if d.Unusable != nil {
		d.Unusable = fmt.Errorf("pairing: sealpush_devices: device with id %q: %w", d.ID, d.Unusable)
	}
	snap.Devices = append(snap.Devices, d)
	return nil
}

// text is a column of whatever type a driver makes of it, NULL included: one odd row must not fail a read. The tables
// may have been made by hand, and SQLite keeps values of any type in any column.
type text string

// Scan implements [sql.Scanner].
func (t *text) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		*t = ""
	case string:
		*t = text(v)
	case []byte:
		*t = text(v)
	case time.Time:
		*t = text(formatTime(v))
	default:
		*t = text(fmt.Sprint(v))
	}
	return nil
}

// Pair implements [Store].
func (s *SQLStore) Pair(ctx context.Context, d Device) (stored Device, created bool, err error) {
	ctx = orBackground(ctx)
	err = s.do(ctx, "pair a device", func(conn *sql.Conn, found tables) error {
		stored = d
		stored.Suite = d.PublicKey.Suite()
		found, err := s.makeTables(ctx, conn, found)
		if err != nil {
			return err
		}
		var updatedAt *string
		if !d.UpdatedAt.IsZero() {
			updatedAt = nullable(formatTime(d.UpdatedAt))
		}
		var id, createdAt, createdBy text
		row := conn.QueryRowContext(ctx, found.name(upsertDevice), d.ID, d.PublicKey.String(), d.Name, d.Platform, d.PushToken.Reveal(),
			formatTime(d.CreatedAt), nullable(d.CreatedBy), updatedAt, nullable(d.UpdatedBy), string(stored.Suite))
		if err := row.Scan(&id, &createdAt, &createdBy); err != nil {
			return err
		}
		stored.ID, stored.CreatedAt, stored.CreatedBy = string(id), parseTime(string(createdAt)), string(createdBy)
		return nil
	})
	if err != nil {
		return Device{}, false, err
	}
	return stored, stored.ID == d.ID, nil
}

// Revoke implements [Store].
func (s *SQLStore) Revoke(ctx context.Context, id string) error {
	ctx = orBackground(ctx)
	return s.do(ctx, "revoke a device", func(conn *sql.Conn, found tables) error {
		if err := s.check(found); err != nil {
			return err
		}
		if !found.complete() {
			return ErrUnknownDevice
		}
		result, err := conn.ExecContext(ctx, found.name(deleteDevice), id)
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return ErrUnknownDevice
	})
}

// EnsureSalt implements [Store].
func (s *SQLStore) EnsureSalt(ctx context.Context, candidate secret.Text) (secret.Text, error) {
	ctx = orBackground(ctx)
	var salt text
	err := s.do(ctx, "store the collapse salt", func(conn *sql.Conn, found tables) error {
		if err := s.check(found); err != nil {
			return err
		}
		if !found.complete() {
			var err error
			if found, err = s.makeTables(ctx, conn, found); err != nil {
				return err
			}
		}
		return conn.QueryRowContext(ctx, found.name(insertSalt), candidate.Reveal()).Scan(&salt)
	})
	return secret.New(string(salt)), err
}

// check says why the tables that were found cannot be used. That there are none yet is no error.
func (s *SQLStore) check(found tables) error {
	switch {
	case found.complete():
		return nil
	case found.foreign != nil:
		return found.foreign
	case s.seen.Load() || found.devices || found.settings:
		return errors.New("the tables of the registry have vanished: restore them from a backup, or pair the phones again")
	}
	return nil
}

// do runs fn on a connection, with the tables that it can use there, again when the database asks for it. An error says
// what could not be done.
func (s *SQLStore) do(ctx context.Context, what string, fn func(*sql.Conn, tables) error) error {
	if s.db == nil {
		return errors.New("pairing: this SQLStore was not made by NewSQL")
	}
	err := repeat(ctx, func() error {
		conn, err := s.db.Conn(ctx)
		if err != nil {
			return fmt.Errorf("connect to the database: %w", err)
		}
		defer conn.Close()
		found, err := s.findTables(ctx, conn)
		if err != nil {
			return err
		}
		return fn(conn, found)
	})
	if err == nil || errors.Is(err, ErrUnknownDevice) {
		return err
	}
	return fmt.Errorf("pairing: %s in %s: %w", what, s.dialect, err)
}
