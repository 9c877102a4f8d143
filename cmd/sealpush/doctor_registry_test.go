package main

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

type entry map[string]string

func TestRegistries(t *testing.T) {
	key, other := seal.GenerateKey().Public().String(), seal.GenerateKey().Public().String()
	token, otherToken := strings.Repeat("a1", 32), strings.Repeat("b2", 32)
	const salt = "0123456789abcdef0123456789abcdef"
	for name, c := range map[string]struct {
		salt    string
		devices []entry
		exit    int
		says    []string
	}{
		"good": {salt, []entry{{"id": "1", "pushToken": token, "publicKey": key}}, 0, []string{"1 phone", " 0 to look at"}},
		"two with one token": {salt, []entry{
			{"id": "1", "pushToken": token, "publicKey": key}, {"id": "2", "pushToken": token, "publicKey": other},
		}, 0, []string{"warn", `phone "1" has the same push token`, "Revoke the older one"}},
		"two with one key": {salt, []entry{
			{"id": "1", "pushToken": token, "publicKey": key}, {"id": "2", "pushToken": otherToken, "publicKey": key},
		}, 0, []string{"warn", `phone "1" has the same key`}},
		"two with one id": {salt, []entry{
			{"id": "1", "pushToken": token, "publicKey": key}, {"id": "1", "pushToken": otherToken, "publicKey": other},
		}, 0, []string{"warn", "another phone has this id"}},
		"token of another platform": {salt, []entry{{"id": "1", "pushToken": "fcm:xyz", "publicKey": key}}, 0,
			[]string{"warn", "is not 16 to 512 hex digits"}},
		"low-order key": {salt, []entry{{"id": "1", "pushToken": token, "publicKey": strings.Repeat("A", 43) + "="}}, 1,
			[]string{"FAIL  pairing:", "low-order", "pair it again with sealpush pair, then type sealpush devices revoke ID", `(id "1")`, "nobody would be paged"}},
		"no token":   {salt, []entry{{"id": "1", "publicKey": key}}, 1, []string{"pushToken is empty", "gets no alert"}},
		"no salt":    {"", []entry{{"id": "1", "pushToken": token, "publicKey": key}}, 0, []string{"warn  no collapse salt yet"}},
		"short salt": {"pepper", []entry{{"id": "1", "pushToken": token, "publicKey": key}}, 0, []string{"warn  the collapse salt is only 6"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "devices.json")
			content, err := json.Marshal(map[string]any{"version": 1, "collapseSalt": c.salt, "devices": c.devices})
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			expectDoctor(t, c.exit, append(c.says, "The relay was not checked"), "-registry", path)
		})
	}
}

func TestFilesThatAreNoRegistry(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.json")
	if err := os.WriteFile(garbage, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	expectDoctor(t, 1, []string{"is not a registry file", "from a backup"}, "-registry", garbage)
	expectDoctor(t, 1, []string{"is not a file"}, "-registry", dir)
	missing := filepath.Join(dir, "missing.json")
	expectDoctor(t, 1, []string{missing + " is not there", "Correct the path", "when the first phone pairs"}, "-registry", missing)
	if out, _ := doctor(t, "-registry", missing); strings.Contains(out, "bridge") {
		t.Errorf("of a registry it says\n%s", out)
	}
}

// Nobody should pair a phone because an entry is spoilt, before reading which.
func TestSpoiltEntryComesBeforeWhatFollowsFromIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "devices.json")
	content := `{"version":1,"devices":[{"id":"1","pushToken":"abcdabcdabcdabcd","publicKey":"no key"}]}`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := doctor(t, "-registry", path)
	cause, effect := strings.Index(out, "publicKey"), strings.Index(out, "nobody would be paged")
	if cause < 0 || effect < cause || strings.Contains(out, "Pair a phone") {
		t.Errorf("it says\n%s", out)
	}
}

func TestRegistryInADatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "devices.db")
	registry := "sqlite:" + path
	expectDoctor(t, 1, []string{path + " is not there", "sealpush pair"}, "-registry", registry)

	from, err := openRegistry(registry)
	if err != nil {
		t.Fatal(err)
	}
	defer from.close()
	paired, err := pairing.NewRegistry(from.store)
	if err != nil {
		t.Fatal(err)
	}
	phone := relaytest.NewPhone()
	relay := relaytest.NewRelay()
	defer relay.Close()
	device, _, err := paired.Pair(t.Context(), pairing.Request{
		Name: "pocket", Platform: "ios", PublicKey: phone.PublicKey(), PushToken: secret.New(phone.PushToken()),
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	paired.Salt(t.Context())
	expectDoctor(t, 0, []string{path + " is a registry with 1 phone", " 0 to look at"}, "-registry", registry)
	expectDoctor(t, 0, []string{"forwarded a test alert"}, "-page", "-relay-url", relay.URL, "-registry", registry)
	if err := paired.Revoke(t.Context(), device.ID); err != nil {
		t.Fatal(err)
	}
	expectDoctor(t, 1, []string{"without a phone", "type sealpush pair"}, "-registry", registry)

	garbage := writeFile(t, filepath.Join(t.TempDir(), "garbage.db"), strings.Repeat("no database ", 100))
	expectDoctor(t, 1, []string{"FAIL", "Look whether this is the database"}, "-registry", "sqlite:"+garbage)
}

func TestDatabaseThatIsAway(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	out, code := doctor(t, "-registry", "postgres://sealpush:hunter2-hunter2@"+free.Addr().String()+"/sealpush")
	if code != 1 || !strings.Contains(out, "Nothing answers there: correct host and port") || strings.Contains(out, "hunter2") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	out, code = doctor(t, "-registry", "postgres://sealpush:hunter2 hunter2@%zz/")
	if code != 1 || !strings.Contains(out, "Correct") || strings.Contains(out, "hunter2") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}
