//go:build unix

package regular_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sealpush/sealpush/internal/regular"
)

// A pipe that nobody writes to would block the test for ever.
func TestReadRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	pipe, link := filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	if err := errors.Join(syscall.Mkfifo(pipe, 0o600), os.Symlink("pipe", link)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{pipe, link, dir, os.DevNull} {
		if _, _, err := regular.Read(path, 10, 0); !errors.Is(err, regular.ErrNotRegular) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

func TestReadNoFollow(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, []byte("contents"), 0o600), os.Symlink("file", link)); err != nil {
		t.Fatal(err)
	}
	if data, info, err := regular.Read(link, 3, 0); err != nil || string(data) != "cont" || info.Size() != 8 {
		t.Errorf("got %q, %v", data, err)
	}
	if _, _, err := regular.Read(link, 10, regular.NoFollow); err == nil {
		t.Error("followed a link")
	}
}
