// Package sqlretry says whether a statement is worth another attempt, and whether a database is worth the first.
package sqlretry

import (
	"context"
	"database/sql"
	"errors"
	"strings"
)

// Passing reports whether a statement failed for what other connections do, so that
// it may well succeed when it is repeated. It has changed nothing then.
func Passing(err error) bool {
	if err == nil {
		return false
	}
	var code interface{ SQLState() string } // of PostgreSQL's drivers
	if errors.As(err, &code) {
		return code.SQLState() == "40001" || code.SQLState() == "40P01" // serialization, deadlock
	}
	return strings.Contains(err.Error(), "database is locked") // SQLite's drivers have no type in common
}

// ErrMemory is the error of [CheckSQLite].
var ErrMemory = errors.New("a database in memory belongs to one connection: open a file, or call SetMaxOpenConns(1) on the *sql.DB")

// CheckSQLite refuses an SQLite database in memory that each connection of db would have one of.
func CheckSQLite(ctx context.Context, db *sql.DB) error {
	var file sql.NullString
	if err := db.QueryRowContext(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&file); err != nil {
		return err
	}
	if file.String == "" && db.Stats().MaxOpenConnections != 1 {
		return ErrMemory
	}
	return nil
}
