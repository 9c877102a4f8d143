// Package sqltable finds a program's own tables in a database that others use as well.
package sqltable

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Querier is a [sql.DB] or a [sql.Conn].
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// A Candidate is a schema of a PostgreSQL connection's search path, and one of the tables that it has.
type Candidate struct {
	Schema  string
	Table   string // empty for a schema that has none of them
	Owner   string // the table's
	Columns string // those that were asked for and are there, with spaces between

	// Trusted says that whoever could have put triggers on the table may do worse anyway: a trigger runs with the rights
	// of the role that writes to its table.
	Trusted bool
}

// Usable reports whether there is a table that can be used.
func (c Candidate) Usable() bool { return c.Table != "" && c.Trusted }

// Problem says why a table cannot be used. It is nil when there is none, or when it can.
func (c Candidate) Problem() error {
	if c.Table == "" || c.Trusted {
		return nil
	}
	return fmt.Errorf("the table %s.%s belongs to the role %s, which may have put triggers on it: drop it, or "+
		"have its owner changed to a role that this connection's role is a member of", c.Schema, c.Table, c.Owner)
}

// lookup returns a row for each schema that tables may be in and each table that it has, in the order of the search
// path: the first schema is where tables are made. Trusted owners are the connection's role or one that it is a member
// of; a superuser; the owner of the database; or the owner of the schema, unless that schema is the "$user" of the
// search path: other roles may have made it.
const lookup = `SELECT n.nspname, c.relname, pg_catalog.pg_get_userbyid(c.relowner),
		c.relowner = me.oid OR owner.rolsuper OR c.relowner = db.datdba
			OR NOT me.rolsuper AND pg_catalog.pg_has_role(c.relowner, 'MEMBER')
			OR c.relowner = n.nspowner AND n.nspname <> current_user,
		pg_catalog.array_to_string(ARRAY(SELECT a.attname FROM pg_catalog.pg_attribute a
			WHERE a.attrelid = c.oid AND NOT a.attisdropped AND a.attname IN ({columns})), ' ')
	FROM pg_catalog.unnest(pg_catalog.current_schemas(false)) WITH ORDINALITY AS path (name, position)
	JOIN pg_catalog.pg_namespace n ON n.nspname = path.name
	JOIN pg_catalog.pg_roles me ON me.rolname = current_user
	JOIN pg_catalog.pg_database db ON db.datname = pg_catalog.current_database()
	LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v') AND c.relname IN ({tables})
	LEFT JOIN pg_catalog.pg_roles owner ON owner.oid = c.relowner
	ORDER BY path.position`

// Candidates returns what a PostgreSQL connection has of the tables, one or more for each schema, in the order of the
// search path. There is one at least.
func Candidates(ctx context.Context, db Querier, tables, columns []string) ([]Candidate, error) {
	rows, err := db.QueryContext(ctx, strings.NewReplacer("{tables}", literals(tables), "{columns}", literals(columns)).Replace(lookup))
	if err != nil {
		return nil, fmt.Errorf("look its tables up: %w", err)
	}
	defer rows.Close()
	var candidates []Candidate
	for rows.Next() {
		var c Candidate
		var table, owner, columns sql.NullString
		var trusted sql.NullBool
		if err := rows.Scan(&c.Schema, &table, &owner, &trusted, &columns); err != nil {
			return nil, fmt.Errorf("look its tables up: %w", err)
		}
		c.Table, c.Owner, c.Columns, c.Trusted = table.String, owner.String, columns.String, trusted.Bool
		candidates = append(candidates, c)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("look its tables up: %w", err)
	}
	if len(candidates) == 0 {
		return nil, errors.New("the connection's search_path names no schema that exists and that its role may use")
	}
	return candidates, nil
}

// literals are names in a list of SQL.
func literals(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = "'" + strings.ReplaceAll(name, "'", "''") + "'"
	}
	if len(quoted) == 0 {
		return "NULL"
	}
	return strings.Join(quoted, ", ")
}

// Quote returns a schema's name as it is written in a statement.
func Quote(schema string) string { return `"` + strings.ReplaceAll(schema, `"`, `""`) + `"` }

// In puts the schema of the tables, quoted, in the places of {schema} in a statement.
func In(schema, statement string) string { return strings.ReplaceAll(statement, "{schema}", schema) }

// Choose returns the schema of the first candidate that can be used, or else the first one's, to make tables in.
func Choose(candidates []Candidate) string {
	if i := slices.IndexFunc(candidates, Candidate.Usable); i >= 0 {
		return candidates[i].Schema
	}
	return candidates[0].Schema
}

// LocatePostgreSQL returns the schema of the tables, quoted, and which of them are to be made there. The error says why
// a table of the right name is not to be used.
func LocatePostgreSQL(ctx context.Context, db Querier, tables ...string) (schema string, missing []string, err error) {
	candidates, err := Candidates(ctx, db, tables, nil)
	if err != nil {
		return "", nil, err
	}
	schema = Choose(candidates)
	missing = slices.Clone(tables)
	for _, c := range candidates {
		if c.Schema != schema || c.Table == "" {
			continue
		}
		if err := c.Problem(); err != nil {
			return "", nil, err
		}
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == c.Table })
	}
	return Quote(schema), missing, nil
}

// LocateSQLite is [LocatePostgreSQL] for SQLite.
func LocateSQLite(ctx context.Context, db *sql.DB, tables ...string) (schema string, missing []string, err error) {
	if err := CheckMemory(ctx, db, db); err != nil {
		return "", nil, err
	}
	rows, err := db.QueryContext(ctx, `SELECT name FROM main.sqlite_master WHERE type IN ('table', 'view')`)
	if err != nil {
		return "", nil, fmt.Errorf("look its tables up: %w", err)
	}
	defer rows.Close()
	missing = slices.Clone(tables)
	for rows.Next() {
		var found string
		if err := rows.Scan(&found); err != nil {
			return "", nil, fmt.Errorf("look its tables up: %w", err)
		}
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == found })
	}
	if err := rows.Err(); err != nil {
		return "", nil, fmt.Errorf("look its tables up: %w", err)
	}
	return "main", missing, nil
}

// CheckMemory refuses an SQLite database in memory that each connection of the pool has one of. The querier is the pool
// or a connection of it.
func CheckMemory(ctx context.Context, pool *sql.DB, db Querier) error {
	rows, err := db.QueryContext(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`)
	if err != nil {
		return err
	}
	defer rows.Close()
	var file sql.NullString
	for rows.Next() {
		if err := rows.Scan(&file); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if file.String == "" && pool.Stats().MaxOpenConnections != 1 {
		return errors.New("a database in memory belongs to one connection: open a file, or call SetMaxOpenConns(1) on the *sql.DB")
	}
	return nil
}
