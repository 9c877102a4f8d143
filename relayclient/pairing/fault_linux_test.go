package pairing

import (
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sealpush/sealpush/secret"
)

// The faults of TestWriteFails, from a real kernel: this process may write no file longer than a few bytes.
func TestFullDisk(t *testing.T) {
	const variable = "SEALPUSH_TEST_FULL_DISK"
	if path := os.Getenv(variable); path != "" {
		signal.Ignore(syscall.SIGXFSZ)
		var before syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 100, Max: before.Max}); err != nil {
			t.Fatal(err)
		}
		defer syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before) // a coverage report is longer
		if _, _, err := openTestFile(t, path).Pair(t.Context(), testDevice("phone")); !errors.Is(err, syscall.EFBIG) {
			t.Fatalf("got %v, want EFBIG", err)
		}
		return
	}
	s, path := newTestFile(t)
	if out, err := child(t, variable, path); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkUntouched(t, s, path)
}

func TestReadOnlyDirectory(t *testing.T) {
	const variable = "SEALPUSH_TEST_READ_ONLY"
	if path := os.Getenv(variable); path != "" {
		if os.Getuid() == 0 { // root may write anywhere
			if err := syscall.Setuid(65534); err != nil {
				t.Fatal(err)
			}
		}
		s := openTestFile(t, path)
		if _, _, err := s.Pair(t.Context(), testDevice("phone")); !errors.Is(err, syscall.EACCES) || !strings.Contains(err.Error(), path) {
			t.Fatalf("got %v, want EACCES and the path", err)
		}
		if salt, err := s.EnsureSalt(t.Context(), secret.New("new")); err != nil || salt.Reveal() == "new" {
			t.Fatalf("the salt that is there: got %v", err)
		}
		return
	}
	s, path := newTestFile(t)
	dir := filepath.Dir(path)
	for name, mode := range map[string]os.FileMode{path: 0o644, filepath.Dir(dir): 0o755, dir: 0o555} {
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	out, err := child(t, variable, path)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkUntouched(t, s, path)
}

func checkUntouched(t *testing.T, s *FileStore, path string) {
	t.Helper()
	if data, err := os.ReadFile(path); err != nil || string(data) != string(daemonFile(t)) {
		t.Errorf("the file changed, or %v", err)
	}
	if left := temporaries(t, path); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, _, err := s.Pair(t.Context(), testDevice("phone")); err != nil {
		t.Errorf("once there is room: %v", err)
	}
}
