package pairing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/sealpush/sealpush/internal/regular"
)

// A registry file is replaced in two steps: writeTemporary puts the new contents in a file beside it and flushes them
// to the disk; publish puts that file in the registry's place. A process that dies between or within them leaves the
// old registry or the new one, and at most one temporary file.

// writeTemporary returns the name of a new file beside target, with the contents. It has the permissions, the group
// and, where we may give files away, the owner of the registry file that it will replace; replaced is nil when there is
// none.
func writeTemporary(target string, contents []byte, replaced fs.FileInfo) (name string, err error) {
	dir, base := filepath.Split(target)
	sweepTemporaries(dir, base)
	tmp, err := os.CreateTemp(dir, "."+base+".*.tmp") // created exclusively, with mode 0600
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			tmp.Close()
			os.Remove(tmp.Name())
		}
	}()
	if replaced != nil {
		if err := copyAccess(tmp, replaced); err != nil {
			return "", err
		}
	}
	if _, err := tmp.Write(contents); err != nil {
		return "", err
	}
	if err := tmp.Sync(); err != nil {
		return "", err
	}
	return tmp.Name(), tmp.Close()
}

// publish renames the temporary file to target, unless target no longer has the old contents or the lock was lost: then
// the error is errChanged. The temporary file is gone when it returns.
func publish(ctx context.Context, lock *fileLock, tmp, target string, old []byte) (err error) {
	defer func() {
		if err != nil {
			os.Remove(tmp)
		}
	}()
	now, _, err := readFile(ctx, target)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !bytes.Equal(now, old) || !lock.held() {
		return errChanged
	}
	if err := retryBusy(ctx, busy, func() error { return os.Rename(tmp, target) }); err != nil {
		return renameError(err)
	}
	return syncDir(filepath.Dir(target))
}

// renameError says what to do about a registry that is a mount point, as one file of a container may be: the kernel
// does not let anything take its place.
func renameError(err error) error {
	if errors.Is(err, syscall.EBUSY) {
		return fmt.Errorf("the registry file is a mount point and cannot be replaced: mount its directory instead (%w)", err)
	}
	return err
}

// deployedTemporary is what follows the registry's name in the temporary files of the deployed daemon: PID-HEX.
var deployedTemporary = regexp.MustCompile(`^\.[0-9]+-[0-9a-fA-F]+\.tmp$`)

// sweepTemporaries removes temporary files of ours and of the deployed daemon that are more than a day old: their
// writers died. A failure to clean up does not stop a write.
func sweepTemporaries(dir, base string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		ours := strings.HasPrefix(e.Name(), "."+base+".") && strings.HasSuffix(e.Name(), ".tmp")
		rest, found := strings.CutPrefix(e.Name(), base)
		if !e.Type().IsRegular() || !ours && !(found && deployedTemporary.MatchString(rest)) {
			continue
		}
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > 24*time.Hour {
			os.Remove(filepath.Join(dir, e.Name()))
		}
	}
}

// readFile returns the contents of a registry file, at most one byte more than it may have, and its state as it was
// opened. The path is one that resolveLink returned.
func readFile(ctx context.Context, path string) (data []byte, info fs.FileInfo, err error) {
	err = retryBusy(ctx, busy, func() (err error) {
		data, info, err = regular.Read(path, maxFile, regular.NoFollow)
		return err
	})
	return data, info, err
}

// retryBusy repeats an operation on a file, every 10 ms for up to two seconds, while its error is that somebody else
// has the file open: Windows refuses then to replace it, and refuses to open it while it is replaced.
func retryBusy(ctx context.Context, busy func(error) bool, op func() error) error {
	err := op()
	if err == nil || !busy(err) {
		return err
	}
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for range 200 {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
		if err = op(); err == nil || !busy(err) {
			return err
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

// fileLock is a lock on a file that stays: removing it would let two writers hold two different ones. The lock is
// exclusive among goroutines as among processes, and goes when its holder dies.
type fileLock struct{ lock *flock.Flock }

// lockFile waits for the lock on the file at path, which it creates when it is missing, with the permissions and the
// group of the registry: a user who may read the registry may wait for its lock. The registry is nil when there is
// none.
func lockFile(ctx context.Context, path string, registry fs.FileInfo) (*fileLock, error) {
	for {
		if err := prepareLock(path, registry); err != nil {
			return nil, err
		}
		l := &fileLock{flock.New(path, flock.SetFlag(lockFlag))}
		_, err := l.lock.TryLockContext(ctx, 10*time.Millisecond)
		if err == nil && l.held() {
			return l, nil
		}
		l.unlock()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
}

const lockFlag = os.O_RDONLY | regular.NonBlock | regular.NoFollow

// prepareLock creates the lock file, or gives the one that we made earlier the access that the registry has by now.
func prepareLock(path string, registry fs.FileInfo) error {
	f, err := os.OpenFile(path, lockFlag, 0)
	if errors.Is(err, fs.ErrNotExist) { // only then O_CREATE, which Linux refuses for another's file in a sticky directory
		f, err = os.OpenFile(path, lockFlag|os.O_CREATE, 0o600)
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: %w: remove it", path, regular.ErrNotRegular)
	}
	if registry != nil && isOurs(info) {
		return copyAccess(f, registry)
	}
	return nil
}

// held says whether the locked file still has its name. If somebody removed it, another writer may hold the lock on a
// new one.
func (l *fileLock) held() bool {
	locked, err := l.lock.Stat()
	if err != nil {
		return false
	}
	named, err := os.Lstat(l.lock.Path())
	return err == nil && os.SameFile(locked, named)
}

func (l *fileLock) unlock() { l.lock.Close() }

// resolveLink follows the symbolic links at path to the file to read or to replace, which need not exist. Links on the
// way to its directory are left to the operating system, so nothing here may clean a path: ".." after such a link is
// not the directory before it.
func resolveLink(path string) (string, error) {
	const maxLinks = 40 // as Linux allows
	for range maxLinks {
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode()&fs.ModeSymlink == 0 {
			return path, nil
		}
		if err != nil {
			return "", err
		}
		dir, _ := filepath.Split(path)
		if err := checkLink(dir, path, info); err != nil {
			return "", err
		}
		target, err := os.Readlink(path)
		if err != nil {
			return "", err
		}
		if !filepath.IsAbs(target) {
			target = dir + target
		}
		path = target
	}
	return "", fmt.Errorf("%s: too many symbolic links", path)
}
