package relayclient_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// newNotifier returns a notifier over a registry file with n phones.
func newNotifier(t *testing.T, relay *relaytest.Relay, n int) (*relayclient.Notifier, *pairing.Registry, []*relaytest.Phone, *logbook) {
	t.Helper()
	client, log := newClient(t, relay)
	registry := registryFile(t, "", pairing.WithLogger(log.logger()))
	phones := pairPhones(t, registry, n)
	notifier, err := relayclient.NewNotifier(client, registry, "node-a")
	if err != nil {
		t.Fatal(err)
	}
	return notifier, registry, phones, log
}

// registryFile returns a registry over a file with the given content, or over none yet.
func registryFile(t *testing.T, content string, opts ...pairing.RegistryOption) *pairing.Registry {
	t.Helper()
	path := filepath.Join(t.TempDir(), "devices.json")
	if content != "" {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	store, err := pairing.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	registry, err := pairing.NewRegistry(store, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

func pairPhones(t *testing.T, registry *pairing.Registry, n int) []*relaytest.Phone {
	t.Helper()
	phones, _ := phones(n)
	for _, phone := range phones {
		_, _, err := registry.Pair(t.Context(), pairing.Request{
			Name: "phone", Platform: "ios", PublicKey: phone.PublicKey(), PushToken: secret.New(phone.PushToken()),
		}, "")
		if err != nil {
			t.Fatal(err)
		}
	}
	return phones
}

func TestNotifyPagesEveryPairedPhone(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	notifier, registry, phones, _ := newNotifier(t, relay, 3)

	outcomes, err := notifier.Notify(t.Context(), payload.NewFailure("", "backup"), relayclient.WithPriority(relayclient.Passive))
	if err != nil || len(outcomes) != 3 {
		t.Fatalf("%d outcomes, %v", len(outcomes), err)
	}
	for _, outcome := range outcomes {
		if outcome.Err != nil || outcome.Relay != relayclient.Forwarded {
			t.Errorf("%+v", outcome)
		}
	}
	for _, phone := range phones {
		received, err := phone.Received(relay)
		if err != nil || len(received) != 1 || received[0].Alert.Host != "node-a" {
			t.Errorf("a phone received %v, %v", received, err)
		}
	}
	envelope, err := relay.Requests()[0].Envelope()
	if err != nil {
		t.Fatal(err)
	}
	alert := payload.NewFailure("node-a", "backup")
	if envelope.Priority != "passive" || envelope.CollapseID != alert.CollapseID(registry.Salt(t.Context())) {
		t.Errorf("priority %s, collapse id %s", envelope.Priority, envelope.CollapseID)
	}
}

func TestNotifyKeepsTheHostOfAnAlert(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	notifier, _, phones, _ := newNotifier(t, relay, 1)
	if _, err := notifier.Notify(t.Context(), payload.NewFailure("node-b", "backup")); err != nil {
		t.Fatal(err)
	}
	received, err := phones[0].Received(relay)
	if err != nil || received[0].Alert.Host != "node-b" {
		t.Errorf("%v, %v", received, err)
	}
}

// A phone that lost its key pairs anew under the push token that it has still, once with a node that keeps both records and
// once with this one: it opens every page.
func TestAPhoneThatLostItsKeyOpensEveryPage(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, _ := newClient(t, relay)
	const record = `{"id":"%s","name":"phone","platform":"ios","publicKey":"%s","pushToken":"%s","createdAt":"2026-07-%dT14:00:00+00:00"}`
	lost := relaytest.NewPhone()
	token := lost.PushToken()
	phone := relaytest.NewPhone(relaytest.WithPushToken(token))
	registry := registryFile(t, `{"version":1,"devices":[`+fmt.Sprintf(record, "a", phone.PublicKey(), strings.ToUpper(token), 24)+`,`+
		fmt.Sprintf(record, "b", lost.PublicKey(), token, 23)+`]}`, pairing.WithLogger(slog.New(slog.DiscardHandler)))
	notifier, err := relayclient.NewNotifier(client, registry, "node-a")
	if err != nil {
		t.Fatal(err)
	}
	page25 := func(phone *relaytest.Phone) {
		t.Helper()
		before := len(relay.Inbox(token))
		for i := range 25 {
			outcomes, err := notifier.Notify(t.Context(), payload.NewFailure("", fmt.Sprint("backup of ", phone, i)))
			if err != nil || len(outcomes) != 1 || outcomes[0].Err != nil {
				t.Fatalf("%v, %v", outcomes, err)
			}
		}
		messages := relay.Inbox(token)[before:]
		for _, message := range messages {
			if _, err := phone.Open(message); err != nil {
				t.Errorf("a page does not open: %v", err)
			}
		}
		if len(messages) != 25 {
			t.Errorf("%d pages arrived, want 25", len(messages))
		}
	}
	page25(phone)

	again := relaytest.NewPhone(relaytest.WithPushToken(token))
	request := pairing.Request{Name: "phone", Platform: "ios", PublicKey: again.PublicKey(), PushToken: secret.New(token)}
	if _, _, err := registry.Pair(t.Context(), request, ""); err != nil {
		t.Fatal(err)
	}
	page25(again)
}

// The error says why nobody was paged, and so does the log: a line for each phone, or one for the alert, which it names.
func TestNotifySaysWhyNobodyWasPaged(t *testing.T) {
	const longToken = `{"version":1,"collapseSalt":"4cf956b7261a9bc5628f2ffa5544190c","devices":[{"id":"a","publicKey":"%s","pushToken":"%s"}]}`
	unusable := fmt.Sprintf(longToken, seal.GenerateKey().Public(), strings.Repeat("ab", 2100))
	tests := []struct {
		name     string
		registry string // the file's content; "" for two paired phones
		change   func(*payload.Alert)
		opts     []relayclient.NotifyOption
		closed   bool
		expired  bool
		want     error // nil for an error without a sentinel
		level    string
	}{
		{name: "nobody is paired", registry: `{"version":1,"devices":[]}`, want: relayclient.ErrNobodyPaired, level: "WARN"},
		{name: "no record can be used", registry: `{"version":1,"devices":[{"id":"a","publicKey":"?","pushToken":"b"}]}`, want: relayclient.ErrUnusableDevice, level: "ERROR"},
		{name: "the registry is broken", registry: "{", want: pairing.ErrUnavailable, level: "ERROR"},
		{name: "no phone has a suite of this node", registry: strings.Replace(unusable, `"id"`, `"suite":"future-1","id"`, 1), want: relayclient.ErrUnusableDevice, level: "ERROR"},
		{name: "no phone can be used", registry: unusable, want: relayclient.ErrUnusableDevice, level: "WARN"},
		{name: "the alert is not valid", change: func(a *payload.Alert) { a.Kind = "party" }, want: relayclient.ErrInvalidAlert, level: "ERROR"},
		{name: "the client is closed", closed: true, want: relayclient.ErrClosed, level: "ERROR"},
		{name: "no time is left", expired: true, want: relayclient.ErrNotAttempted, level: "WARN"},
		{name: "a nil option", opts: []relayclient.NotifyOption{nil}, level: "ERROR"},
		{name: "no such priority", opts: []relayclient.NotifyOption{relayclient.WithPriority(7)}, level: "ERROR"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			relay := relaytest.NewRelay()
			defer relay.Close()
			client, log := newClient(t, relay)
			registry := registryFile(t, tt.registry, pairing.WithLogger(slog.New(slog.DiscardHandler)))
			if tt.registry == "" {
				pairPhones(t, registry, 2)
				registry.Recipients(t.Context()) // so that no read goes on when the test ends
			}
			notifier, err := relayclient.NewNotifier(client, registry, "node-a")
			if err != nil {
				t.Fatal(err)
			}
			alert := payload.NewFailure("", "backup")
			alert.RunID = "run-7"
			if tt.change != nil {
				tt.change(&alert)
			}
			if tt.closed {
				client.Close()
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.expired {
				cancel()
			}
			outcomes, err := notifier.Notify(ctx, alert, tt.opts...)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("error %v, want %v", err, tt.want)
			}
			for _, outcome := range outcomes {
				if outcome.DeviceID == "" || outcome.Err == nil {
					t.Errorf("%+v beside the error %v", outcome, err)
				}
			}
			if n := relay.Stats().Requests; n != 0 {
				t.Errorf("%d requests", n)
			}
			lines := log.lines()
			if len(lines) != 1 && len(lines) != len(outcomes) {
				t.Errorf("log %q", lines)
			}
			for _, line := range lines {
				if !strings.Contains(line, "level="+tt.level) || !namesAlert(line, alert) {
					t.Errorf("log %q", line)
				}
			}
		})
	}
}

func namesAlert(line string, alert payload.Alert) bool {
	return strings.Contains(line, fmt.Sprintf(" kind=%s name=%s run_id=%s ", alert.Kind, alert.Name, alert.RunID))
}

// A POST that was attempted is an outcome's business.
func TestNotifyHasNoErrorOnceAPhoneWasTried(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	notifier, _, _, _ := newNotifier(t, relay, 2)
	relay.Script(1, relaytest.Answer{Drop: true})
	relay.Script(1, relaytest.Answer{Status: 500})
	outcomes, err := notifier.Notify(t.Context(), failure())
	if err != nil || len(outcomes) != 2 {
		t.Fatalf("%v, %v", outcomes, err)
	}
	for _, outcome := range outcomes {
		if outcome.Err == nil {
			t.Errorf("%+v", outcome)
		}
	}
}

func TestTestAlert(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	notifier, registry, phones, _ := newNotifier(t, relay, 2)
	devices, err := registry.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if status, err := notifier.Test(t.Context(), devices[1].ID); status != 202 || err != nil {
			t.Fatalf("%d, %v", status, err)
		}
	}
	var read []relaytest.Notification
	for _, phone := range phones {
		if phone.PushToken() != devices[1].PushToken.Reveal() {
			continue
		}
		if read, err = phone.Received(relay); err != nil {
			t.Fatal(err)
		}
	}
	if len(read) != 2 || read[0].Alert.Kind != payload.KindTest || read[0].Alert.Message == "" || !read[0].Alert.Success {
		t.Errorf("the phone reads %+v", read)
	}
	if relay.Stats().Requests != 2 {
		t.Errorf("%d requests", relay.Stats().Requests)
	}
	for _, request := range relay.Requests() {
		if envelope, err := request.Envelope(); err != nil || envelope.Priority != "time-sensitive" || envelope.Event {
			t.Errorf("priority %s, event %v, %v", envelope.Priority, envelope.Event, err)
		}
	}

	relay.Script(1, relaytest.Answer{Status: 410})
	var tester pairing.Tester = notifier.Test
	if status, err := tester(t.Context(), devices[0].ID); status != 410 || !errors.Is(err, relayclient.ErrDeviceGone) {
		t.Errorf("as a pairing.Tester: %d, %v", status, err)
	}
	if _, err := tester(t.Context(), "0123456789abcdef"); !errors.Is(err, pairing.ErrUnknownDevice) {
		t.Errorf("an unknown device: %v", err)
	}
}

func TestNotifierNeedsItsParts(t *testing.T) {
	if _, err := relayclient.NewNotifier(nil, nil, "node-a"); err == nil {
		t.Error("nil parts were accepted")
	}
	for _, notifier := range []*relayclient.Notifier{nil, {}} {
		if outcomes, err := notifier.Notify(context.Background(), failure()); outcomes != nil || err == nil {
			t.Errorf("%v, %v", outcomes, err)
		}
		if _, err := notifier.Test(context.Background(), "x"); err == nil {
			t.Error("a test without a client")
		}
	}
}

func TestHostDefaultsToTheMachine(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, _ := newClient(t, relay)
	if _, err := relayclient.NewNotifier(client, registryFile(t, ""), ""); err != nil {
		t.Error(err)
	}
	nameless := func() (string, error) { return "", nil }
	if name, err := relayclient.HostName(nameless); err == nil {
		t.Errorf("a machine without a name is called %q", name)
	}
}
