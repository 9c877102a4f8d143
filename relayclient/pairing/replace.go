package pairing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// writeStep is one of the steps in which a file is replaced. A process can die before any of them.
type writeStep string

const (
	stepCreate  writeStep = "create"  // an empty temporary file beside the target
	stepWrite   writeStep = "write"   // the new contents
	stepSync    writeStep = "sync"    // flush them to the disk
	stepRename  writeStep = "rename"  // put the temporary file in the target's place
	stepSyncDir writeStep = "syncdir" // flush the directory, which holds the name
	stepUnlock  writeStep = "unlock"  // all is written
)

// replaceFile gives target new contents, all or nothing, unless it no longer holds the old ones.
func (s *FileStore) replaceFile(ctx context.Context, target string, old, contents []byte) (err error) {
	dir, base := filepath.Split(target)
	sweepTemporaries(dir, base)
	if err := s.before(stepCreate); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, "."+base+".*.tmp") // created exclusively, with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			tmp.Close()
			os.Remove(tmp.Name())
		}
	}()
	if err := s.before(stepWrite); err != nil {
		return err
	}
	if _, err := tmp.Write(contents); err != nil {
		return err
	}
	if err := keepMode(tmp, target); err != nil {
		return err
	}
	if err := s.before(stepSync); err != nil {
		return err
	}
	if err := tmp.Sync(); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	if err := s.before(stepRename); err != nil {
		return err
	}
	now, err := readFile(target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.Equal(now, old) {
		return errChanged
	}
	if err := rename(ctx, tmp.Name(), target); err != nil {
		return err
	}
	if err := s.before(stepSyncDir); err != nil {
		return err
	}
	if err := syncDir(dir); err != nil {
		return err
	}
	return s.before(stepUnlock)
}

// keepMode gives a new file the permissions of the one it replaces, if there is one and they differ: some file systems
// have the same for all files and refuse to change them.
func keepMode(tmp *os.File, target string) error {
	have, err := tmp.Stat()
	if err != nil {
		return err
	}
	want, err := os.Stat(target)
	if err != nil || want.Mode().Perm() == have.Mode().Perm() {
		return nil
	}
	return os.Chmod(tmp.Name(), want.Mode().Perm())
}

// sweepTemporaries removes what writers that died left behind, once nobody can still be writing it. It is a courtesy:
// a failure to clean up is no reason not to write.
func sweepTemporaries(dir, base string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.HasPrefix(e.Name(), "."+base+".") || !strings.HasSuffix(e.Name(), ".tmp") {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// rename puts a file in another's place. Windows refuses that while anybody has the other one open, a reader of the
// registry for instance, which is over in a moment: try again for up to two seconds.
func rename(ctx context.Context, from, to string) error {
	err := os.Rename(from, to)
	if runtime.GOOS != "windows" {
		return err
	}
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for range 200 {
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
			err = os.Rename(from, to)
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
	return err
}

// syncDir makes a rename durable. Windows has no such call, and some network file systems refuse it.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}

// lockFile waits until it holds the lock file alone, among goroutines as among processes, and returns its release. The
// lock goes when its holder dies. The file stays: removing it would let two writers hold two different ones.
func lockFile(ctx context.Context, path string) (unlock func(), err error) {
	lock := flock.New(path, flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(ctx, 10*time.Millisecond); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return func() { lock.Close() }, nil
}

// resolveLink follows the symbolic links at path to the file to write, which need not exist: the rename must replace
// that file, not the link to it.
func resolveLink(path string) (string, error) {
	const maxLinks = 40 // as Linux allows
	for range maxLinks {
		dir, base := filepath.Split(path)
		dir, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return "", err
		}
		path = filepath.Join(dir, base)
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink == 0 {
			return path, nil
		}
		if err != nil {
			return "", err
		}
		target, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(target) {
			target = dir + string(filepath.Separator) + target
		}
		path = target
	}
	return "", fmt.Errorf("%s: too many symbolic links", path)
}
