package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/examples/programtest"
	"github.com/sealpush/sealpush/internal/state"
)

// exampleDaemon is examples/daemon, running.
type exampleDaemon struct {
	*programtest.Program
	process *os.Process
	url     string
	state   string
}

// startDaemon builds the daemon, starts it on a free port and waits until it is ready.
func startDaemon(t *testing.T) exampleDaemon {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "daemon.exe") // the suffix matters on Windows alone
	build := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o", binary, "./examples/daemon")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	dir := filepath.Join(t.TempDir(), "state")
	cmd := exec.CommandContext(t.Context(), binary, "-listen", "127.0.0.1:0", "-state", dir, "-every", "1h")
	d := exampleDaemon{Program: programtest.Start(t, cmd), process: cmd.Process, state: dir}
	d.url = d.Await(t, `^Daemon +(http://\S+)$`)[1]
	d.Await(t, "^Ready")
	return d
}

// token is the one that the daemon has made.
func (d exampleDaemon) token(t *testing.T) string {
	t.Helper()
	token, err := state.ReadToken(state.TokenPath(d.state))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// call asks the pairing API, decodes the answer into v, which may be nil, and returns the status.
func (d exampleDaemon) call(t *testing.T, method, path string, v any) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, d.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+d.token(t))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if v != nil {
		if err := json.NewDecoder(resp.Body).Decode(v); err != nil {
			t.Fatalf("%s %s answered %d: %v", method, path, resp.StatusCode, err)
		}
	}
	return resp.StatusCode
}

type listedDevice struct{ ID, Name, Fingerprint, PushToken, CreatedBy string }

func (d exampleDaemon) devices(t *testing.T) []listedDevice {
	t.Helper()
	var list struct{ Devices []listedDevice }
	if status := d.call(t, "GET", "/push/devices", &list); status != 200 {
		t.Fatalf("GET /push/devices answered %d", status)
	}
	return list.Devices
}

// startPhone runs the command that the daemon prints, with more arguments.
func startPhone(t *testing.T, d exampleDaemon, more ...string) (*programtest.Program, *os.Process) {
	t.Helper()
	printed := d.Await(t, `^    sealpush (phone .+)$`)[1]
	args := strings.Fields(strings.ReplaceAll(printed, `"`+d.state+`"`, d.state))
	cmd := tool(t, append(args, more...)...)
	return programtest.Start(t, cmd), cmd.Process
}

// TestTwoTerminals is what the two programs do for somebody who tries them.
func TestTwoTerminals(t *testing.T) {
	d := startDaemon(t)
	phone, _ := startPhone(t, d, "-name", "pocket")
	fingerprint := phone.Await(t, `^Fingerprint  ([0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}) \(new, `)[1]
	id := phone.Await(t, `^Paired as ([0-9a-f]{16}) with `)[1]

	t.Run("the daemon has the same fingerprint", func(t *testing.T) {
		d.Await(t, "device paired .*"+fingerprint)
		devices := d.devices(t)
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
		status := d.call(t, "POST", "/push/devices/"+id+"/test", &answer)
		if status != 200 || answer.Device != id || answer.Status != 202 {
			t.Errorf("answered %d %+v", status, answer)
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
		if status := d.call(t, "DELETE", "/push/devices/"+id, nil); status != 200 {
			t.Errorf("revoking answered %d", status)
		}
		if devices := d.devices(t); len(devices) != 0 {
			t.Errorf("lists %+v", devices)
		}
		if status := d.call(t, "POST", "/push/devices/"+id+"/test", nil); status != 404 {
			t.Errorf("a test alert answered %d", status)
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
