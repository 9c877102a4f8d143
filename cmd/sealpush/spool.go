package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/sealpush/sealpush/relayclient"
)

const (
	spoolMost = 100 // entries
	spoolAge  = 24 * time.Hour
	maxEntry  = 64 << 10 // bytes

	// How an entry's name ends. It begins with the time at which it was made, in nanoseconds of Unix time.
	newSuffix     = ".new"     // being written
	waitingSuffix = ".waiting" // whole, and the relay has seen nothing of it
	postingSuffix = ".posting" // the relay may have seen it

	lockName = "lock"
	lockWait = 2 * time.Second
)

// A spool is a directory of sealed alerts that could not be posted. Several processes may use it at once: an entry is
// posted by the one that renames it from waiting to posting, right before its first byte goes out. So one that is left
// as posting by a process that was killed may have paged somebody, and is not posted again.
//
// Each process holds a shared lock on the spool while it is open. One that gets the lock to itself knows that nobody is
// posting, and that what is left as posting is from a process that was killed.
//
// A nil spool keeps nothing.
type spool struct {
	dir  string
	lock *flock.Flock
	say  func(format string, args ...any)
	step func(name string) // called after each step; nil but in tests of what a kill at that moment leaves
}

// openSpool makes the directory if it is not there, and looks after what killed processes have left. step may be nil.
func openSpool(ctx context.Context, dir string, say func(string, ...any), step func(string)) (*spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	// What others put there would be posted with the relay's password.
	if runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0 {
		return nil, fmt.Errorf("everybody may write to %s: name a directory of your own, or type chmod o-w %[1]s", dir)
	}
	s := &spool{dir: dir, lock: flock.New(filepath.Join(dir, lockName), flock.SetPermissions(0o600)), say: say, step: step}
	alone, err := s.lock.TryLock()
	if err != nil {
		return nil, err
	}
	if alone {
		err = s.clearUp()
		if err := cmp.Or(err, s.lock.Unlock()); err != nil {
			s.close()
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	if _, err := s.lock.TryRLockContext(ctx, 20*time.Millisecond); err != nil {
		s.close()
		return nil, fmt.Errorf("it is locked: %w", err)
	}
	return s, nil
}

func (s *spool) close() {
	if s != nil {
		s.lock.Close()
	}
}

// clearUp looks after what killed processes have left half done. It is called by one process at a time, and by none while
// another one has the spool open.
func (s *spool) clearUp() error {
	files, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, file := range files {
		if !isEntry(file) {
			continue
		}
		e := spooled{spool: s, name: file.Name()}
		switch filepath.Ext(e.name) {
		case postingSuffix:
			sealed, err := e.read()
			if err == nil {
				s.say("the alert of %s was being posted when its run was killed: whether phone %s got it is uncertain, and it is not posted again",
					e.time().Format(time.RFC3339), sealed.DeviceID)
			}
			e.remove()
		case newSuffix:
			if _, err := e.read(); err != nil || e.rename(waitingSuffix) != nil {
				e.remove()
			}
		}
	}
	return nil
}

// hasEntries reports whether there is anything in a spool's directory that somebody has to look after.
func hasEntries(dir string) bool {
	files, _ := os.ReadDir(dir)
	return slices.ContainsFunc(files, isEntry)
}

// isEntry reports whether a file is one that a spool has made. What else is in its directory is left alone.
func isEntry(file fs.DirEntry) bool {
	return file.Type().IsRegular() && entryName.MatchString(file.Name())
}

var entryName = regexp.MustCompile(`^[0-9]+-[0-9A-Za-z]+\.(new|waiting|posting)$`)

// put keeps an alert before it is posted.
func (s *spool) put(sealed relayclient.Sealed) (*spooled, error) {
	if s == nil {
		return nil, nil
	}
	content, err := json.Marshal(spoolFile{sealed.DeviceID, sealed.Envelope})
	if err != nil {
		return nil, err
	}
	e := &spooled{spool: s, name: fmt.Sprintf("%d-%s", time.Now().UnixNano(), rand.Text()) + newSuffix, fresh: true}
	if err := writeSynced(e.path(), content); err != nil {
		e.remove()
		return nil, err
	}
	s.did("written")
	if err := e.rename(waitingSuffix); err != nil {
		e.remove()
		return nil, err
	}
	s.did("waiting")
	return e, nil
}

// trim drops the oldest alerts over spoolMost. It is called when all have been tried: one page to many phones may be more.
func (s *spool) trim() {
	if s == nil {
		return
	}
	names := s.names()
	for _, name := range names[:max(0, len(names)-spoolMost)] {
		old := spooled{spool: s, name: name}
		if old.remove() == nil {
			s.say("the spool %s is full: its oldest alert, of %s, is dropped", s.dir, old.time().Format(time.RFC3339))
		}
	}
}

// names returns the names of the entries that wait, oldest first.
func (s *spool) names() []string {
	files, _ := os.ReadDir(s.dir)
	var names []string
	for _, file := range files {
		if isEntry(file) && strings.HasSuffix(file.Name(), waitingSuffix) {
			names = append(names, file.Name())
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return spooled{name: a}.time().Compare(spooled{name: b}.time())
	})
	return names
}

// waiting returns the alerts that wait for one of these phones, and removes those that are too old and those for
// others.
func (s *spool) waiting(paired map[string]bool) (sealed []relayclient.Sealed, entries []*spooled) {
	for _, name := range s.names() {
		e := &spooled{spool: s, name: name}
		at := e.time().Format(time.RFC3339)
		one, err := e.read()
		switch {
		case errors.Is(err, fs.ErrNotExist): // another run has it
		case err != nil:
			s.say("the spool has an alert of %s that cannot be read, and is dropped: %v", at, err)
			e.remove()
		case time.Since(e.time()).Abs() > spoolAge:
			s.say("the alert of %s for phone %s is older than 24 hours, and is dropped", at, one.DeviceID)
			e.remove()
		case !paired[one.DeviceID]:
			s.say("the alert of %s is dropped: its phone %s is no longer paired", at, one.DeviceID)
			e.remove()
		default:
			sealed, entries = append(sealed, one), append(entries, e)
		}
	}
	return sealed, entries
}

func (s *spool) did(step string) {
	if s.step != nil {
		s.step(step)
	}
}

// A spoolFile is what the file of an entry holds.
type spoolFile struct {
	Device   string          `json:"device_id"`
	Envelope json.RawMessage `json:"envelope"`
}

// A spooled is one alert for one phone in a spool. A nil one is kept nowhere.
type spooled struct {
	spool *spool
	name  string
	fresh bool // this process has made it
}

var errTaken = errors.New("another run has posted it or is posting it, or it was dropped")

// begin marks the entry as one that is being posted, unless another process has.
func (e *spooled) begin() error {
	if e == nil || strings.HasSuffix(e.name, postingSuffix) {
		return nil
	}
	err := e.rename(postingSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return errTaken
	}
	if err != nil && e.fresh { // a page now is worth more than knowing later that it was sent
		e.spool.say("the spool: %v", err)
		return nil
	}
	if err == nil {
		syncDirectory(e.spool.dir) // or it would wait again after a power failure
		e.spool.did("posting")
	}
	return err
}

// end removes the entry, or lets it wait when the relay has seen nothing of it.
func (e *spooled) end(unsent bool) (err error) {
	if e == nil {
		return nil
	}
	posting := strings.HasSuffix(e.name, postingSuffix)
	e.spool.did("answered")
	switch {
	case !unsent:
		err = e.remove()
	case posting:
		err = e.rename(waitingSuffix)
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return err
}

// time is when the entry was made.
func (e spooled) time() time.Time {
	nanoseconds, _, _ := strings.Cut(e.name, "-")
	n, _ := strconv.ParseInt(nanoseconds, 10, 64)
	return time.Unix(0, n)
}

func (e spooled) path() string { return filepath.Join(e.spool.dir, e.name) }

func (e *spooled) rename(suffix string) error {
	name := strings.TrimSuffix(e.name, filepath.Ext(e.name)) + suffix
	if err := os.Rename(e.path(), filepath.Join(e.spool.dir, name)); err != nil {
		return err
	}
	e.name = name
	return nil
}

func (e spooled) remove() error { return os.Remove(e.path()) }

func (e spooled) read() (relayclient.Sealed, error) {
	content, err := readAtMost(e.path(), maxEntry)
	if err != nil {
		return relayclient.Sealed{}, err
	}
	var s spoolFile
	if err := json.Unmarshal(content, &s); err != nil || s.Device == "" {
		return relayclient.Sealed{}, errors.New("it is not whole")
	}
	return relayclient.Sealed{DeviceID: s.Device, Envelope: s.Envelope}, nil
}

// syncDirectory has renamings written to the disk, where the system can do that.
func syncDirectory(path string) {
	if dir, err := os.Open(path); err == nil {
		dir.Sync()
		dir.Close()
	}
}

// writeSynced makes a file that only its owner can read, and that is on the disk when it returns.
func writeSynced(path string, content []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close())
}
