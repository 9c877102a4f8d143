package docs_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"expvar"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// A daemon made of the guide's blocks: a phone pairs over HTTP, a job fails, the
// phone reads why.
func TestDaemonGuide(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	phone := relaytest.NewPhone()
	if err := daemon(t.Context(), t.TempDir(), relay.URL, "let me in", phone); err != nil {
		t.Fatal(err)
	}
	received, err := phone.Received(relay)
	if err != nil || len(received) != 1 {
		t.Fatalf("the phone received %v, %v", received, err)
	}
	if alert := received[0].Alert; alert.Name != "nightly-backup" || *alert.ExitCode != 3 || alert.LogTail[0] != "gave up" {
		t.Errorf("the phone reads %+v", alert)
	}
}

func daemon(ctx context.Context, stateDir, relayURL, token string, phone *relaytest.Phone) error {
	store, err := pairing.OpenFile(filepath.Join(stateDir, "devices.json"))
	if err != nil {
		return err
	}
	registry, err := pairing.NewRegistry(store)
	if err != nil {
		return err
	}
	client, err := relayclient.New(relayURL) // https://relay.example/, credentials in it if need be
	if err != nil {
		return err
	}
	defer client.Close()
	notifier, err := relayclient.NewNotifier(client, registry, "") // "" is this machine's name
	if err != nil {
		return err
	}

	callerLabel := func(*http.Request) string { return "parker" }
	api, err := pairing.Handler(registry, notifier.Test, pairing.WithCaller(callerLabel))
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/push/", requireToken(token, api))

	server := httptest.NewServer(mux)
	defer server.Close()
	if err := pair(ctx, server.URL, token, phone); err != nil {
		return err
	}
	report(ctx, notifier, time.Now(), 3, "gave up\n")
	return nil
}

func report(ctx context.Context, notifier *relayclient.Notifier, started time.Time, exitCode int, captured string) {
	alert := payload.NewFailure("", "nightly-backup")
	alert.RunID = "run-20260723-0200"
	alert.StartedAt = started
	alert.ExitCode = &exitCode
	alert.FailReason = "exit code 3"
	alert.LogTail = payload.LogTail(captured) // the last 40 lines
	notifier.Notify(ctx, alert)
}

// A daemon that is told to stop while a report is on its way delivers it, and gives up one that a relay never answers.
func TestDaemonGuideStops(t *testing.T) {
	for _, tt := range []struct {
		name      string
		answers   time.Duration // after so long
		took      time.Duration
		delivered bool
	}{
		{"the relay answers", 10 * time.Second, 10 * time.Second, true},
		{"the relay is silent", time.Hour, 11 * time.Second, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				relay := relaytest.NewRelay(relaytest.InMemory())
				defer relay.Close()
				relay.Script(1, relaytest.Answer{Delay: tt.answers})
				var log bytes.Buffer
				logger := slog.New(slog.NewTextHandler(&log, nil))
				client, err := relayclient.New(relay.URL, relayclient.WithHTTPClient(relay.Client()),
					relayclient.WithTimeout(time.Minute), relayclient.WithLogger(logger))
				if err != nil {
					t.Fatal(err)
				}
				notifier, phone := notifierWithPhone(t, client)
				ctx, sigterm := context.WithTimeout(t.Context(), time.Second)
				defer sigterm()
				start := time.Now()
				runUntilStopped(ctx, notifier, client)
				if took := time.Since(start); took != tt.took {
					t.Errorf("it stopped after %v, want %v", took, tt.took)
				}
				received, err := phone.Received(relay)
				if err != nil || (len(received) == 1) != tt.delivered {
					t.Errorf("the phone received %v, %v", received, err)
				}
				if strings.Contains(log.String(), "the daemon is stopping") == tt.delivered {
					t.Errorf("log %s", log.String())
				}
			})
		})
	}
}

// runUntilStopped is a daemon whose one job fails at once.
func runUntilStopped(ctx context.Context, notifier *relayclient.Notifier, client *relayclient.Client) {
	reporting, giveUp := context.WithCancelCause(context.WithoutCancel(ctx)) // SIGTERM ends ctx, and no report
	var reports sync.WaitGroup
	report := func(alert payload.Alert) {
		reports.Go(func() {
			ctx, cancel := context.WithTimeout(reporting, 30*time.Second)
			defer cancel()
			notifier.Notify(ctx, alert) // what goes wrong is in the log
		})
	}
	report(payload.NewFailure("", "backup"))
	<-ctx.Done()
	late := time.AfterFunc(10*time.Second, func() { giveUp(errors.New("the daemon is stopping")) })
	reports.Wait()
	late.Stop()
	client.Close()
}

// The guide's observer counts what became of alerts.
func TestDaemonGuideCounts(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	alerts := new(expvar.Map)
	client, err := countedClient(relay.URL, alerts)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	notifier, _ := notifierWithPhone(t, client)
	for range 2 {
		if _, err := notifier.Notify(t.Context(), payload.NewFailure("", "backup")); err != nil {
			t.Fatal(err)
		}
	}
	if counted := alerts.String(); counted != `{"coalesced": 1, "forwarded": 1}` {
		t.Errorf("counted %s", counted)
	}
}

func countedClient(relayURL string, alerts *expvar.Map) (*relayclient.Client, error) {
	client, err := relayclient.New(relayURL, relayclient.WithObserver(func(_ context.Context, o relayclient.Observation) {
		alerts.Add(o.Result, 1) // of package expvar, say
	}))
	return client, err
}

// The guide's storm guard: of 40 jobs that fail at once, and a critical one, the phone reads of all when the daemon has
// stopped.
func TestDaemonGuideSurvivesAStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewRelay(relaytest.InMemory())
		defer relay.Close()
		client, err := relayclient.New(relay.URL, relayclient.WithHTTPClient(relay.Client()))
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		registry, phone := registryWithPhone(t)
		if err := storm(t.Context(), client, registry, 40); err != nil {
			t.Fatal(err)
		}
		received, err := phone.Received(relay)
		if err != nil || len(received) != 32 {
			t.Fatalf("the phone received %d alerts, %v", len(received), err)
		}
		if summary := received[31].Alert; received[30].Alert.Name != "keys" || !strings.HasPrefix(summary.FailReason, "10 alerts held back ") {
			t.Errorf("the phone reads %+v at last", summary)
		}
	})
}

// storm is a daemon whose jobs all fail.
func storm(ctx context.Context, client *relayclient.Client, registry *pairing.Registry, jobs int) error {
	notifier, err := relayclient.NewNotifier(client, registry, "", relayclient.WithStormGuard(30))
	if err != nil {
		return err
	}
	for i := range jobs {
		if _, err := notifier.Notify(ctx, payload.NewFailure("", fmt.Sprint("job ", i))); err != nil && !errors.Is(err, relayclient.ErrHeldBack) {
			return err
		}
	}
	if err := critically(ctx, notifier, payload.NewFailure("", "keys")); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return notifier.Close(ctx) // the error says how many alerts nobody was told of
}

func critically(ctx context.Context, notifier *relayclient.Notifier, alert payload.Alert) error {
	outcomes, err := notifier.Notify(ctx, alert, relayclient.WithCritical())
	if err != nil {
		return err
	}
	return outcomes[0].Err
}

// The guide's command for a job.
func TestDaemonGuideKeepsItsSecrets(t *testing.T) {
	t.Setenv("SEALPUSH_TOKENS", "laptop=0123456789abcdef")
	t.Setenv("BACKUP_TARGET", "nas")
	cmd := exec.CommandContext(t.Context(), "backup")
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "SEALPUSH_") // or whatever the daemon's are called
	})
	if env := strings.Join(cmd.Env, " "); strings.Contains(env, "0123456789abcdef") || !strings.Contains(env, "BACKUP_TARGET=nas") {
		t.Errorf("the job sees %s", env)
	}
}

// The guide's other blocks: a phone that is gone, and what would be cut.
func TestDaemonGuideLooksCloser(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	relay.Script(relaytest.Always, relaytest.Answer{Status: http.StatusGone})
	client, err := relayclient.New(relay.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	notifier, _ := notifierWithPhone(t, client)
	if err := warnOfDeadPhones(t.Context(), notifier, payload.NewFailure("", "backup")); err != nil {
		t.Error(err)
	}
	if err := showFit(payload.NewFailure("", "backup"), "node-a"); err != nil {
		t.Error(err)
	}
}

func notifierWithPhone(t *testing.T, client *relayclient.Client) (*relayclient.Notifier, *relaytest.Phone) {
	t.Helper()
	registry, phone := registryWithPhone(t)
	notifier, err := relayclient.NewNotifier(client, registry, "node-a")
	if err != nil {
		t.Fatal(err)
	}
	return notifier, phone
}

func registryWithPhone(t *testing.T) (*pairing.Registry, *relaytest.Phone) {
	t.Helper()
	store, err := pairing.OpenFile(filepath.Join(t.TempDir(), "devices.json"))
	if err != nil {
		t.Fatal(err)
	}
	registry, err := pairing.NewRegistry(store)
	if err != nil {
		t.Fatal(err)
	}
	phone := relaytest.NewPhone()
	request := pairing.Request{Name: "phone", Platform: "ios", PublicKey: phone.PublicKey(), PushToken: secret.New(phone.PushToken())}
	if _, _, err := registry.Pair(t.Context(), request, ""); err != nil {
		t.Fatal(err)
	}
	return registry, phone
}

func warnOfDeadPhones(ctx context.Context, notifier *relayclient.Notifier, alert payload.Alert) error {
	outcomes, err := notifier.Notify(ctx, alert)
	if err != nil {
		return err // nobody was paged
	}
	for _, outcome := range outcomes {
		switch {
		case errors.Is(outcome.Err, relayclient.ErrDeviceGone):
			slog.Warn("this phone must pair again", "device", outcome.DeviceID) // or registry.Revoke(ctx, outcome.DeviceID)
		case outcome.Relay == relayclient.Digested:
			slog.Warn("this phone gets too many alerts", "device", outcome.DeviceID)
		}
	}
	return nil
}

func showFit(alert payload.Alert, host string) error {
	alert.Host = host
	fitted, err := payload.Fit(alert, seal.X25519.MaxPlaintext(3000))
	if err != nil {
		return err
	}
	fmt.Println(fitted.Trimmed.LogLines, "lines would go")
	return nil
}

func requireToken(token string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte("Bearer " + token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		if subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "give the daemon's token as a bearer token", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// pair is what the app does.
func pair(ctx context.Context, daemonURL, token string, phone *relaytest.Phone) error {
	body, err := json.Marshal(map[string]string{
		"name": "parker's phone", "platform": "ios", "publicKey": phone.PublicKey().String(), "pushToken": phone.PushToken(),
	})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, daemonURL+"/push/devices", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
