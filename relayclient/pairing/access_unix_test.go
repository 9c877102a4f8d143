//go:build unix

package pairing

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sealpush/sealpush/secret"
)

const nobody = 65534 // a user and a group that own nothing

// asRoot says whether a test can give files to other users.
func asRoot(t *testing.T) bool {
	if os.Geteuid() != 0 {
		t.Log("only root can give a file to another user: that part is left out")
		return false
	}
	return true
}

func checkAccess(t *testing.T, path string, uid, gid uint32, mode fs.FileMode) {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := owner(info); got.Uid != uid || got.Gid != gid || info.Mode() != mode {
		t.Errorf("%s: user %d, group %d, mode %v, want %d, %d, %v", path, got.Uid, got.Gid, info.Mode(), uid, gid, mode)
	}
}

func ownerOf(t *testing.T, path string) (uid, gid uint32) {
	t.Helper()
	info, err := os.Lstat(path)
	must(t, err)
	return owner(info).Uid, owner(info).Gid
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// Whoever may use the registry may wait for its lock, also when the lock was made before the registry was shared.
func TestLockFileIsForThoseWhoMayReadTheRegistry(t *testing.T) {
	s, path := newTestFile(t)
	uid, gid := ownerOf(t, path)
	for _, mode := range []fs.FileMode{0o600, 0o660, 0o640} {
		must(t, os.Chmod(path, mode))
		_, _, err := s.Pair(t.Context(), testDevice(mode.String()))
		must(t, err)
		checkAccess(t, path+".lock", uid, gid, mode)
		checkAccess(t, path, uid, gid, mode)
	}
	if asRoot(t) {
		must(t, os.Chown(path, 0, nobody))
		_, _, err := s.Pair(t.Context(), testDevice("of the group"))
		must(t, err)
		checkAccess(t, path+".lock", 0, nobody, 0o640)
		checkAccess(t, path, 0, nobody, 0o640)
	}
}

// A lock file that also has another name may be somebody's trap: its permissions are those of the other name.
func TestLockFileWithAnotherNameKeepsItsMode(t *testing.T) {
	s, path := newTestFile(t)
	other := filepath.Join(t.TempDir(), "private")
	must(t, os.Chmod(path, 0o666), os.WriteFile(other, nil, 0o600), os.Link(other, path+".lock"))
	uid, gid := ownerOf(t, other)
	_, _, err := s.Pair(t.Context(), testDevice("phone"))
	must(t, err)
	checkAccess(t, other, uid, gid, 0o600)
}

func TestRootPairsOnceIntoTheFileOfAService(t *testing.T) {
	if !asRoot(t) {
		return
	}
	s, path := newTestFile(t)
	must(t, os.Chown(path, nobody, nobody), os.Chmod(path, 0o640), os.Chmod(filepath.Dir(path), 0o755))
	_, _, err := s.Pair(t.Context(), testDevice("paired by root"))
	must(t, err)
	checkAccess(t, path, nobody, nobody, 0o640)
	checkAccess(t, path+".lock", nobody, nobody, 0o640)
}

// Between its creation and the rename, the name of the temporary file may be made a link to another file.
func TestPermissionsAreSetOnTheOpenFile(t *testing.T) {
	_, path := newTestFile(t)
	must(t, os.Chmod(path, 0o666))
	registry, err := os.Stat(path)
	must(t, err)
	dir := filepath.Dir(path)
	private, name := filepath.Join(dir, "private"), filepath.Join(dir, "temporary")
	must(t, os.WriteFile(private, nil, 0o600))
	tmp, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	must(t, err)
	defer tmp.Close()
	must(t, os.Rename(name, name+".moved"), os.Symlink(private, name))
	must(t, copyAccess(tmp, registry))
	uid, gid := ownerOf(t, path)
	checkAccess(t, private, uid, gid, 0o600)
	checkAccess(t, name+".moved", uid, gid, 0o666)
}

// A group that cannot be kept must not become access for another one.
func TestAGroupThatCannotBeKept(t *testing.T) {
	const variable = "SEALPUSH_TEST_GROUP"
	if path := os.Getenv(variable); path != "" {
		must(t, syscall.Setgroups(nil), syscall.Setgid(nobody-1), syscall.Setuid(nobody-1))
		_, _, err := openTestFile(t, path).Pair(t.Context(), testDevice("phone"))
		must(t, err)
		return
	}
	if !asRoot(t) {
		return
	}
	_, path := newTestFile(t)
	dir := filepath.Dir(path)
	must(t, os.Chown(path, nobody, nobody), os.Chmod(path, 0o664), os.Chmod(dir, 0o777), os.Chmod(filepath.Dir(dir), 0o755))
	if out, err := child(t, variable, path); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkAccess(t, path, nobody-1, nobody-1, 0o644)
}

func TestLinksOfOtherUsers(t *testing.T) {
	const me, root, mallory, carol = 1000, 0, 1001, 1002
	for _, c := range []struct {
		name               string
		linkOwner, dirUser int
		dirMode            fs.FileMode
		follow             bool
	}{
		{"mine, in a directory for all", me, root, 0o777, true},
		{"root's, in a directory for all", root, root, 0o777, true},
		{"another's, in a directory for all", mallory, root, 0o777, false},
		{"another's, in a directory for a group", mallory, root, 0o775, false},
		{"another's, in a directory of theirs", mallory, mallory, 0o755, false},
		{"another's, in my directory", mallory, me, 0o755, true},
		{"another's, in a third user's directory", mallory, carol, 0o755, true},
	} {
		if got := mayFollow(me, c.linkOwner, c.dirUser, c.dirMode); got != c.follow {
			t.Errorf("%s: followed %v, want %v", c.name, got, c.follow)
		}
	}

	if !asRoot(t) {
		return
	}
	_, path := newTestFile(t)
	shared := t.TempDir()
	must(t, os.Chmod(shared, 0o777|fs.ModeSticky))
	link := filepath.Join(shared, "devices.json")
	must(t, os.Symlink(path, link), os.Lchown(link, nobody, nobody))
	through := openTestFile(t, link)
	_, loadErr := through.Load(t.Context())
	_, _, pairErr := through.Pair(t.Context(), testDevice("phone"))
	for call, err := range map[string]error{"Load": loadErr, "Pair": pairErr} {
		if err == nil || !strings.Contains(err.Error(), link) || !strings.Contains(err.Error(), "another user") {
			t.Errorf("%s: got %v, want an error that names the link", call, err)
		}
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != string(daemonFile(t)) {
		t.Errorf("the file changed, or %v", err)
	}
}

// Opening a pipe waits for somebody at its other end.
func TestPipesNeverBlock(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(t *testing.T, path string)
	}{
		{"the registry", func(t *testing.T, path string) { must(t, os.Remove(path), syscall.Mkfifo(path, 0o600)) }},
		{"its lock", func(t *testing.T, path string) { must(t, syscall.Mkfifo(path+".lock", 0o600)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, path := newTestFile(t)
			c.make(t, path)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			calls := map[string]func() error{
				"Pair":   func() error { _, _, err := s.Pair(ctx, testDevice("phone")); return err },
				"Revoke": func() error { return s.Revoke(ctx, "04b4241f03d2f9ea") },
			}
			if c.name == "the registry" {
				calls["Load"] = func() error { _, err := s.Load(ctx); return err }
				calls["EnsureSalt"] = func() error { _, err := s.EnsureSalt(ctx, secret.New("salt")); return err }
			}
			for name, call := range calls {
				if err := call(); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "not a regular file") {
					t.Errorf("%s: got %v", name, err)
				}
			}
		})
	}
}
