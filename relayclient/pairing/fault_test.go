package pairing

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/secret"
)

// newTestFile is a store over a copy of the deployed daemon's file.
func newTestFile(t *testing.T) (s *FileStore, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "devices.json")
	if err := os.WriteFile(path, daemonFile(t), 0o600); err != nil {
		t.Fatal(err)
	}
	return openTestFile(t, path), path
}

func openTestFile(t *testing.T, path string) *FileStore {
	t.Helper()
	s, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func loadNames(t *testing.T, s *FileStore) []string {
	t.Helper()
	snap, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range snap.Devices {
		names = append(names, d.Name)
	}
	return names
}

func temporaries(t *testing.T, path string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*.tmp"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// child runs this test again as a process of its own, which finds value in the environment variable name.
func child(t *testing.T, name, value string) (output string, err error) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), binary, "-test.run=^"+strings.Split(t.Name(), "/")[0]+"$")
	cmd.Env = append(os.Environ(), name+"="+value)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// A process killed at any moment of a write leaves the old registry or the new one, no lock, and nothing for ever.
func TestKilledDuringAWrite(t *testing.T) {
	const variable = "SEALPUSH_TEST_KILL"
	if job := os.Getenv(variable); job != "" {
		moment, path, _ := strings.Cut(job, ": ")
		writeAndDie(t, openTestFile(t, path), moment)
	}
	for _, moment := range []string{"with the lock", "in the temporary file", "before the rename", "after the rename"} {
		t.Run(moment, func(t *testing.T) {
			s, path := newTestFile(t)
			want := loadNames(t, s)
			if out, err := child(t, variable, moment+": "+path); err == nil || strings.Contains(out, "FAIL") {
				t.Fatalf("the child was not killed: %v\n%s", err, out)
			}
			if moment == "after the rename" {
				want = append(want, "of the killed process")
			}
			if got := loadNames(t, s); !slices.Equal(got, want) {
				t.Errorf("the file holds %q, want %q", got, want)
			}
			left := temporaries(t, path)
			if len(left) > 1 {
				t.Errorf("left behind: %v", left)
			}
			for _, tmp := range left {
				yesterday := time.Now().Add(-25 * time.Hour)
				if err := os.Chtimes(tmp, yesterday, yesterday); err != nil {
					t.Fatal(err)
				}
			}
			if _, _, err := s.Pair(t.Context(), testDevice("next")); err != nil {
				t.Fatalf("the next writer: %v", err)
			}
			if got := loadNames(t, s); !slices.Equal(got, append(want, "next")) {
				t.Errorf("then the file holds %q", got)
			}
			if left := temporaries(t, path); len(left) != 0 {
				t.Errorf("a day later there is still %v", left)
			}
		})
	}
}

// writeAndDie does what Pair does, step by step, up to the moment at which the process is killed.
func writeAndDie(t *testing.T, s *FileStore, moment string) {
	kill := func() {
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		if err != nil {
			t.Fatal(err)
		}
		select {} // until the kill arrives
	}
	lock, err := lockFile(t.Context(), s.path+".lock", nil)
	if err != nil {
		t.Fatal(err)
	}
	if moment == "with the lock" {
		kill()
	}
	doc, old, info, err := readDocument(t.Context(), s.path)
	if err != nil {
		t.Fatal(err)
	}
	doc.put(testDevice("of the killed process"))
	data, err := doc.bytes()
	if err != nil {
		t.Fatal(err)
	}
	if moment == "in the temporary file" {
		data = data[:len(data)/2]
	}
	tmp, err := writeTemporary(s.path, data, info)
	if err != nil {
		t.Fatal(err)
	}
	if moment == "after the rename" {
		if err := publish(t.Context(), lock, tmp, s.path, old); err != nil {
			t.Fatal(err)
		}
	}
	kill()
}

// A write goes by way of a file that is new, the owner's alone until it has the registry's permissions, and beside it.
func TestTemporaryFile(t *testing.T) {
	_, path := newTestFile(t)
	for range 2 {
		name, err := writeTemporary(path, []byte("contents"), nil)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(name)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode(); filepath.Dir(name) != filepath.Dir(path) || mode != 0o600 && runtime.GOOS != "windows" {
			t.Errorf("%s has mode %v, want 0600 and the directory of %s", name, mode, path)
		}
	}
	if found := temporaries(t, path); len(found) != 2 {
		t.Errorf("temporary files %v: want two names", found)
	}
}

func TestNoDirectoryToWriteIn(t *testing.T) {
	_, file := newTestFile(t)
	for name, path := range map[string]string{
		"missing": filepath.Join(filepath.Dir(file), "missing", "devices.json"),
		"a file":  filepath.Join(file, "devices.json"),
	} {
		_, _, err := openTestFile(t, path).Pair(t.Context(), testDevice("phone"))
		if err == nil || !strings.Contains(err.Error(), filepath.Dir(path)) {
			t.Errorf("the directory is %s: got %v, want an error that names it", name, err)
		}
	}
}

// A program that does not know our lock, an older daemon or an editor, loses nothing to us.
func TestAnotherProgramWritesWhileWeDo(t *testing.T) {
	s, path := newTestFile(t)
	want := append(loadNames(t, s), "of the other program", "of the other program", "ours")
	writes := 0
	err := s.update(t.Context(), func(doc *document) error {
		doc.put(testDevice("ours"))
		if writes++; writes > 2 {
			return nil
		}
		theirs, _, _, err := readDocument(t.Context(), path)
		if err != nil {
			return err
		}
		theirs.put(testDevice("of the other program"))
		data, err := theirs.bytes()
		if err != nil {
			return err
		}
		return errors.Join(os.WriteFile(path+".other", data, 0o600), os.Rename(path+".other", path))
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := loadNames(t, s); !slices.Equal(got, want) {
		t.Errorf("the file holds %q, want %q", got, want)
	}
	if left := temporaries(t, path); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Somebody tidies up and removes the lock of a writer, and a second writer takes a new one: both changes stay.
func TestALockThatWasRemovedCountsForNothing(t *testing.T) {
	first, path := newTestFile(t)
	second := openTestFile(t, path)
	want := append(loadNames(t, first), "of the second", "of the first")
	removed := false
	err := first.update(t.Context(), func(doc *document) error {
		doc.put(testDevice("of the first"))
		if removed {
			return nil
		}
		removed = true
		if err := os.Remove(path + ".lock"); err != nil {
			return err
		}
		_, _, err := second.Pair(t.Context(), testDevice("of the second"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := loadNames(t, first); !slices.Equal(got, want) {
		t.Errorf("the file holds %q, want %q", got, want)
	}

	lock, err := lockFile(t.Context(), path+".lock", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.unlock()
	if err := os.Remove(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	old := daemonFile(t)
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	tmp, err := writeTemporary(path, []byte("never published"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := publish(t.Context(), lock, tmp, path, old); !errors.Is(err, errChanged) {
		t.Errorf("published without a lock: %v", err)
	}
	if left := temporaries(t, path); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWaitForTheLockEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, path := newTestFile(t)
		lock, err := lockFile(t.Context(), path+".lock", nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := s.Pair(ctx, testDevice("phone")); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v, want the deadline and the path", err)
		}
		lock.unlock()
		if _, _, err := s.Pair(t.Context(), testDevice("phone")); err != nil {
			t.Errorf("once it is free: %v", err)
		}
	})
}

func TestNothingIsWrittenWhenNothingChanges(t *testing.T) {
	s, path := newTestFile(t)
	snap, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Pair(t.Context(), snap.Devices[0]); err != nil { // which names its suite, as the vector does not
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Pair(t.Context(), snap.Devices[0]); err != nil {
		t.Error(err)
	}
	if salt, err := s.EnsureSalt(t.Context(), secret.New("another")); err != nil || !salt.Equal(snap.Salt) {
		t.Errorf("got %q, %v", salt, err)
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("the file was replaced, or %v", err)
	}
}

// One file of a container may be a mount point, which the kernel calls busy.
func TestMountPointSaysWhatToDo(t *testing.T) {
	err := renameError(&os.LinkError{Op: "rename", Old: "a", New: "b", Err: syscall.EBUSY})
	if !errors.Is(err, syscall.EBUSY) || !strings.Contains(err.Error(), "mount its directory") {
		t.Errorf("got %v", err)
	}
}

// Windows refuses to open or replace a file while somebody else does.
func TestRideOut(t *testing.T) {
	errBusy := errors.New("busy")
	busy := func(err error) bool { return err == errBusy }
	for _, c := range []struct {
		name   string
		errs   []error // of the calls, the last one repeated
		want   error
		waited time.Duration
	}{
		{"success", []error{nil}, nil, 0},
		{"a moment", []error{errBusy, errBusy, nil}, nil, 20 * time.Millisecond},
		{"another error", []error{errBusy, os.ErrPermission}, os.ErrPermission, 10 * time.Millisecond},
		{"for ever", []error{errBusy}, errBusy, 2 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, calls := time.Now(), 0
				err := retryBusy(t.Context(), busy, func() error {
					calls++
					return c.errs[min(calls, len(c.errs))-1]
				})
				if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || time.Since(start) != c.waited {
					t.Errorf("got %v after %v", err, time.Since(start))
				}
			})
		})
	}
	t.Run("until the context ends", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := retryBusy(ctx, busy, func() error { return errBusy })
			if !errors.Is(err, errBusy) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	})
}
