package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/internal/program"
)

// startPhone runs the command that the daemon prints, with more arguments.
func startPhone(t *testing.T, d daemon, more ...string) (*program.Program, *os.Process) {
	t.Helper()
	printed := d.Await(t, `^    go run ./examples/phone (.+)$`)[1]
	args := strings.Fields(strings.ReplaceAll(printed, `"`+d.state+`"`, d.state))
	cmd := exec.CommandContext(t.Context(), os.Getenv(phoneBinary), append(args, more...)...)
	return program.Start(t, cmd), cmd.Process
}

// TestTwoTerminals is what the two programs do for somebody who tries them.
func TestTwoTerminals(t *testing.T) {
	d := startDaemon(t)
	phone, _ := startPhone(t, d, "-name", "pocket")
	fingerprint := phone.Await(t, `^Fingerprint  ([0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}) \(new, `)[1]
	id := phone.Await(t, `^Paired as ([0-9a-f]{16}) with `)[1]

	t.Run("the daemon has the same fingerprint", func(t *testing.T) {
		d.Await(t, "device paired .*"+fingerprint)
		devices := d.devices(t, d.token(t))
		if len(devices) != 1 {
			t.Fatalf("lists %+v", devices)
		}
		got := devices[0]
		if got.ID != id || got.Fingerprint != fingerprint || got.Name != "pocket" || got.CreatedBy != "local" {
			t.Errorf("lists %+v", got)
		}
		if cut, found := strings.CutPrefix(got.PushToken, "…"); !found || len(cut) != 6 {
			t.Errorf("lists the push token %q", got.PushToken)
		}
	})
	t.Run("the phone decrypts what the daemon reports", func(t *testing.T) {
		for _, line := range []string{
			`FAILURE  nightly-backup on \S+: exit status 3$`,
			`\| write /backup/data.tar: no space left on device$`,
			`SUCCESS  rotate-logs on `,
			`SLA      sync-mirror on \S+: maxRuntime of 0.1 s, observed `,
			`EVENT    nightly on \S+: dag_failure, 1 of 3 jobs failed$`,
			`\| nightly-backup: exit status 3$`,
		} {
			phone.Await(t, line)
		}
		if strings.Contains(phone.Output(), "STALE") {
			t.Errorf("marks fresh alerts as stale:\n%s", phone.Output())
		}
	})
	t.Run("a test alert arrives", func(t *testing.T) {
		var answer struct {
			Device string
			Status int
		}
		resp := d.call(t, "Bearer "+d.token(t), "POST", "/push/devices/"+id+"/test", nil, &answer)
		if resp.StatusCode != 200 || answer.Device != id || answer.Status != 202 {
			t.Errorf("answered %d %+v", resp.StatusCode, answer)
		}
		phone.Await(t, `TEST     test on `)
	})
	t.Run("a phone that is started again is the same phone", func(t *testing.T) {
		again, _ := startPhone(t, d, "-name", "pocket", "-n", "1")
		again.Await(t, "^Fingerprint  "+fingerprint+` \(from `)
		again.Await(t, "^Paired again as "+id)
		if code := again.ExitCode(t); code != 0 {
			t.Errorf("exit code %d:\n%s", code, again.Output())
		}
	})
	t.Run("a revoked phone is no longer paged", func(t *testing.T) {
		if resp := d.call(t, "Bearer "+d.token(t), "DELETE", "/push/devices/"+id, nil, nil); resp.StatusCode != 200 {
			t.Errorf("revoking answered %d", resp.StatusCode)
		}
		if devices := d.devices(t, d.token(t)); len(devices) != 0 {
			t.Errorf("lists %+v", devices)
		}
		if resp := d.call(t, "Bearer "+d.token(t), "POST", "/push/devices/"+id+"/test", nil, nil); resp.StatusCode != 404 {
			t.Errorf("a test alert answered %d", resp.StatusCode)
		}
	})
	t.Run("no secret is printed", func(t *testing.T) {
		content, err := os.ReadFile(filepath.Join(d.state, "phone.json"))
		if err != nil {
			t.Fatal(err)
		}
		var kept struct {
			PrivateKey []byte
			PushToken  string
		}
		if err := json.Unmarshal(content, &kept); err != nil || len(kept.PrivateKey) != 32 || len(kept.PushToken) != 64 {
			t.Fatalf("%v in phone.json", err)
		}
		for name, secret := range map[string]string{
			"bearer token": d.token(t), "push token": kept.PushToken,
			"private key": base64.StdEncoding.EncodeToString(kept.PrivateKey), "private key in hex": hex.EncodeToString(kept.PrivateKey),
		} {
			if strings.Contains(d.Output()+phone.Output(), secret) {
				t.Errorf("prints the %s", name)
			}
		}
	})
}
