package main

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sealpush/sealpush/internal/state"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// signingKey is made once, for it takes long.
var signingKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// newSetup is the reference setup, in the test's process.
func newSetup(t *testing.T) *reference {
	t.Helper()
	key, err := signingKey()
	if err != nil {
		t.Fatal(err)
	}
	setup, err := newReference(t.Context(), relaytest.WithSigningKey(key), relaytest.WithHashRounds(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(setup.close)
	return setup
}

// doctor runs the doctor and returns all that it prints.
func doctor(t *testing.T, args ...string) (printed string, exitCode int) {
	t.Helper()
	return output(t, tool(t, append([]string{"doctor"}, args...)...))
}

// expectDoctor runs the doctor, and wants an exit code and pieces of what it prints.
func expectDoctor(t *testing.T, exitCode int, pieces []string, args ...string) {
	t.Helper()
	expect(t, exitCode, pieces, append([]string{"doctor"}, args...)...)
}

// away keeps the user's own configuration out of the test.
func away(t *testing.T) {
	dir := t.TempDir()
	for _, variable := range []string{"HOME", "XDG_CONFIG_HOME", "AppData"} {
		t.Setenv(variable, dir)
	}
}

func TestWithoutFlagsShowsAGoodRun(t *testing.T) {
	away(t)
	expectDoctor(t, 0, []string{"refuses a malformed envelope", "1 phone", "takes the token", " 0 to look at, 0 failed.",
		"reference setup", "-relay-url URL -registry devices.json"})
	expectDoctor(t, 0, []string{"forwarded a test alert (202)", "notification sent to a phone (ios)"}, "-page")
	out, _ := doctor(t)
	if first, _, _ := strings.Cut(out, "\n"); !strings.Contains(first, "Nothing of yours is checked") || !strings.Contains(first, "inside this process") {
		t.Errorf("the first line is %q", first)
	}
	var document struct{ Note string }
	if out, _ := doctor(t, "-json"); json.Unmarshal([]byte(out), &document) != nil || !strings.Contains(document.Note, "Nothing of yours is checked") {
		t.Errorf("as JSON it says\n%s", out)
	}
}

// Somebody who has written settings, or whose settings cannot be found, is not shown that another setup is healthy.
func TestSettingsThatNameNothing(t *testing.T) {
	away(t)
	empty := filepath.Join(t.TempDir(), "empty.toml")
	write(t, empty, "host = \"db-1\"\n")
	const toDo = "set relay_url and registry there, or pair a phone: sealpush pair -relay-url URL"
	expectDoctor(t, exitUsage, []string{"no relay and no registry in " + empty + ": " + toDo}, "-config", empty)
	expectDoctor(t, 0, []string{"takes the token"}, "-config", empty, "-bridge", newSetup(t).bridgeConfig)

	users, _ := userFile(configName)
	if err := os.MkdirAll(filepath.Dir(users), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, users, "")
	expectDoctor(t, exitUsage, []string{"no relay and no registry in " + users + ": " + toDo})

	for _, variable := range []string{"HOME", "XDG_CONFIG_HOME", "AppData"} {
		t.Setenv(variable, "")
	}
	const notLooked = "no relay url: set relay_url in sealpush.toml, $SEALPUSH_RELAY_URL or -relay-url; the user's own files were not looked for: "
	expectDoctor(t, exitUsage, []string{"nothing to check: " + notLooked})
	expect(t, 3, []string{"nobody was paged: " + notLooked}, "run", "--", os.Args[0], "job", "fail")
}

func TestWithoutFlagsFindsTheExamplesFiles(t *testing.T) {
	away(t)
	setup := newSetup(t)
	dir, err := state.Dir()
	if err != nil {
		t.Fatal(err)
	}
	registry, err := os.ReadFile(setup.registry)
	if err != nil {
		t.Fatal(err)
	}
	if err := state.Create(filepath.Join(dir, "devices.json"), registry); err != nil {
		t.Fatal(err)
	}
	// Whether a daemon listens on this machine is not the test's.
	out, _ := doctor(t)
	for _, piece := range []string{"http://" + state.DaemonAddr, "1 phone", "the setup of examples/daemon"} {
		if !strings.Contains(out, piece) {
			t.Errorf("it does not say %q, but\n%s", piece, out)
		}
	}
}

func TestChecksPageNobody(t *testing.T) {
	setup := newSetup(t)
	expectDoctor(t, 0, []string{" 0 failed."}, "-relay-url", setup.relay.URL, "-registry", setup.registry, "-bridge", setup.bridgeConfig)
	for _, request := range setup.relay.Requests() {
		if _, err := request.Envelope(); err == nil {
			t.Error("the relay was posted an envelope")
		}
	}
	if n := setup.bridge.RequestCount(relaytest.EndpointPush) + len(setup.bridge.Pushes("bridge-home-office")); n != 0 {
		t.Errorf("the push relay was asked to push %d times", n)
	}
	if n := setup.bridge.RequestCount(relaytest.EndpointRegister); n != 1 {
		t.Errorf("%d registrations, want the setup's own", n)
	}
	if devices := setup.bridge.Devices("bridge-home-office"); len(devices) != 1 {
		t.Errorf("%d phones registered afterwards", len(devices))
	}
}

func TestChecksChangeNoFile(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	devices := filepath.Join(t.TempDir(), "devices.json")
	content := []byte(`{"version":1,"devices":[]}`) // no salt: a daemon would make one
	if err := os.WriteFile(devices, content, 0o600); err != nil {
		t.Fatal(err)
	}
	expectDoctor(t, 1, []string{"nobody would be paged", "no collapse salt yet"}, "-registry", devices)
	expectDoctor(t, 1, []string{"nobody was paged"}, "-page", "-relay-url", relay.URL, "-registry", devices)
	after, err := os.ReadFile(devices)
	if err != nil || string(after) != string(content) {
		t.Errorf("the registry is now %q, %v", after, err)
	}
	if names, err := filepath.Glob(devices + "*"); err != nil || len(names) != 1 {
		t.Errorf("beside the registry: %v, %v", names, err)
	}
}

func TestRelayVariable(t *testing.T) {
	setup := newSetup(t)
	t.Setenv("SEALPUSH_RELAY_URL", setup.relay.URL)
	expectDoctor(t, 0, []string{"refuses a malformed envelope", "phones were not checked: pass the registry with -registry"})
}

func TestPagePagesEachOnce(t *testing.T) {
	setup := newSetup(t)
	args := []string{"-page", "-relay-url", setup.relay.URL, "-registry", setup.registry, "-bridge", setup.bridgeConfig}
	expectDoctor(t, 0, []string{"forwarded a test alert (202)", "notification sent"}, args...)
	envelopes := 0
	for _, request := range setup.relay.Requests() {
		if _, err := request.Envelope(); err == nil {
			envelopes++
		}
	}
	if pushes := setup.bridge.Pushes("bridge-home-office"); envelopes != 1 || len(pushes) != 1 {
		t.Errorf("%d alerts and %d notifications", envelopes, len(pushes))
	}
}

func TestJSON(t *testing.T) {
	setup := newSetup(t)
	setup.relay.Script(1, relaytest.Answer{Status: http.StatusNotFound})
	out, code := doctor(t, "-json", "-relay-url", setup.relay.URL, "-registry", setup.registry)
	var document struct {
		Healthy  bool
		Findings []finding
	}
	if err := json.Unmarshal([]byte(out), &document); err != nil || code != 1 || document.Healthy {
		t.Fatalf("exit code %d, %v: %s", code, err, out)
	}
	failed := 0
	for _, f := range document.Findings {
		if f.Result == resultFail {
			failed++
			if f.Area != "Relay for sealed alerts" || f.ToDo == "" {
				t.Errorf("%+v", f)
			}
		}
	}
	if failed != 1 {
		t.Errorf("%d failed: %s", failed, out)
	}
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		{"https://operator:hunter2@relay.example/"},
		{"-page", "-registry", "devices.json"},
		{"-no-such-flag"},
	} {
		t.Run(fmt.Sprint(args), func(t *testing.T) {
			out, code := doctor(t, args...)
			if code != exitUsage || out == "" || strings.Contains(out, "hunter2") {
				t.Errorf("exit code %d: %s", code, out)
			}
		})
	}
	if out, code := doctor(t, "-help"); code != 0 || !strings.Contains(out, "-registry") {
		t.Errorf("exit code %d: %s", code, out)
	}
}
