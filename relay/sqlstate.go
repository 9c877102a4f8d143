package relay

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/maphash"
	"sync/atomic"
	"time"

	"github.com/sealpush/sealpush/internal/sqlretry"
	"github.com/sealpush/sealpush/internal/sqltable"
)

// A Dialect is the kind of database behind an [SQLState].
type Dialect string

// The dialects that [NewSQLState] knows.
const (
	PostgreSQL Dialect = "PostgreSQL" // 9.5 or newer
	SQLite     Dialect = "SQLite"     // 3.35 or newer
)

// An SQLState keeps devices in a database, for relays that must survive a restart, and for several relays that serve
// the same phones: one row a device, in the table sealpush_relay_devices, under a hash of its token. The table is made
// on first use, in the first schema of the connection's search path, and again when it has vanished; a database user who
// may not do so needs it made beforehand:
//
//	CREATE TABLE sealpush_relay_devices (
//		device TEXT PRIMARY KEY, record BYTEA NOT NULL, forget_at BIGINT NOT NULL);
//	CREATE INDEX sealpush_relay_forget ON sealpush_relay_devices (forget_at);
//
// A change takes two statements and no transaction that spans them: it is written only if the row is still as it was
// read, and done anew otherwise. Rows that no longer matter make room for new ones.
//
// On PostgreSQL, a table of another role, which may have put triggers on it, is refused; see pairing.SQLStore for the
// owners that are trusted. An SQLite database in memory belongs to one connection, and is refused unless db has at most
// one (SetMaxOpenConns).
//
// The clocks of relays that share a state should agree to within 5 seconds.
type SQLState struct {
	db      *sql.DB
	dialect Dialect
	schema  atomic.Pointer[string] // in which the table was found; nil while it is to be looked for

	// Changes of one device by this process go one after the other, so that a burst of them does not compete in the
	// database. SQLite has one turn for all, as it writes one row at a time.
	seed  maphash.Seed
	turns []chan struct{}
}

// NewSQLState returns the state in a database that was opened with a driver of the caller's choice, such as
// github.com/jackc/pgx/v5/stdlib or modernc.org/sqlite. It does not connect yet. Closing db is the caller's, after the
// relay.
func NewSQLState(db *sql.DB, dialect Dialect) (*SQLState, error) {
	if db == nil {
		return nil, errors.New("relay: NewSQLState needs a database")
	}
	s := &SQLState{db: db, dialect: dialect, seed: maphash.MakeSeed()}
	switch dialect {
	case PostgreSQL:
		s.turns = make([]chan struct{}, 64)
	case SQLite:
		s.turns = make([]chan struct{}, 1)
	default:
		return nil, fmt.Errorf("relay: unknown SQL dialect %q: use PostgreSQL or SQLite", string(dialect))
	}
	for i := range s.turns {
		s.turns[i] = make(chan struct{}, 1)
	}
	return s, nil
}

const stateTable = "sealpush_relay_devices"

// Both dialects number their parameters $1, $2, … and know ON CONFLICT. {schema} stands for the schema of the table: a
// name without it could mean a table of somebody else.
const (
	createTable = `CREATE TABLE IF NOT EXISTS {schema}.sealpush_relay_devices (
		device TEXT PRIMARY KEY, record %s NOT NULL, forget_at BIGINT NOT NULL)`
	createIndexPostgreSQL = `CREATE INDEX IF NOT EXISTS sealpush_relay_forget ON {schema}.sealpush_relay_devices (forget_at)`
	createIndexSQLite     = `CREATE INDEX IF NOT EXISTS {schema}.sealpush_relay_forget ON sealpush_relay_devices (forget_at)`
	readRecord            = `SELECT record FROM {schema}.sealpush_relay_devices WHERE device = $1`
	insertRecord          = `INSERT INTO {schema}.sealpush_relay_devices (device, record, forget_at) VALUES ($1, $2, $3)
		ON CONFLICT (device) DO NOTHING`
	updateRecord = `UPDATE {schema}.sealpush_relay_devices SET record = $2, forget_at = $3 WHERE device = $1 AND record = $4`
	deleteRecord = `DELETE FROM {schema}.sealpush_relay_devices WHERE device = $1 AND record = $2`
	deleteOld    = `DELETE FROM {schema}.sealpush_relay_devices WHERE device IN (
		SELECT device FROM {schema}.sealpush_relay_devices WHERE forget_at <= $1 LIMIT 10)`
)

// Update is [State.Update].
func (s *SQLState) Update(ctx context.Context, now time.Time, key string, change ChangeFunc) error {
	if ctx == nil {
		ctx = context.Background()
	}
	turn := s.turns[maphash.String(s.seed, key)%uint64(len(s.turns))]
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return s.failed(ctx.Err())
	}
	for {
		done, err := s.try(ctx, now, key, change)
		switch {
		case err == nil && done:
			return nil
		case err == nil: // Another relay was faster.
		case !sqlretry.Passing(err):
			s.schema.Store(nil) // somebody may have dropped the table
			return s.failed(err)
		default:
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				return s.failed(err)
			}
		}
	}
}

func (s *SQLState) failed(err error) error { return fmt.Errorf("relay: %s: %w", s.dialect, err) }

// table finds the table, and makes it if there is none.
func (s *SQLState) table(ctx context.Context) (schema string, err error) {
	if known := s.schema.Load(); known != nil {
		return *known, nil
	}
	schema, missing, err := s.locate(ctx)
	if err == nil && len(missing) > 0 {
		created := s.create(ctx, schema)
		if schema, missing, err = s.locate(ctx); err == nil && len(missing) > 0 { // or else another relay was faster
			err = cmp.Or(created, errors.New("the table has vanished"))
		}
	}
	if err != nil {
		return "", err
	}
	s.schema.Store(&schema)
	return schema, nil
}

func (s *SQLState) locate(ctx context.Context) (schema string, missing []string, err error) {
	if s.dialect == SQLite {
		return sqltable.LocateSQLite(ctx, s.db, stateTable)
	}
	return sqltable.LocatePostgreSQL(ctx, s.db, stateTable)
}

func (s *SQLState) create(ctx context.Context, schema string) error {
	statements := []string{fmt.Sprintf(createTable, "BYTEA"), createIndexPostgreSQL}
	if s.dialect == SQLite {
		statements = []string{fmt.Sprintf(createTable, "BLOB"), createIndexSQLite}
	}
	for _, statement := range statements {
		if _, err := s.db.ExecContext(ctx, sqltable.In(schema, statement)); err != nil {
			return err
		}
	}
	return nil
}

// try reads and writes once. It is not done when another relay wrote in between.
func (s *SQLState) try(ctx context.Context, now time.Time, key string, change ChangeFunc) (done bool, err error) {
	schema, err := s.table(ctx)
	if err != nil {
		return false, err
	}
	exec := func(statement string, args ...any) (sql.Result, error) {
		return s.db.ExecContext(ctx, sqltable.In(schema, statement), args...)
	}
	var record []byte
	err = s.db.QueryRowContext(ctx, sqltable.In(schema, readRecord), key).Scan(&record)
	known := err == nil
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return false, err
	}
	changed, until := change(record)
	var result sql.Result
	switch {
	case !known && changed == nil, known && bytes.Equal(changed, record):
		return true, nil
	case !known:
		result, err = exec(insertRecord, key, changed, until.UnixNano())
	case changed == nil:
		result, err = exec(deleteRecord, key, record)
	default:
		result, err = exec(updateRecord, key, changed, until.UnixNano(), record)
	}
	if err != nil {
		return false, err
	}
	rows, err := result.RowsAffected()
	if err == nil && rows > 0 && !known {
		exec(deleteOld, now.UnixNano()) // what fails now is deleted later
	}
	return rows > 0, err
}
