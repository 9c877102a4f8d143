package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/examples/programtest"
	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// The test binary plays the daemon, when started with asDaemon in its
// environment, and the daemon's jobs, which do not inherit that.
const asDaemon = "SEALPUSH_TEST_RUN_DAEMON"

func TestMain(m *testing.M) {
	isJob := len(os.Args) > 1 && os.Args[1] == demoJob
	if isJob || os.Getenv(asDaemon) != "" {
		main()
		return
	}
	os.Unsetenv(tokensVariable)
	os.Exit(m.Run())
}

// daemon is a running daemon.
type daemon struct {
	*programtest.Program
	process *os.Process
	url     string
	state   string
}

func daemonCommand(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), asDaemon+"=1")
	return cmd
}

// startDaemon starts a daemon on a free port and waits until it is ready.
func startDaemon(t *testing.T, args ...string) daemon {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	cmd := daemonCommand(t, append([]string{"-listen", "127.0.0.1:0", "-state", dir, "-every", "1h"}, args...)...)
	d := daemon{Program: programtest.Start(t, cmd), process: cmd.Process, state: dir}
	d.url = d.Await(t, `^Daemon +(http://\S+)$`)[1]
	d.Await(t, "^Ready")
	return d
}

// token is the one that the daemon has made.
func (d daemon) token(t *testing.T) string {
	t.Helper()
	token, err := ensureToken(tokenPath(d.state))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// call asks the pairing API, decodes the answer into v and returns the response.
func (d daemon) call(t *testing.T, token, method, path string, body, v any) *http.Response {
	t.Helper()
	encoded, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, d.url+path, bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if v == nil {
		return resp
	}
	if err := json.Unmarshal(answer, v); err != nil {
		t.Fatalf("%s %s answered %d %q: %v", method, path, resp.StatusCode, answer, err)
	}
	return resp
}

// pair pairs a phone with a daemon that has made its own token.
func (d daemon) pair(t *testing.T, phone *relaytest.Phone) {
	t.Helper()
	d.pairAs(t, phone, d.token(t))
}

func (d daemon) pairAs(t *testing.T, phone *relaytest.Phone, token string) {
	t.Helper()
	pairing := map[string]string{
		"name": "pocket", "platform": "ios", "publicKey": phone.PublicKey().String(), "pushToken": phone.PushToken(),
	}
	if resp := d.call(t, "Bearer "+token, "POST", "/push/devices", pairing, nil); resp.StatusCode != 201 {
		t.Fatalf("pairing answered %d", resp.StatusCode)
	}
}

type listed struct{ ID, Name, Fingerprint, PushToken, CreatedBy string }

func (d daemon) devices(t *testing.T, token string) []listed {
	t.Helper()
	var list struct{ Devices []listed }
	if resp := d.call(t, "Bearer "+token, "GET", "/push/devices", nil, &list); resp.StatusCode != 200 {
		t.Fatalf("GET /push/devices answered %d", resp.StatusCode)
	}
	return list.Devices
}

func TestTokens(t *testing.T) {
	const right = "0123456789abcdef"
	t.Setenv(tokensVariable, "laptop="+right+" desk=aaaaaaaaaaaaaaaa")
	d := startDaemon(t, "-token", "tablet=fedcba9876543210")
	for _, path := range []string{"/push/devices", "/push/devices/4f290363ad16419c"} {
		for name, token := range map[string]string{
			"none": "", "wrong": "Bearer 0123456789abcdeF", "longer": "Bearer " + right + "0", "empty": "Bearer ",
			"label": "Bearer laptop", "another scheme": "Basic " + right,
		} {
			var answer struct{ Error string }
			resp := d.call(t, token, "DELETE", path, nil, &answer)
			if resp.StatusCode != 401 || !strings.HasPrefix(resp.Header.Get("WWW-Authenticate"), "Bearer ") || answer.Error == "" {
				t.Errorf("%s, token %s: answered %d %v %q", path, name, resp.StatusCode, resp.Header, answer.Error)
			}
		}
	}
	for _, token := range []string{right, "aaaaaaaaaaaaaaaa", "fedcba9876543210"} {
		if devices := d.devices(t, token); len(devices) != 0 {
			t.Errorf("lists %v", devices)
		}
	}
	if out := d.Output(); !strings.Contains(out, "laptop, desk, tablet") || strings.Contains(out, right) {
		t.Errorf("prints\n%s", out)
	}
	if _, err := os.Stat(tokenPath(d.state)); err == nil {
		t.Error("has made a token beside the given ones")
	}
}

// TestOwnJobs has the daemon run jobs and post to a relay that were given to it.
func TestOwnJobs(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	phone := relaytest.NewPhone()
	d := startDaemon(t, "-relay", relay.URL+"/?key=confidential", "-dag", "evening", "-max-runtime", "1ns",
		"-job", fmt.Sprintf("backup=%s %s fail", os.Args[0], demoJob), "-job", "gone=no-such-command-anywhere --at all")
	d.pair(t, phone)
	if _, err := relay.WaitInbox(t.Context(), phone.PushToken(), 4); err != nil {
		t.Fatal(err)
	}
	received, err := phone.Received(relay)
	if err != nil {
		t.Fatal(err)
	}
	alerts := map[string]payload.Alert{}
	for _, n := range received {
		alerts[string(n.Alert.Kind)+" "+n.Alert.Name] = n.Alert
	}
	backup, gone, event := alerts["failure backup"], alerts["failure gone"], alerts["event evening"]
	if backup.ExitCode == nil || *backup.ExitCode != 3 || len(backup.LogTail) != 1 || backup.RunID == "" {
		t.Errorf("backup: %+v", backup)
	}
	if gone.ExitCode != nil || !strings.Contains(gone.FailReason, "not started") {
		t.Errorf("gone: %+v", gone)
	}
	if event.Event != payload.EventDAGFailure || event.DAG != "evening" || event.RunKey != backup.RunID || event.Subject != "2 of 2 jobs failed" {
		t.Errorf("event: %+v", event)
	}
	sla := alerts["sla backup"]
	if sla.SLACheck != payload.CheckMaxRuntime || sla.ObservedSeconds == nil || *sla.ObservedSeconds <= *sla.ThresholdSeconds {
		t.Errorf("sla: %+v", sla)
	}
	if strings.Contains(d.Output(), "confidential") {
		t.Errorf("shows the relay's key:\n%s", d.Output())
	}
}

func TestUsage(t *testing.T) {
	dir := t.TempDir()
	corrupt := filepath.Join(dir, "corrupt.json")
	if err := os.WriteFile(corrupt, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := startDaemon(t)
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"short token":       {[]string{"-token", "laptop=hunter2"}, "less than 16 characters"},
		"token, no label":   {[]string{"-token", "hunter2hunter2hunter2"}, "want LABEL=TOKEN"},
		"job, no command":   {[]string{"-job", "backup"}, "want NAME=CMD"},
		"never":             {[]string{"-every", "0s"}, "-every must be more than 0"},
		"command, no -job":  {[]string{"true"}, "give a command with -job"},
		"link in a pipe":    {[]string{"-link"}, "use it in a terminal"},
		"bad relay":         {[]string{"-relay", "relay.example"}, "relay"},
		"address in use":    {[]string{"-listen", strings.TrimPrefix(d.url, "http://")}, "choose another address"},
		"corrupt registry":  {[]string{"-devices", corrupt}, "corrupt.json"},
		"directory in file": {[]string{"-devices", filepath.Join(corrupt, "devices.json")}, "corrupt.json"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"-listen", "127.0.0.1:0", "-state", dir}, tt.args...)
			out, err := daemonCommand(t, args...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), tt.want) || strings.Contains(string(out), "hunter2") {
				t.Errorf("%v, prints %q, want %q", err, out, tt.want)
			}
		})
	}
}
