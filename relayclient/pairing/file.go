package pairing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sealpush/sealpush/secret"
)

// maxFile is the largest registry file that is read, in bytes: room for tens of thousands of phones.
const maxFile = 16 << 20

// FileStore keeps the registry in one JSON file, in the format of the deployed daemon (version 1), so that Go and
// Python processes can share it. It is safe for concurrent use, by goroutines and by processes.
//
// The file is read anew on every call. It is replaced as a whole, so that a reader sees the old registry or the new one
// and a crash at any moment leaves one of them; a write has reached the disk when the call returns. Writers take turns
// through a lock on a second file, the registry's name with ".lock" after it, which stays. A program that does not know
// that lock is noticed when it changes the file while we prepare a new one: we start over from its change. Such a
// program can still undo our change, when it reads the file before it and writes after it: pair and revoke phones with
// one such program, or with programs that use this package.
//
// A missing file is an empty registry. A file of 0 bytes is a [CorruptError]: a copy or a full disk may have cut it
// off. A new file has mode 0600, as it holds push tokens and the salt. A file that is there keeps its permissions and
// its group, and so does the lock; it keeps its owner when root writes it. The file cannot be a mount point, as nothing
// can take its place: mount its directory. A symbolic link is followed, and the file it points to is replaced; a link
// of another user, other than root, is refused in a directory where that user can write. Members of the file and of its
// devices that this version does not know are kept, and so is a version number above 1. A device in it that cannot be
// used (a low-order key, no push token) is skipped, and stays until it is revoked or its phone pairs again.
type FileStore struct {
	path string
	turn chan struct{} // holds one value while a goroutine writes
}

// CorruptError says that a registry file is there but is not one, so that it is neither read nor written until somebody
// repairs or removes it: writing would lose the phones that are in it.
type CorruptError struct {
	Path string
	Err  error // what is wrong with it
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("pairing: %s is not a registry file (%v): restore or repair it, or remove it to start with no phone paired",
		e.Path, e.Err)
}

// Unwrap returns what is wrong with the file.
func (e *CorruptError) Unwrap() error { return e.Err }

// OpenFile returns the store kept in the file at path. A relative path is resolved now, against the working directory.
// The file is not read yet and need not exist; its directory must exist by the first write.
func OpenFile(path string) (*FileStore, error) {
	if path == "" {
		return nil, errors.New("pairing: the path of the registry file is empty")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("pairing: resolve the path of the registry file: %w", err)
	}
	return &FileStore{path: path, turn: make(chan struct{}, 1)}, nil
}

// Load implements [Store]. A file that does not parse is a *[CorruptError].
func (s *FileStore) Load(ctx context.Context) (Snapshot, error) {
	if s.path == "" {
		return Snapshot{}, errNotOpened
	}
	ctx = orBackground(ctx)
	if err := ctx.Err(); err != nil {
		return Snapshot{}, fmt.Errorf("pairing: read %s: %w", s.path, err)
	}
	target, err := resolveLink(s.path)
	if err != nil {
		return Snapshot{}, fmt.Errorf("pairing: find the file to read for %s: %w", s.path, err)
	}
	doc, _, _, err := readDocument(ctx, target)
	if err != nil {
		return Snapshot{}, err
	}
	snap := Snapshot{Salt: doc.salt}
	for _, r := range doc.records {
		if r.device.Unusable != nil {
			r.device.Unusable = fmt.Errorf("pairing: %s: %w", s.path, r.device.Unusable)
		}
		snap.Devices = append(snap.Devices, r.device)
	}
	return snap, nil
}

// Pair implements [Store].
func (s *FileStore) Pair(ctx context.Context, d Device) (stored Device, created bool, err error) {
	err = s.update(ctx, func(doc *document) error {
		stored, created = doc.put(d)
		return nil
	})
	if err != nil {
		return Device{}, false, err
	}
	return stored, created, nil
}

// Revoke implements [Store]. It also removes a device that Load skips, by the id the file gives it.
func (s *FileStore) Revoke(ctx context.Context, id string) error {
	return s.update(ctx, func(doc *document) error {
		if id == "" || !doc.remove(id) {
			return ErrUnknownDevice
		}
		return nil
	})
}

// EnsureSalt implements [Store]. A salt that is there is read without the lock, also from a read-only directory.
func (s *FileStore) EnsureSalt(ctx context.Context, candidate secret.Text) (secret.Text, error) {
	snap, err := s.Load(ctx)
	if err != nil || !snap.Salt.IsZero() {
		return snap.Salt, err
	}
	var salt secret.Text
	err = s.update(ctx, func(doc *document) error {
		if doc.salt.IsZero() {
			doc.setSalt(candidate)
		}
		salt = doc.salt
		return nil
	})
	if err != nil {
		return secret.Text{}, err
	}
	return salt, nil
}

// errChanged says that the file was changed by a program that does not know our lock, or that the lock was removed.
var errChanged = errors.New("pairing: the registry file was changed by another program while it was written")

var errNotOpened = errors.New("pairing: this FileStore was not made by OpenFile")

// update applies one change to the file, alone among all writers. It may call change several times, each time with the
// file as it then is.
func (s *FileStore) update(ctx context.Context, change func(*document) error) error {
	if s.path == "" {
		return errNotOpened
	}
	ctx = orBackground(ctx)
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("pairing: write %s: %w", s.path, err)
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return fmt.Errorf("pairing: wait for the turn to write %s: %w", s.path, ctx.Err())
	}
	target, err := resolveLink(s.path)
	if err != nil {
		return fmt.Errorf("pairing: find the file to write for %s: %w", s.path, err)
	}
	for {
		err := updateOnce(ctx, target, change)
		if !errors.Is(err, errChanged) {
			return err
		}
		if ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
	}
}

func updateOnce(ctx context.Context, target string, change func(*document) error) error {
	registry, _ := os.Lstat(target) // nil when there is none
	lock, err := lockFile(ctx, target+".lock", registry)
	if err != nil {
		return fmt.Errorf("pairing: lock the registry: %w", err)
	}
	defer lock.unlock()
	doc, old, info, err := readDocument(ctx, target)
	if err != nil {
		return err
	}
	if err := change(doc); err != nil {
		return err
	}
	if doc.salt.IsZero() {
		doc.setSalt(newSalt()) // a registry file of the deployed daemon always has one
	}
	data, err := doc.bytes()
	if err != nil {
		return fmt.Errorf("pairing: encode the registry: %w", err)
	}
	if bytes.Equal(data, old) {
		return nil
	}
	if len(data) > maxFile {
		return fmt.Errorf("%w: %s would be larger than %d bytes", ErrFull, target, maxFile)
	}
	tmp, err := writeTemporary(target, data, info)
	if err == nil {
		err = publish(ctx, lock, tmp, target, old)
	}
	if err != nil {
		return fmt.Errorf("pairing: write the registry: %w", err)
	}
	return nil
}

// readDocument reads a registry file and also returns its bytes and its state, nil when there is no such file.
func readDocument(ctx context.Context, path string) (*document, []byte, fs.FileInfo, error) {
	data, info, err := readFile(ctx, path)
	if errors.Is(err, fs.ErrNotExist) {
		return newDocument(), nil, nil, nil
	}
	if err != nil {
		return nil, nil, nil, fmt.Errorf("pairing: read the registry: %w", err)
	}
	if len(data) > maxFile {
		return nil, nil, nil, &CorruptError{Path: path, Err: fmt.Errorf("larger than %d bytes", maxFile)}
	}
	text := bytes.TrimPrefix(data, []byte("\ufeff")) // the byte order mark of some editors
	if len(text) == 0 {
		return nil, nil, nil, &CorruptError{Path: path, Err: errors.New("it is empty")}
	}
	doc, err := parseDocument(text)
	if err != nil {
		return nil, nil, nil, &CorruptError{Path: path, Err: err}
	}
	return doc, data, info, nil
}
