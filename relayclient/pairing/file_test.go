package pairing_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

func openFile(t testing.TB, path string) *pairing.FileStore {
	t.Helper()
	s, err := pairing.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func writeFile(t testing.TB, path, contents string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(contents), 0o600); err != nil {
		t.Fatal(err)
	}
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// newDevice is a device with a key of its own, as a Registry would hand it to a store.
func newDevice(id, name string) pairing.Device {
	return pairing.Device{ID: id, Name: name, Platform: "ios", PushToken: secret.New("token-of-" + name),
		PublicKey: seal.GenerateKey().Public(), CreatedAt: time.Date(2026, 7, 23, 14, 0, 0, 0, time.UTC), CreatedBy: "parker"}
}

func pair(t testing.TB, s pairing.Store, d pairing.Device) {
	t.Helper()
	if _, _, err := s.Pair(t.Context(), d); err != nil {
		t.Fatal(err)
	}
}

func load(t testing.TB, s pairing.Store) pairing.Snapshot {
	t.Helper()
	snap, err := s.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// leftovers lists what lies beside the registry file and its lock.
func leftovers(t testing.TB, path string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name() != filepath.Base(path) && e.Name() != filepath.Base(path)+".lock" {
			names = append(names, e.Name())
		}
	}
	return names
}

func TestFileOfTheDeployedDaemon(t *testing.T) {
	want := string(vector(t, "devices.json"))
	path := filepath.Join(t.TempDir(), "devices.json")
	writeFile(t, path, want)
	snap := load(t, openFile(t, path))
	if len(usable(snap)) == 0 || len(unusable(snap)) != 0 {
		t.Fatalf("got %v", snap.Devices)
	}

	t.Run("a change undone leaves its bytes", func(t *testing.T) {
		s := openFile(t, path)
		changed := snap.Devices[1]
		changed.Name = "another"
		pair(t, s, changed)
		if got := readFile(t, path); got == want {
			t.Fatal("the change was not written")
		}
		pair(t, s, snap.Devices[1])
		if diff := cmp.Diff(want, withoutSuite(t, path, 1)); diff != "" {
			t.Errorf("-daemon +ours:\n%s", diff)
		}
	})
	t.Run("the same phones paired anew give its bytes", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "devices.json")
		s := openFile(t, path)
		if _, err := s.EnsureSalt(t.Context(), snap.Salt); err != nil {
			t.Fatal(err)
		}
		for _, d := range snap.Devices {
			pair(t, s, d)
		}
		if diff := cmp.Diff(want, withoutSuite(t, path, 3)); diff != "" {
			t.Errorf("-daemon +ours:\n%s", diff)
		}
	})
}

// withoutSuite is a registry file without the member suite, which n records must have: the vector is older than it.
func withoutSuite(t *testing.T, path string, n int) string {
	t.Helper()
	const suite = ",\n      \"suite\": \"x25519\""
	got := readFile(t, path)
	if strings.Count(got, suite) != n {
		t.Errorf("want %d records with a suite:\n%s", n, got)
	}
	return strings.ReplaceAll(got, suite, "")
}

// The deployed daemon writes strings with json.dumps, in ASCII; the escapes here are its.
func TestFileEscapesAsTheDaemonDoes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "devices.json")
	pair(t, openFile(t, path), newDevice("1", "a\x7f\x00\x1f\b\f\n\r\t\"\\/<&>'\u0080\u00e9\u2028\uffff\U0001f600"))
	const want = `"a\u007f\u0000\u001f\b\f\n\r\t\"\\/<&>'\u0080\u00e9\u2028\uffff\ud83d\ude00"`
	if got := readFile(t, path); !strings.Contains(got, `"name": `+want+",\n") {
		t.Errorf("want %s in\n%s", want, got)
	}
}

func TestFileKeepsWhatANewerVersionWrote(t *testing.T) {
	const newer = `{"version": 7, "collapseSalt": "s", "groups": {"z": [1.50, "é😀<&>\ud800"], "a": null},
		"devices": [
			{"id": "1", "publicKey": "` + key + `", "pushToken": "old", "quietHours": {"from": "22:00"}, "createdBy": "p"},
			{"id": "2", "publicKey": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "pushToken": "t", "why": "low order"},
			"not a device"
		]}`
	path := filepath.Join(t.TempDir(), "devices.json")
	writeFile(t, path, newer)
	s := openFile(t, path)
	pair(t, s, newDevice("3", "new phone"))
	pair(t, s, pairing.Device{ID: "4", Name: "again", Platform: "ios", PushToken: secret.New("new"), PublicKey: mustKey(t, key)})

	got := readFile(t, path)
	for _, member := range []string{
		`"version": 7`, `1.50`, `\u00e9\ud83d\ude00<&>\ud800`, `"a": null`, `"from": "22:00"`, `"why": "low order"`,
		`"not a device"`, `"createdBy": "p"`, `"id": "1"`, `"pushToken": "new"`, `"name": "again"`, `"name": "new phone"`,
	} {
		if !strings.Contains(got, member) {
			t.Errorf("%s is lost", member)
		}
	}
	if t.Failed() {
		t.Log(got)
	}
}

func TestFileSkipsOneBadDevice(t *testing.T) {
	good := `{"id":"good","name":"n","platform":"p","publicKey":"` + key + `","pushToken":"secret-token"}`
	for _, c := range []struct{ name, device string }{
		{"low-order key", `{"id":"bad","publicKey":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","pushToken":"secret-token"}`},
		{"no key", `{"id":"bad","pushToken":"secret-token"}`},
		{"no token", `{"id":"bad","publicKey":"` + key + `"}`},
		{"name of the wrong type", `{"id":"bad","name":["secret-token"],"publicKey":"` + key + `","pushToken":"t"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "devices.json")
			writeFile(t, path, `{"version":1,"devices":[`+c.device+`,`+good+`]}`)
			s := openFile(t, path)
			snap := load(t, s)
			if len(usable(snap)) != 1 || usable(snap)[0].ID != "good" || len(unusable(snap)) != 1 {
				t.Fatalf("got %v", snap.Devices)
			}
			msg := unusable(snap)[0].Error()
			if !strings.Contains(msg, path) || !strings.Contains(msg, "bad") || strings.Contains(msg, "secret-token") {
				t.Errorf("want the path and the id and no secret in: %s", msg)
			}
			if err := s.Revoke(t.Context(), "bad"); err != nil {
				t.Errorf("revoke it: %v", err)
			}
			if snap := load(t, s); len(usable(snap)) != 1 || len(unusable(snap)) != 0 {
				t.Errorf("then got %v", snap.Devices)
			}
		})
	}
}

func TestFileThatDoesNotParse(t *testing.T) {
	for _, c := range []struct{ name, contents string }{
		{"empty", ""},
		{"half", string(vector(t, "devices.json")[:500])},
		{"two documents", `{"devices":[]}{"devices":[]}`},
		{"another kind of file", `{"name":"package"}`},
		{"a list", `[]`},
		{"null", `null`},
		{"devices an object", `{"devices":{}}`},
		{"version a string", `{"version":"1","devices":[]}`},
		{"version 0", `{"version":0,"devices":[]}`},
		{"salt a number", `{"collapseSalt":5,"devices":[]}`},
		{"not UTF-8", "{\"devices\":[],\"x\":\"\xff\"}"},
		{"too large", `{"devices":[]}` + strings.Repeat(" ", 16<<20)},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "devices.json")
			writeFile(t, path, c.contents)
			s := openFile(t, path)
			_, loadErr := s.Load(t.Context())
			_, _, pairErr := s.Pair(t.Context(), newDevice("1", "phone"))
			_, saltErr := s.EnsureSalt(t.Context(), secret.New("salt"))
			for call, err := range map[string]error{
				"Load": loadErr, "Pair": pairErr, "EnsureSalt": saltErr, "Revoke": s.Revoke(t.Context(), "1")} {
				ce, ok := errors.AsType[*pairing.CorruptError](err)
				if !ok || ce.Path != path || !strings.Contains(err.Error(), path) {
					t.Errorf("%s: got %v, want a CorruptError that names %s", call, err, path)
				}
			}
			if readFile(t, path) != c.contents {
				t.Error("the file was touched")
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			pair(t, s, newDevice("1", "phone"))
			writeFile(t, path, c.contents)
			if _, err := s.Load(t.Context()); err == nil {
				t.Error("read again, though it is wrong again")
			}
			writeFile(t, path, string(vector(t, "devices.json")))
			if snap := load(t, s); len(usable(snap)) != 3 {
				t.Errorf("repaired, it holds %v", snap.Devices)
			}
		})
	}
}

// What the log advises for a device that cannot be used: pair it again.
func TestFilePairingAgainMendsADevice(t *testing.T) {
	for _, c := range []struct{ name, members string }{
		{"no token", `"id":"02177c7da112d2b0"`},
		{"name of the wrong type", `"id":"02177c7da112d2b0","name":5,"pushToken":"t"`},
		{"no id", `"pushToken":"t"`},
		{"id of the wrong type", `"id":5,"pushToken":"t"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "devices.json")
			writeFile(t, path, `{"devices":[{"publicKey":"`+key+`","kept":true,`+c.members+`}]}`)
			s := openFile(t, path)
			if snap := load(t, s); len(unusable(snap)) != 1 {
				t.Fatalf("not skipped: %v", snap.Devices)
			}
			d := newDevice("04b4241f03d2f9ea", "phone")
			d.PublicKey = mustKey(t, key)
			stored, created, err := s.Pair(t.Context(), d)
			if err != nil || created {
				t.Fatalf("created %v, error %v", created, err)
			}
			if snap := load(t, s); len(usable(snap)) != 1 || len(unusable(snap)) != 0 || snap.Devices[0].ID != stored.ID ||
				!snap.Devices[0].PushToken.Equal(d.PushToken) || snap.Devices[0].Name != d.Name {
				t.Errorf("got %v", snap.Devices)
			}
			if got := readFile(t, path); !strings.Contains(got, `"kept": true`) {
				t.Errorf("a member is lost:\n%s", got)
			}
		})
	}
}

// When and by whom a phone was paired is nothing that a page needs.
func TestFileWithAWrongDateIsPaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "devices.json")
	writeFile(t, path, `{"devices":[{"id":"02177c7da112d2b0","publicKey":"`+key+`","pushToken":"t","createdAt":1753279200,"createdBy":["p"]}]}`)
	snap := load(t, openFile(t, path))
	if len(usable(snap)) != 1 || len(unusable(snap)) != 0 || !snap.Devices[0].CreatedAt.IsZero() || snap.Devices[0].CreatedBy != "" {
		t.Errorf("got %v", snap.Devices)
	}
}

func TestFileMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Log("Windows has no permission bits: only that writing works is checked")
	}
	path := filepath.Join(t.TempDir(), "devices.json")
	s := openFile(t, path)
	check := func(want os.FileMode) {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); runtime.GOOS != "windows" && got != want {
			t.Errorf("mode %v, want %v", got, want)
		}
	}
	pair(t, s, newDevice("1", "phone"))
	check(0o600)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	pair(t, s, newDevice("2", "tablet"))
	check(0o640)
}

func TestFileFollowsSymlinks(t *testing.T) {
	for _, c := range []struct {
		name   string
		exists bool
		link   func(dir string) string
	}{
		{"absolute", true, func(dir string) string { return filepath.Join(dir, "data", "real.json") }},
		{"relative", true, func(string) string { return filepath.Join("data", "real.json") }},
		{"dangling", false, func(string) string { return filepath.Join("data", "real.json") }},
		{"through another link", true, func(string) string { return filepath.Join("hop", "link.json") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			real, link := filepath.Join(dir, "data", "real.json"), filepath.Join(dir, "devices.json")
			for _, err := range []error{
				os.Mkdir(filepath.Join(dir, "data"), 0o700),
				os.Symlink("data", filepath.Join(dir, "hop")),
				os.Symlink("real.json", filepath.Join(dir, "data", "link.json")),
				os.Symlink(c.link(dir), link),
			} {
				if err != nil {
					t.Fatal(err)
				}
			}
			if c.exists {
				writeFile(t, real, `{"devices":[]}`)
			}
			pair(t, openFile(t, link), newDevice("1", "phone"))
			if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
				t.Errorf("the link is gone: %v, %v", info, err)
			}
			if snap := load(t, openFile(t, real)); len(usable(snap)) != 1 {
				t.Errorf("the file it points to holds %v", snap.Devices)
			}
			if _, err := os.Stat(real + ".lock"); err != nil {
				t.Errorf("no lock beside the file: %v", err)
			}
		})
	}
	t.Run("in a circle", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "devices.json")
		if err := os.Symlink(filepath.Base(path), path); err != nil {
			t.Fatal(err)
		}
		if _, _, err := openFile(t, path).Pair(t.Context(), newDevice("1", "phone")); err == nil {
			t.Error("paired into a circle")
		}
	})
}

func TestFileSweepsOldTemporaries(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "devices.json")
	day := 24 * time.Hour
	for name, age := range map[string]time.Duration{
		".devices.json.123.tmp": day + time.Minute,
		".devices.json.456.tmp": day - time.Minute,
		".other.json.123.tmp":   2 * day,
		"devices.json.bak":      2 * day,
		// of the deployed daemon: NAME.PID-HEX.tmp
		"devices.json.4711-9f2c03de.tmp": day + time.Minute,
		"devices.json.4712-9f2c03de.tmp": day - time.Minute,
		"devices.json.old.tmp":           2 * day,
		"other.json.4711-9f2c03de.tmp":   2 * day,
	} {
		writeFile(t, filepath.Join(dir, name), "left behind")
		if err := os.Chtimes(filepath.Join(dir, name), time.Time{}, time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	pair(t, openFile(t, path), newDevice("1", "phone"))
	want := []string{".devices.json.456.tmp", ".other.json.123.tmp", "devices.json.4712-9f2c03de.tmp", "devices.json.bak",
		"devices.json.old.tmp", "other.json.4711-9f2c03de.tmp"}
	if diff := cmp.Diff(want, leftovers(t, path)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Editors on Windows put a byte order mark before what they save.
func TestFileWithAByteOrderMark(t *testing.T) {
	path := filepath.Join(t.TempDir(), "devices.json")
	writeFile(t, path, "\ufeff"+string(vector(t, "devices.json")))
	s := openFile(t, path)
	if snap := load(t, s); len(usable(snap)) != 3 {
		t.Errorf("got %v", snap.Devices)
	}
	pair(t, s, newDevice("1", "phone"))
	if snap := load(t, s); len(usable(snap)) != 4 {
		t.Errorf("then got %v", snap.Devices)
	}
	if got := readFile(t, path); !strings.HasPrefix(got, "{") {
		t.Errorf("the file begins with %q", got[:3])
	}
}

// A full disk or a broken copy leaves 0 bytes: that the phones are lost must not look like a registry without any.
func TestEmptyFileSaysWhatToDo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "devices.json")
	for _, contents := range []string{"", "\ufeff"} {
		writeFile(t, path, contents)
		_, err := openFile(t, path).Load(t.Context())
		for _, want := range []string{path, "it is empty", "restore", "remove it to start with no phone paired"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: want %q in: %v", contents, want, err)
			}
		}
	}
}

func TestFileTakesANilContext(t *testing.T) {
	s := openFile(t, filepath.Join(t.TempDir(), "devices.json"))
	var none context.Context
	if _, _, err := s.Pair(none, newDevice("1", "phone")); err != nil {
		t.Errorf("Pair: %v", err)
	}
	if _, err := s.EnsureSalt(none, secret.New("salt")); err != nil {
		t.Errorf("EnsureSalt: %v", err)
	}
	if snap, err := s.Load(none); err != nil || len(snap.Devices) != 1 {
		t.Errorf("Load: got %v, %v", snap.Devices, err)
	}
	if err := s.Revoke(none, "1"); err != nil {
		t.Errorf("Revoke: %v", err)
	}
}

func TestFileReplacedBetweenTwoReads(t *testing.T) {
	path := filepath.Join(t.TempDir(), "devices.json")
	s := openFile(t, path)
	pair(t, s, newDevice("1", "phone"))
	writeFile(t, path+".new", string(vector(t, "devices.json")))
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if snap := load(t, s); len(usable(snap)) != 3 {
		t.Errorf("got %v, want the devices of the new file", snap.Devices)
	}
}

func TestFileAlwaysHasASalt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "devices.json")
	writeFile(t, path, `{"version":1,"collapseSalt":null,"devices":[]}`)
	s := openFile(t, path)
	pair(t, s, newDevice("1", "phone"))
	salt := load(t, s).Salt
	if len(salt.Reveal()) != 32 {
		t.Errorf("got salt %q", salt.Reveal())
	}
	if got, err := s.EnsureSalt(t.Context(), secret.New("another")); err != nil || !got.Equal(salt) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestOpenFileResolvesThePathOnce(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	s := openFile(t, "devices.json")
	t.Chdir(t.TempDir())
	pair(t, s, newDevice("1", "phone"))
	readFile(t, filepath.Join(dir, "devices.json"))
}

func TestOpenFileRefusesAnEmptyPath(t *testing.T) {
	if _, err := pairing.OpenFile(""); err == nil {
		t.Error("opened")
	}
}
