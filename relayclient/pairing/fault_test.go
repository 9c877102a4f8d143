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

var writeSteps = []writeStep{stepCreate, stepWrite, stepSync, stepRename, stepSyncDir, stepUnlock}

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

// A process killed between any two steps leaves the old registry or the new one, no lock, and nothing for ever.
func TestKilledBetweenTwoSteps(t *testing.T) {
	const variable = "SEALPUSH_TEST_KILL"
	if job := os.Getenv(variable); job != "" {
		step, path, _ := strings.Cut(job, " ")
		s := openTestFile(t, path)
		s.before = func(at writeStep) error {
			if string(at) == step {
				self, err := os.FindProcess(os.Getpid())
				if err == nil {
					err = self.Kill()
				}
				if err != nil {
					t.Fatal(err)
				}
				select {} // until the kill arrives
			}
			return nil
		}
		s.Pair(t.Context(), testDevice("of the killed process"))
		t.Fatal("survived")
	}
	for i, step := range writeSteps {
		t.Run("before "+string(step), func(t *testing.T) {
			s, path := newTestFile(t)
			old := loadNames(t, s)
			if out, err := child(t, variable, string(step)+" "+path); err == nil || strings.Contains(out, "survived") {
				t.Fatalf("the child was not killed: %v\n%s", err, out)
			}

			want := old
			if i > slices.Index(writeSteps, stepRename) {
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

// A write goes through its steps in their order, by way of a file that is new, the owner's alone and beside the target.
func TestWriteGoesStepByStep(t *testing.T) {
	s, path := newTestFile(t)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	var steps []writeStep
	seen := map[string]bool{}
	s.before = func(at writeStep) error {
		steps = append(steps, at)
		if at != stepWrite {
			return nil
		}
		found := temporaries(t, path)
		if len(found) != 1 || seen[found[0]] {
			t.Fatalf("temporary files %v, before %v: want one of a new name", found, seen)
		}
		seen[found[0]] = true
		info, err := os.Lstat(found[0])
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode(); mode != 0o600 && runtime.GOOS != "windows" || info.Size() != 0 {
			t.Errorf("mode %v, %d bytes, want an empty file of mode 0600", mode, info.Size())
		}
		return nil
	}
	for _, name := range []string{"phone", "tablet"} {
		if _, _, err := s.Pair(t.Context(), testDevice(name)); err != nil {
			t.Fatal(err)
		}
	}
	if want := slices.Concat(writeSteps, writeSteps); !slices.Equal(steps, want) {
		t.Errorf("got the steps %v, want %v", steps, want)
	}
}

// A step that fails leaves the old registry and no temporary file, and the next write succeeds.
func TestWriteFails(t *testing.T) {
	for _, c := range []struct {
		step  writeStep
		cause error
	}{
		{stepCreate, syscall.EROFS},
		{stepWrite, syscall.ENOSPC},
		{stepSync, syscall.EIO},
		{stepRename, syscall.EACCES},
	} {
		t.Run(string(c.step), func(t *testing.T) {
			s, path := newTestFile(t)
			s.before = func(at writeStep) error {
				if at == c.step {
					return c.cause
				}
				return nil
			}
			_, _, err := s.Pair(t.Context(), testDevice("phone"))
			if !errors.Is(err, c.cause) {
				t.Errorf("got %v, want %v", err, c.cause)
			}
			if data, err := os.ReadFile(path); err != nil || string(data) != string(daemonFile(t)) {
				t.Errorf("the file changed, or %v", err)
			}
			if left := temporaries(t, path); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
			s.before = func(writeStep) error { return nil }
			if _, _, err := s.Pair(t.Context(), testDevice("phone")); err != nil {
				t.Errorf("the next write: %v", err)
			}
		})
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
	other := openTestFile(t, path+".other")
	writes := 0
	s.before = func(at writeStep) error {
		if at != stepRename {
			return nil
		}
		if writes++; writes > 2 {
			return nil
		}
		doc, _, err := readDocument(path)
		if err != nil {
			return err
		}
		doc.put(testDevice("of the other program"))
		data, err := doc.bytes()
		if err != nil {
			return err
		}
		return errors.Join(os.WriteFile(other.path, data, 0o600), os.Rename(other.path, path))
	}
	want := append(loadNames(t, s), "of the other program", "of the other program", "ours")
	if _, _, err := s.Pair(t.Context(), testDevice("ours")); err != nil {
		t.Fatal(err)
	}
	if got := loadNames(t, s); !slices.Equal(got, want) {
		t.Errorf("the file holds %q, want %q", got, want)
	}
	if left := temporaries(t, path); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWaitForTheLockEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, path := newTestFile(t)
		unlock, err := lockFile(t.Context(), path+".lock")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := s.Pair(ctx, testDevice("phone")); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v, want the deadline and the path", err)
		}
		unlock()
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
	s.before = func(writeStep) error { return errors.New("it was written") }
	if _, _, err := s.Pair(t.Context(), snap.Devices[0]); err != nil {
		t.Error(err)
	}
	if salt, err := s.EnsureSalt(t.Context(), secret.New("another")); err != nil || !salt.Equal(snap.Salt) {
		t.Errorf("got %q, %v", salt, err)
	}
	if left := temporaries(t, path); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
