package pairing

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/sealpush/sealpush/internal/sqltable"
)

// tables is what a connection has of our tables.
type tables struct {
	schema   string   // of the tables, or where to make them; quoted for use in a statement
	devices  bool     // sealpush_devices is there
	settings bool     // sealpush_settings is there
	missing  []string // columns that sealpush_devices lacks, as older versions made it
	foreign  error    // why a table of the right name is not used; nil when there is none
	taken    bool     // such a table is in schema
}

func (found tables) complete() bool { return found.devices && found.settings }

const (
	tableNames = "sealpush_devices sealpush_settings"
	newColumns = "updated_at updated_by suite" // of sealpush_devices, which older versions made without them

	lookupSQLite = `SELECT t.name, (SELECT group_concat(name, ' ') FROM pragma_table_info(t.name, 'main'))
		FROM main.sqlite_master t
		WHERE t.type IN ('table', 'view') AND t.name IN ('sealpush_devices', 'sealpush_settings')`
)

// findTables looks up our tables. Each use does so again, because somebody may have dropped them, or made others of the
// same names.
func (s *SQLStore) findTables(ctx context.Context, conn *sql.Conn) (found tables, err error) {
	lookUp := s.lookUpPostgreSQL
	if s.dialect == SQLite {
		lookUp = s.lookUpSQLite
	}
	candidates, err := lookUp(ctx, conn)
	if err != nil {
		return tables{}, err
	}
	found = choose(candidates)
	if found.complete() {
		s.seen.Store(true)
	}
	return found, nil
}

func (s *SQLStore) lookUpPostgreSQL(ctx context.Context, conn *sql.Conn) ([]sqltable.Candidate, error) {
	return sqltable.Candidates(ctx, conn, strings.Fields(tableNames), strings.Fields(newColumns))
}

func (s *SQLStore) lookUpSQLite(ctx context.Context, conn *sql.Conn) ([]sqltable.Candidate, error) {
	if err := s.prepareSQLite(ctx, conn); err != nil {
		return nil, err
	}
	rows, err := conn.QueryContext(ctx, lookupSQLite)
	if err != nil {
		return nil, fmt.Errorf("look its tables up: %w", err)
	}
	defer rows.Close()
	candidates := []sqltable.Candidate{{Schema: "main"}}
	for rows.Next() {
		c := sqltable.Candidate{Schema: "main", Trusted: true}
		if err := rows.Scan((*text)(&c.Table), (*text)(&c.Columns)); err != nil {
			return nil, fmt.Errorf("look its tables up: %w", err)
		}
		candidates = append(candidates, c)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("look its tables up: %w", err)
	}
	return candidates, nil
}

// choose takes the first schema with a table that can be used, or else the first one, to make the tables in.
func choose(candidates []sqltable.Candidate) (found tables) {
	schema := sqltable.Choose(candidates)
	found.schema = sqltable.Quote(schema)
	for _, c := range candidates {
		here := c.Schema == schema
		switch {
		case c.Table == "":
		case !c.Usable():
			if found.foreign == nil || here {
				found.foreign = c.Problem()
			}
			found.taken = found.taken || here
		case here && c.Table == "sealpush_devices":
			found.devices = true
			has := strings.Fields(c.Columns)
			found.missing = slices.DeleteFunc(strings.Fields(newColumns), func(name string) bool { return slices.Contains(has, name) })
		case here:
			found.settings = true
		}
	}
	return found
}

// prepareSQLite makes a connection on which nobody set a busy timeout wait its turn to write, where SQLite would fail
// at once with "database is locked". It refuses a database in memory that each connection of the pool has one of.
func (s *SQLStore) prepareSQLite(ctx context.Context, conn *sql.Conn) error {
	var milliseconds int
	if err := conn.QueryRowContext(ctx, `PRAGMA busy_timeout`).Scan(&milliseconds); err != nil {
		return err
	}
	if milliseconds == 0 {
		if _, err := conn.ExecContext(ctx, `PRAGMA busy_timeout = 5000`); err != nil {
			return err
		}
	}
	return sqltable.CheckMemory(ctx, s.db, conn)
}

// The statements that make the tables; docs/fleet.md has them too. A column that is added later must be nullable or
// have a default, and no constraint may be added: nodes of older versions write to the same tables.
const (
	devicesTable = `CREATE TABLE {schema}.sealpush_devices (
		id         TEXT PRIMARY KEY,
		public_key TEXT NOT NULL UNIQUE,
		name       TEXT NOT NULL,
		platform   TEXT NOT NULL,
		push_token TEXT NOT NULL,
		created_at TEXT NOT NULL,
		created_by TEXT,
		updated_at TEXT,
		updated_by TEXT,
		suite      TEXT
	)`
	settingsTable = `CREATE TABLE {schema}.sealpush_settings (
		name  TEXT PRIMARY KEY,
		value TEXT NOT NULL
	)`
	addColumn = `ALTER TABLE {schema}.sealpush_devices ADD COLUMN `
	// ALTER TABLE waits for every reader of the table, and every later reader waits for it.
	limitLockWait = `SET LOCAL lock_timeout = '2s'`
)

// name puts the schema of the tables into a statement.
func (found tables) name(statement string) string { return sqltable.In(found.schema, statement) }

// makeTables makes what is missing of the tables, and of their columns. When several nodes do so at once, one of them
// succeeds and the others look again. It takes no lock that another role could hold.
func (s *SQLStore) makeTables(ctx context.Context, conn *sql.Conn, found tables) (tables, error) {
	if found.complete() && len(found.missing) == 0 {
		return found, nil
	}
	err := s.inTransaction(ctx, conn, func() error {
		var err error
		if found, err = s.findTables(ctx, conn); err != nil { // SQLite: now that nobody else writes
			return err
		}
		if found.taken {
			return found.foreign
		}
		var statements []string
		if len(found.missing) > 0 && s.dialect == PostgreSQL {
			statements = append(statements, limitLockWait)
		}
		for _, column := range found.missing {
			statements = append(statements, addColumn+column+` TEXT`)
		}
		if !found.devices {
			statements = append(statements, devicesTable)
		}
		if !found.settings {
			statements = append(statements, settingsTable)
		}
		for _, statement := range statements {
			if _, err := conn.ExecContext(ctx, found.name(statement)); err != nil {
				return tableError(err)
			}
		}
		return nil
	})
	if err != nil {
		return tables{}, err
	}
	return s.findTables(ctx, conn)
}

// tableError says what to do when tables cannot be made.
func tableError(err error) error {
	switch sqlState(err) {
	case "42P07", "42701", "42710", "23505": // duplicate_table, _column, _object; unique_violation, in the catalog
		return fmt.Errorf("%w: %w", errAgain, err)
	case "42501": // insufficient_privilege
		return fmt.Errorf("make the tables or their new columns: have the statements in docs/fleet.md run by a role that may: %w", err)
	case "55P03": // lock_not_available
		return fmt.Errorf("add the new columns: sealpush_devices is in use (a backup?): try again: %w", err)
	}
	return fmt.Errorf("make the tables: %w", err)
}

// inTransaction commits what fn does on the connection, or undoes it when fn fails. Under SQLite, nobody else writes
// meanwhile.
func (s *SQLStore) inTransaction(ctx context.Context, conn *sql.Conn, fn func() error) error {
	begin := `BEGIN`
	if s.dialect == SQLite {
		begin = `BEGIN IMMEDIATE` // package database/sql begins without a lock, and SQLite cannot always get one later
	}
	_, err := conn.ExecContext(ctx, begin)
	if err != nil {
		return err
	}
	if err = fn(); err == nil {
		_, err = conn.ExecContext(ctx, `COMMIT`)
	}
	if err == nil {
		return nil
	}
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, undoErr := conn.ExecContext(undo, `ROLLBACK`); undoErr != nil {
		conn.Raw(func(any) error { return driver.ErrBadConn }) // so that the pool does not use it again
	}
	return err
}

// errAgain is wrapped by an error after which the same operation may succeed.
var errAgain = errors.New("another node was faster")

// repeat calls fn again, at most nine times and after a short wait, while its error says that this may help: the
// database aborted the operation, or the connection was lost before it began.
func repeat(ctx context.Context, fn func() error) error {
	wait := 5 * time.Millisecond
	for range 9 {
		err := fn()
		again := errors.Is(err, errAgain) || errors.Is(err, driver.ErrBadConn) ||
			slices.Contains([]string{"40001", "40P01"}, sqlState(err)) // serialization_failure, deadlock_detected
		if !again {
			return err
		}
		timer := time.NewTimer(wait/2 + rand.N(wait))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(err, ctx.Err())
		}
		wait = min(2*wait, 500*time.Millisecond)
	}
	return fn()
}

// sqlState returns the five characters by which PostgreSQL classifies an error (appendix A of its manual), "" for
// another error. The errors of pgx and of lib/pq have this method.
func sqlState(err error) string {
	var state interface{ SQLState() string }
	if errors.As(err, &state) {
		return state.SQLState()
	}
	return ""
}
