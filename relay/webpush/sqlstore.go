package webpush

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sealpush/sealpush/internal/sqlretry"
	"github.com/sealpush/sealpush/internal/sqltable"
	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/secret"
)

// An SQLStore keeps subscriptions in a database, beside a [relay.SQLState] if that is in the same one: one row a device
// token in the table sealpush_relay_subscriptions. It also keeps the relay's VAPID key and its invitation, in the table
// sealpush_relay_settings. Relays that share the database have the same key and subscriptions. The tables are made on
// first use, in the first schema of the connection's search path; a database user who may not do so needs them made
// beforehand:
//
//	CREATE TABLE sealpush_relay_subscriptions (
//		device TEXT PRIMARY KEY, secret_hash TEXT NOT NULL, endpoint TEXT NOT NULL,
//		p256dh TEXT NOT NULL, auth TEXT NOT NULL, updated_at BIGINT NOT NULL);
//	CREATE TABLE sealpush_relay_settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
//
// On PostgreSQL, a table of another role, which may have put triggers on it, is refused; see pairing.SQLStore for the
// owners that are trusted. An SQLite database in memory belongs to one connection, and is refused unless db has at most
// one (SetMaxOpenConns).
//
// Protect the database: anybody who reads these tables can push to every phone in them, but cannot read their alerts.
//
// If several relays add subscriptions at the same moment, the limit may be exceeded by their number.
type SQLStore struct {
	db      *sql.DB
	dialect relay.Dialect
	schema  atomic.Pointer[string] // in which the tables were found; nil while they are to be looked for
}

// NewSQLStore returns the store in a database that was opened with a driver of the caller's choice, such as
// github.com/jackc/pgx/v5/stdlib or modernc.org/sqlite. It does not connect yet. Closing db is the caller's, after the
// relay.
func NewSQLStore(db *sql.DB, dialect relay.Dialect) (*SQLStore, error) {
	if db == nil {
		return nil, errors.New("webpush: NewSQLStore needs a database")
	}
	if dialect != relay.PostgreSQL && dialect != relay.SQLite {
		return nil, fmt.Errorf("webpush: unknown SQL dialect %q: use relay.PostgreSQL or relay.SQLite", string(dialect))
	}
	return &SQLStore{db: db, dialect: dialect}, nil
}

// Format writes the dialect, whatever the verb: the database's password is within.
func (s *SQLStore) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "webpush.SQLStore{%s}", s.dialect) }

var tableNames = []string{"sealpush_relay_subscriptions", "sealpush_relay_settings"}

// Both dialects number their parameters $1, $2, … and know ON CONFLICT. Times are Unix time in seconds. A subscription
// that has ended has an empty endpoint. {schema} stands for the schema of the tables: a name without it could mean a
// table of somebody else.
var createTables = []string{
	`CREATE TABLE IF NOT EXISTS {schema}.sealpush_relay_subscriptions (
		device TEXT PRIMARY KEY, secret_hash TEXT NOT NULL, endpoint TEXT NOT NULL,
		p256dh TEXT NOT NULL, auth TEXT NOT NULL, updated_at BIGINT NOT NULL)`,
	`CREATE TABLE IF NOT EXISTS {schema}.sealpush_relay_settings (name TEXT PRIMARY KEY, value TEXT NOT NULL)`,
}

const (
	insertSubscription = `INSERT INTO {schema}.sealpush_relay_subscriptions (device, secret_hash, endpoint, p256dh, auth, updated_at)
		SELECT CAST($1 AS TEXT), CAST($2 AS TEXT), CAST($3 AS TEXT), CAST($4 AS TEXT), CAST($5 AS TEXT), CAST($6 AS BIGINT)
		WHERE (SELECT count(*) FROM {schema}.sealpush_relay_subscriptions) < CAST($7 AS BIGINT)`
	deleteEnded        = `DELETE FROM {schema}.sealpush_relay_subscriptions WHERE endpoint = '' AND updated_at < $1`
	selectSubscription = `SELECT secret_hash, endpoint, p256dh, auth, updated_at FROM {schema}.sealpush_relay_subscriptions WHERE device = $1`
	updateSubscription = `UPDATE {schema}.sealpush_relay_subscriptions SET endpoint = $2, p256dh = $3, auth = $4, updated_at = $5 WHERE device = $1`
	endSubscription    = `UPDATE {schema}.sealpush_relay_subscriptions SET endpoint = '', p256dh = '', auth = '', updated_at = $3
		WHERE device = $1 AND endpoint = $2`
	deleteSubscription = `DELETE FROM {schema}.sealpush_relay_subscriptions WHERE device = $1`

	insertSetting = `INSERT INTO {schema}.sealpush_relay_settings (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`
	selectSetting = `SELECT value FROM {schema}.sealpush_relay_settings WHERE name = $1`
)

// Key returns the relay's VAPID key, and makes one if there is none.
func (s *SQLStore) Key(ctx context.Context) (*Key, error) {
	text, err := s.setting(ctx, "vapid_key", GenerateKey().Private())
	if err != nil {
		return nil, err
	}
	return ParseKey(text)
}

// Invitation returns the relay's invitation, and makes one if there is none: see [NewSubscriptions].
func (s *SQLStore) Invitation(ctx context.Context) (secret.Text, error) {
	return s.setting(ctx, "invitation", secret.New(rand.Text()))
}

func (s *SQLStore) setting(ctx context.Context, name string, candidate secret.Text) (secret.Text, error) {
	var value string
	err := s.do(ctx, func(ctx context.Context, schema string) error {
		if _, err := s.db.ExecContext(ctx, sqltable.In(schema, insertSetting), name, candidate.Reveal()); err != nil {
			return err
		}
		return s.db.QueryRowContext(ctx, sqltable.In(schema, selectSetting), name).Scan(&value)
	})
	return secret.New(value), err
}

// Add is [Store.Add].
func (s *SQLStore) Add(ctx context.Context, kept Stored, limit int) error {
	to := kept.Subscription
	insert := func() error {
		return s.change(ctx, ErrStoreFull, insertSubscription, kept.Device, kept.SecretHash,
			to.Endpoint.Reveal(), to.P256DH, to.Auth.Reveal(), kept.Updated.Unix(), limit)
	}
	err := insert()
	if !errors.Is(err, ErrStoreFull) {
		return err
	}
	if err := s.change(ctx, ErrStoreFull, deleteEnded, kept.Updated.Add(-endedLife).Unix()); err != nil {
		return err
	}
	return insert()
}

// Get is [Store.Get].
func (s *SQLStore) Get(ctx context.Context, device string) (Stored, error) {
	kept := Stored{Device: device}
	err := s.do(ctx, func(ctx context.Context, schema string) error {
		var endpoint, auth string
		var updated int64
		err := s.db.QueryRowContext(ctx, sqltable.In(schema, selectSubscription), device).
			Scan(&kept.SecretHash, &endpoint, &kept.Subscription.P256DH, &auth, &updated)
		kept.Subscription.Endpoint, kept.Subscription.Auth = secret.New(endpoint), secret.New(auth)
		kept.Updated = time.Unix(updated, 0)
		if errors.Is(err, sql.ErrNoRows) {
			return ErrNotFound
		}
		return err
	})
	if err != nil {
		return Stored{}, err
	}
	return kept, nil
}

// Replace is [Store.Replace].
func (s *SQLStore) Replace(ctx context.Context, device string, to Subscription, now time.Time) error {
	return s.change(ctx, ErrNotFound, updateSubscription, device, to.Endpoint.Reveal(), to.P256DH, to.Auth.Reveal(), now.Unix())
}

// End is [Store.End].
func (s *SQLStore) End(ctx context.Context, device string, endpoint secret.Text, now time.Time) error {
	return s.change(ctx, nil, endSubscription, device, endpoint.Reveal(), now.Unix())
}

// Delete is [Store.Delete].
func (s *SQLStore) Delete(ctx context.Context, device string) error {
	return s.change(ctx, ErrNotFound, deleteSubscription, device)
}

// change runs a statement. The error is unchanged if no row was written.
func (s *SQLStore) change(ctx context.Context, unchanged error, statement string, args ...any) error {
	return s.do(ctx, func(ctx context.Context, schema string) error {
		result, err := s.db.ExecContext(ctx, sqltable.In(schema, statement), args...)
		if err != nil {
			return err
		}
		rows, err := result.RowsAffected()
		if err == nil && rows == 0 {
			return unchanged
		}
		return err
	})
}

// do runs statements on the tables of a schema, again after a failure that passes.
func (s *SQLStore) do(ctx context.Context, run func(ctx context.Context, schema string) error) error {
	if ctx == nil {
		ctx = context.Background()
	}
	for {
		schema, err := s.tables(ctx)
		if err == nil {
			err = run(ctx, schema)
		}
		switch {
		case err == nil, errors.Is(err, ErrNotFound), errors.Is(err, ErrStoreFull):
			return err
		case !sqlretry.Passing(err):
			return fmt.Errorf("webpush: %s: %w", s.dialect, err)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("webpush: %s: %w", s.dialect, err)
		}
	}
}

// tables finds the tables, and makes those that are missing.
func (s *SQLStore) tables(ctx context.Context) (schema string, err error) {
	if known := s.schema.Load(); known != nil {
		return *known, nil
	}
	schema, missing, err := s.locate(ctx)
	if err == nil && len(missing) > 0 {
		var created error
		for _, statement := range createTables {
			_, err := s.db.ExecContext(ctx, sqltable.In(schema, statement))
			created = errors.Join(created, err)
		}
		if schema, missing, err = s.locate(ctx); err == nil && len(missing) > 0 { // or else another relay was faster
			err = cmp.Or(created, errors.New("the tables have vanished"))
		}
	}
	if err != nil {
		return "", err
	}
	s.schema.Store(&schema)
	return schema, nil
}

func (s *SQLStore) locate(ctx context.Context) (schema string, missing []string, err error) {
	if s.dialect == relay.SQLite {
		return sqltable.LocateSQLite(ctx, s.db, tableNames...)
	}
	return sqltable.LocatePostgreSQL(ctx, s.db, tableNames...)
}
