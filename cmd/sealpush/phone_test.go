package main

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/examples/programtest"
	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/seal"
)

const phoneToken = "0123456789abcdef"

// phoneFixture is a daemon with a relay of its own.
type phoneFixture struct {
	relay    *relaytest.Relay
	registry *pairing.Registry
	server   *httptest.Server
	state    string // the phone's
}

func newPhoneFixture(t *testing.T) phoneFixture {
	t.Helper()
	f := phoneFixture{relay: relaytest.NewRelay(), state: t.TempDir()}
	t.Cleanup(f.relay.Close)
	store, err := pairing.OpenFile(filepath.Join(t.TempDir(), "devices.json"))
	if err != nil {
		t.Fatal(err)
	}
	f.registry, err = pairing.NewRegistry(store, pairing.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	api, err := pairing.Handler(f.registry, nil)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/push/devices", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+phoneToken {
			http.Error(w, `{"error":"who are you?"}`, http.StatusUnauthorized)
			return
		}
		api.ServeHTTP(w, r)
	})
	mux.Handle("/inbox", f.relay.InboxHandler())
	f.server = httptest.NewServer(mux)
	t.Cleanup(f.server.Close)
	return f
}

func (f phoneFixture) phone(t *testing.T, args ...string) *exec.Cmd {
	args = append([]string{"-daemon", f.server.URL + "/", "-state", f.state, "-token", phoneToken}, args...)
	return tool(t, append([]string{"phone"}, args...)...)
}

// page sends alerts to every paired phone.
func (f phoneFixture) page(t *testing.T, alerts ...payload.Alert) {
	t.Helper()
	client, err := relayclient.New(f.relay.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	notifier, err := relayclient.NewNotifier(client, f.registry, "db1")
	if err != nil {
		t.Fatal(err)
	}
	for _, alert := range alerts {
		outcomes, err := notifier.Notify(t.Context(), alert)
		if err != nil {
			t.Fatal(err)
		}
		for _, outcome := range outcomes {
			if outcome.Err != nil {
				t.Fatal(outcome.Err)
			}
		}
	}
}

func TestMarksStaleAlerts(t *testing.T) {
	f := newPhoneFixture(t)
	phone := programtest.Start(t, f.phone(t, "-n", "2"))
	phone.Await(t, "^Waiting")
	old, fresh := payload.NewFailure("", "old"), payload.NewFailure("", "fresh")
	old.Time = time.Now().Add(-payload.FreshFor - time.Second)
	f.page(t, old, fresh)
	if code := phone.ExitCode(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	phone.Await(t, `STALE FAILURE  old on db1$`)
	phone.Await(t, `:\d\d  FAILURE  fresh on db1$`)
}

func TestAlertsCannotSteerTheTerminal(t *testing.T) {
	f := newPhoneFixture(t)
	phone := programtest.Start(t, f.phone(t, "-n", "1"))
	phone.Await(t, "^Waiting")
	alert := payload.NewFailure("db1\r", "\x1b[2Jname")
	alert.FailReason = "\x1b]0;title\a"
	alert.LogTail = []string{"a\x1b[31mb\tc", "é"}
	f.page(t, alert)
	phone.ExitCode(t)
	phone.Await(t, `\| é$`)
	phone.Await(t, `\| a.\[31mb c$`)
	if out := phone.Output(); strings.ContainsAny(out, "\x1b\a\r") {
		t.Errorf("prints %q", out)
	}
}

func TestAMessageThatDoesNotOpenIsPassedOver(t *testing.T) {
	f := newPhoneFixture(t)
	phone := programtest.Start(t, f.phone(t, "-n", "1"))
	phone.Await(t, "^Waiting")
	recipients := f.registry.Recipients(t.Context())
	forged := recipients.Devices[0]
	forged.PublicKey = seal.GenerateKey().Public()
	client, err := relayclient.New(f.relay.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	push := relayclient.Push{Alert: payload.NewTest("db1"), Salt: recipients.Salt}
	if err := client.Send(t.Context(), push, []pairing.Device{forged})[0].Err; err != nil {
		t.Fatal(err)
	}
	f.page(t, payload.NewSuccess("", "real"))
	phone.ExitCode(t)
	phone.Await(t, `cannot be shown: .*cannot open the sealed box`)
	phone.Await(t, `SUCCESS  real on db1$`)
}

// TestWaitsForARelayThatIsAway closes the relay and has another one take its
// place, as when a daemon is started again.
func TestWaitsForARelayThatIsAway(t *testing.T) {
	f := newPhoneFixture(t)
	first, again := f.relay, relaytest.NewRelay()
	defer again.Close()
	away := make(chan struct{})
	inboxes := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-away:
			again.InboxHandler().ServeHTTP(w, r)
		default:
			first.InboxHandler().ServeHTTP(w, r)
		}
	}))
	defer inboxes.Close()

	phone := programtest.Start(t, f.phone(t, "-inbox", inboxes.URL, "-n", "2"))
	phone.Await(t, "^Waiting")
	f.page(t, payload.NewSuccess("", "before"))
	phone.Await(t, "SUCCESS  before on db1$")
	first.Close()
	phone.Await(t, "answered 503 .*trying again in 1s")
	f.relay = again
	f.page(t, payload.NewSuccess("", "after"))
	close(away)
	if code := phone.ExitCode(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
	phone.Await(t, "SUCCESS  after on db1$")
}

func TestSaysWhatToDo(t *testing.T) {
	f := newPhoneFixture(t)
	redirect := httptest.NewServer(http.RedirectHandler(f.server.URL+"/push/devices", http.StatusTemporaryRedirect))
	defer redirect.Close()
	swapped := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(map[string]any{"device": map[string]string{"fingerprint": "8c2f-91ab-04de"}})
	}))
	defer swapped.Close()
	away := httptest.NewServer(nil)
	away.Close()
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "phone.json"), []byte(`{"privateKey":"AAAA"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"wrong token":     {[]string{"-token", "wrong-wrong-wrong"}, "does not know this token (answered 401 Unauthorized: who are you?): pass one of its tokens with -token"},
		"no token":        {[]string{"-token", ""}, "start the daemon first"},
		"no daemon":       {[]string{"-daemon", away.URL}, "is the daemon running?"},
		"no inbox":        {[]string{"-inbox", f.server.URL + "/elsewhere"}, "pass the relay's with -inbox"},
		"key swapped":     {[]string{"-daemon", swapped.URL}, "somebody in between has put in a key of theirs"},
		"redirect":        {[]string{"-daemon", redirect.URL}, "answered 307"},
		"broken key file": {[]string{"-state", broken}, "remove it to start as a new phone"},
		"name too long":   {[]string{"-name", strings.Repeat("x", 65)}, "name must be at most 64 characters"},
		"not a URL":       {[]string{"-daemon", "localhost:8787"}, "-daemon must be a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := f.phone(t, tt.args...).CombinedOutput()
			if err == nil || !strings.Contains(string(out), tt.want) || strings.Contains(string(out), "wrong-wrong") {
				t.Errorf("%v, prints\n%swant %q", err, out, tt.want)
			}
		})
	}
}
