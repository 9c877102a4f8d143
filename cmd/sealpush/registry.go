package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	_ "github.com/jackc/pgx/v5/stdlib" // registers "pgx"
	_ "modernc.org/sqlite"             // registers "sqlite"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/secret"
)

// A source is where the paired phones are kept.
type source struct {
	store pairing.Store
	where string // the file, or the kind of database; no secret
	file  string // its file, or "" for a database on a server
	db    *sql.DB
}

// close lets go of the database.
func (s *source) close() {
	if s.db != nil {
		s.db.Close()
	}
}

// create makes what a registry in a file needs before the first phone is written: the directory, and for SQLite the
// file, which only its owner may read, for it will hold push tokens.
func (s *source) create() error {
	if s.file == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(s.file), 0o700); err != nil || s.db == nil {
		return err
	}
	file, err := os.OpenFile(s.file, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// openRegistry opens the store that -registry names. A file need not be there. A database is connected to on first use.
func openRegistry(registry string) (*source, error) {
	kind, name := splitRegistry(registry)
	switch {
	case kind == pairing.SQLite && strings.Contains(name, "?"):
		return nil, errors.New("a registry of sqlite:FILE takes no parameters after a question mark")
	case kind == "" && looksSecret(name):
		return nil, errors.New("the registry is no file, and no database that is known: it takes a file, sqlite:FILE, or a URL that begins with postgres://")
	}
	if kind == "" {
		path, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		store, err := pairing.OpenFile(path)
		if err != nil {
			return nil, err
		}
		return &source{store: store, where: path, file: path}, nil
	}
	s := &source{where: "the " + string(kind) + " database"}
	driver := "pgx"
	if kind == pairing.SQLite {
		driver, s.where, s.file = "sqlite", name, name
	}
	var err error
	if s.db, err = sql.Open(driver, name); err != nil {
		return nil, errors.New("the registry's URL cannot be used") // the cause may quote it
	}
	if s.store, err = pairing.NewSQL(s.db, kind); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// splitRegistry tells a database from a file, for which kind is empty.
func splitRegistry(registry string) (kind pairing.Dialect, name string) {
	if name, ok := strings.CutPrefix(registry, "sqlite:"); ok {
		return pairing.SQLite, name
	}
	if strings.HasPrefix(registry, "postgres://") || strings.HasPrefix(registry, "postgresql://") {
		return pairing.PostgreSQL, registry
	}
	return "", registry
}

// looksSecret reports whether what should be the name of a file is the URL or the parameters of a database, which hold its
// password: it is refused, and not printed.
func looksSecret(path string) bool {
	scheme, _, _ := strings.Cut(path, ":")
	isURL := len(scheme) > 1 && len(scheme) < len(path) && !strings.ContainsAny(scheme, `/\\. `) // one letter is a drive
	return isURL || strings.Contains(path, "password=")
}

// registryBeside is a registry that a file in dir names: one in a file is relative to that directory.
func registryBeside(dir, registry string) string {
	switch kind, name := splitRegistry(registry); kind {
	case "":
		if looksSecret(name) {
			return name
		}
		return beside(dir, name)
	case pairing.SQLite:
		return "sqlite:" + beside(dir, name)
	}
	return registry
}

// readOnly is a registry that is looked at and never written: a path with a typo makes no file, and is an error where a
// daemon would start with no phone.
type readOnly struct{ *source }

func (r readOnly) Load(ctx context.Context) (pairing.Snapshot, error) {
	if r.file != "" {
		if _, err := os.Stat(r.file); errors.Is(err, fs.ErrNotExist) {
			return pairing.Snapshot{}, fmt.Errorf("there is no registry at %s: correct -registry, or pair a phone with 'sealpush pair'", r.file)
		}
	}
	return r.store.Load(ctx)
}

// EnsureSalt keeps the candidate for this page alone where the registry has no salt, which it has with its first phone.
func (r readOnly) EnsureSalt(ctx context.Context, candidate secret.Text) (secret.Text, error) {
	snapshot, err := r.store.Load(ctx)
	if snapshot.Salt.IsZero() {
		snapshot.Salt = candidate
	}
	return snapshot.Salt, err
}

var errReadOnly = errors.New("this command only reads the registry")

// Pair is refused.
func (r readOnly) Pair(context.Context, pairing.Device) (pairing.Device, bool, error) {
	return pairing.Device{}, false, errReadOnly
}

// Revoke is refused.
func (r readOnly) Revoke(context.Context, string) error { return errReadOnly }
