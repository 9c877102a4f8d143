package pairing

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/sealpush/sealpush/secret"
)

// Dialect is the kind of database behind an [SQLStore]. It is a plain value.
type Dialect string

// The dialects that [NewSQL] knows.
const (
	PostgreSQL Dialect = "PostgreSQL" // 9.5 or newer
	SQLite     Dialect = "SQLite"     // 3.35 or newer
)

// SQLStore keeps the registry in a database, for fleets that outgrow one machine: one row a device, in the tables
// sealpush_devices and sealpush_settings. It is safe for concurrent use, by goroutines and by nodes.
//
// The tables are made on first use, in the connection's default schema, by however many nodes come first together. For
// a database user who may not make tables, let one who may make them beforehand.
type SQLStore struct {
	db      *sql.DB
	dialect Dialect
	ready   atomic.Bool // the tables are known to be there
}

// NewSQL returns the store in a database that was opened with a driver of the caller's choice, such as
// github.com/jackc/pgx/v5/stdlib or modernc.org/sqlite. It does not connect yet. Closing db is the caller's.
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

// Both dialects number their parameters $1, $2, …, know ON CONFLICT, and return what they wrote. A change is a single
// statement, so that it is atomic without a transaction. Times are text, which every driver reads alike and which sorts.
const (
	tablesProbe = `SELECT 1 FROM sealpush_devices, sealpush_settings WHERE 1 = 0`

	devicesTable = `CREATE TABLE IF NOT EXISTS sealpush_devices (
		id         TEXT PRIMARY KEY,
		public_key TEXT NOT NULL UNIQUE,
		name       TEXT NOT NULL,
		platform   TEXT NOT NULL,
		push_token TEXT NOT NULL,
		created_at TEXT NOT NULL,
		created_by TEXT
	)`
	settingsTable = `CREATE TABLE IF NOT EXISTS sealpush_settings (
		name  TEXT PRIMARY KEY,
		value TEXT NOT NULL
	)`
	tablesLock = `SELECT pg_advisory_xact_lock(8387230152716420)` // any number that nobody else locks

	selectSalt = `SELECT value FROM sealpush_settings WHERE name = 'collapse_salt'`
	insertSalt = `INSERT INTO sealpush_settings (name, value) VALUES ('collapse_salt', $1)
		ON CONFLICT (name) DO UPDATE SET value = sealpush_settings.value RETURNING value`

	selectDevices = `SELECT id, public_key, name, platform, push_token, created_at, created_by FROM sealpush_devices`
	upsertDevice  = `INSERT INTO sealpush_devices (id, public_key, name, platform, push_token, created_at, created_by)
		VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (public_key) DO UPDATE
			SET name = excluded.name, platform = excluded.platform, push_token = excluded.push_token
		RETURNING id, created_at, created_by`
	deleteDevice = `DELETE FROM sealpush_devices WHERE id = $1`
)

// Load implements [Store].
func (s *SQLStore) Load(ctx context.Context) (snap Snapshot, err error) {
	err = s.do(ctx, "read the registry", func(conn *sql.Conn) error {
		var salt string
		err := conn.QueryRowContext(ctx, selectSalt).Scan(&salt)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		snap.Salt = secret.New(salt)
		rows, err := conn.QueryContext(ctx, selectDevices)
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
	var d Device
	var key, token, createdAt string
	var createdBy sql.NullString
	if err := rows.Scan(&d.ID, &key, &d.Name, &d.Platform, &token, &createdAt, &createdBy); err != nil {
		return err
	}
	d.PushToken = secret.New(token)
	d.CreatedAt, d.CreatedBy = parseTime(createdAt), createdBy.String
	d.ReadKey("", key)
	if d.Unusable != nil {
		d.Unusable = fmt.Errorf("pairing: sealpush_devices: device with id %q: %w", d.ID, d.Unusable)
	}
	snap.Devices = append(snap.Devices, d)
	return nil
}

// Pair implements [Store].
func (s *SQLStore) Pair(ctx context.Context, d Device) (stored Device, created bool, err error) {
	stored = d
	err = s.do(ctx, "pair a device", func(conn *sql.Conn) error {
		var createdAt string
		var createdBy sql.NullString
		row := conn.QueryRowContext(ctx, upsertDevice, d.ID, d.PublicKey.String(), d.Name, d.Platform, d.PushToken.Reveal(),
			formatTime(d.CreatedAt), nullable(d.CreatedBy))
		if err := row.Scan(&stored.ID, &createdAt, &createdBy); err != nil {
			return err
		}
		stored.CreatedAt, stored.CreatedBy = parseTime(createdAt), createdBy.String
		return nil
	})
	if err != nil {
		return Device{}, false, err
	}
	return stored, stored.ID == d.ID, nil
}

// Revoke implements [Store].
func (s *SQLStore) Revoke(ctx context.Context, id string) error {
	return s.do(ctx, "revoke a device", func(conn *sql.Conn) error {
		result, err := conn.ExecContext(ctx, deleteDevice, id)
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
	var salt string
	err := s.do(ctx, "store the collapse salt", func(conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, insertSalt, candidate.Reveal()).Scan(&salt)
	})
	return secret.New(salt), err
}

// do runs fn on a connection to a database that has our tables. An error of it says what could not be done.
func (s *SQLStore) do(ctx context.Context, what string, fn func(*sql.Conn) error) error {
	if s.db == nil {
		return errors.New("pairing: this SQLStore was not made by NewSQL")
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("pairing: connect to %s to %s: %w", s.dialect, what, err)
	}
	defer conn.Close()
	if err := s.prepare(ctx, conn); err != nil {
		return fmt.Errorf("pairing: prepare %s to %s: %w", s.dialect, what, err)
	}
	err = fn(conn)
	if err == nil || errors.Is(err, ErrUnknownDevice) {
		return err
	}
	return fmt.Errorf("pairing: %s in %s: %w", what, s.dialect, err)
}

func (s *SQLStore) prepare(ctx context.Context, conn *sql.Conn) error {
	if s.dialect == SQLite {
		if err := waitWhenBusy(ctx, conn); err != nil {
			return err
		}
	}
	if s.ready.Load() {
		return nil
	}
	if err := s.makeTables(ctx, conn); err != nil {
		return err
	}
	s.ready.Store(true)
	return nil
}

// waitWhenBusy makes a connection on which nobody set a busy timeout wait its turn to write, where SQLite would fail at
// once with "database is locked".
func waitWhenBusy(ctx context.Context, conn *sql.Conn) error {
	var milliseconds int
	if err := conn.QueryRowContext(ctx, `PRAGMA busy_timeout`).Scan(&milliseconds); err != nil || milliseconds > 0 {
		return err
	}
	_, err := conn.ExecContext(ctx, `PRAGMA busy_timeout = 5000`)
	return err
}

// makeTables makes what is missing. It looks first, as a user who may not make tables may not even say IF NOT EXISTS.
// PostgreSQL fails when two sessions make the same table at once, IF NOT EXISTS or not, hence the lock.
func (s *SQLStore) makeTables(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, tablesProbe); err == nil {
		return nil
	}
	statements := []string{devicesTable, settingsTable}
	if s.dialect == PostgreSQL {
		statements = append([]string{tablesLock}, statements...)
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, statement := range statements {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("make the tables: %w", err)
		}
	}
	return tx.Commit()
}
