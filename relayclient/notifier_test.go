package relayclient_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// newNotifier returns a notifier over a registry file with n phones.
func newNotifier(t *testing.T, relay *relaytest.Relay, n int) (*relayclient.Notifier, *pairing.Registry, []*relaytest.Phone, *logbook) {
	t.Helper()
	client, log := newClient(t, relay)
	store, err := pairing.OpenFile(filepath.Join(t.TempDir(), "devices.json"))
	if err != nil {
		t.Fatal(err)
	}
	registry := pairing.NewRegistry(store, pairing.WithLogger(log.logger()))
	phones, _ := phones(n)
	for _, phone := range phones {
		_, _, err := registry.Pair(t.Context(), pairing.Request{
			Name: "phone", Platform: "ios", PublicKey: phone.PublicKey(), PushToken: phone.PushToken(),
		}, "")
		if err != nil {
			t.Fatal(err)
		}
	}
	notifier, err := relayclient.NewNotifier(client, registry, "node-a")
	if err != nil {
		t.Fatal(err)
	}
	return notifier, registry, phones, log
}

func TestNotifyPagesEveryPairedPhone(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	notifier, registry, phones, _ := newNotifier(t, relay, 3)

	outcomes := notifier.Notify(t.Context(), payload.NewFailure("", "backup"), relayclient.WithPriority(relayclient.Passive))
	if len(outcomes) != 3 {
		t.Fatalf("%d outcomes", len(outcomes))
	}
	for _, outcome := range outcomes {
		if outcome.Err != nil {
			t.Error(outcome.Err)
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
	notifier.Notify(t.Context(), payload.NewFailure("node-b", "backup"))
	received, err := phones[0].Received(relay)
	if err != nil || received[0].Alert.Host != "node-b" {
		t.Errorf("%v, %v", received, err)
	}
}

func TestNobodyPairedIsSaidOnce(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	notifier, _, _, log := newNotifier(t, relay, 0)
	if outcomes := notifier.Notify(t.Context(), payload.NewFailure("", "backup")); len(outcomes) != 0 {
		t.Errorf("%v", outcomes)
	}
	if lines := strings.Join(log.lines(), "\n"); strings.Count(lines, "no phone is paired") != 1 {
		t.Errorf("log: %s", lines)
	}
}

// Whoever reads the log must not go looking for phones where the file is at fault.
func TestBrokenRegistryIsNotCalledEmpty(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, log := newClient(t, relay)
	path := filepath.Join(t.TempDir(), "devices.json")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := pairing.OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	notifier, err := relayclient.NewNotifier(client, pairing.NewRegistry(store, pairing.WithLogger(log.logger())), "node-a")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // the registry speaks up once in a while, but each alert is accounted for
		notifier.Notify(t.Context(), failure())
	}
	lines := strings.Join(log.lines(), "\n")
	if strings.Contains(lines, "no phone is paired") || strings.Count(lines, "alert not sent: registry unavailable") != 3 {
		t.Errorf("log: %s", lines)
	}
	if strings.Count(lines, "registry unavailable, no phone is known yet") != 1 || !strings.Contains(lines, "devices.json") {
		t.Errorf("log: %s", lines)
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
		outcome, err := notifier.Test(t.Context(), devices[1].ID)
		if err != nil || outcome.Err != nil || outcome.DeviceID != devices[1].ID || outcome.Status != 202 {
			t.Fatalf("%+v, %v", outcome, err)
		}
	}
	var read []relaytest.Notification
	for _, phone := range phones {
		if phone.PushToken() != devices[1].PushToken {
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
	var tester pairing.Tester = notifier.TestStatus
	if status, err := tester(t.Context(), devices[0].ID); status != 410 || !errors.Is(err, relayclient.ErrDeviceGone) {
		t.Errorf("as a pairing.Tester: %d, %v", status, err)
	}
	if _, err := tester(t.Context(), "0123456789abcdef"); !errors.Is(err, pairing.ErrUnknownDevice) {
		t.Errorf("an unknown device: %v", err)
	}
	if _, err := notifier.Test(t.Context(), "0123456789abcdef"); !errors.Is(err, pairing.ErrUnknownDevice) {
		t.Errorf("an unknown device: %v", err)
	}
}

func TestNotifierNeedsItsParts(t *testing.T) {
	if _, err := relayclient.NewNotifier(nil, nil, "node-a"); err == nil {
		t.Error("nil parts were accepted")
	}
	for _, notifier := range []*relayclient.Notifier{nil, {}} {
		if outcomes := notifier.Notify(context.Background(), failure()); outcomes != nil {
			t.Errorf("%v", outcomes)
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
	store, err := pairing.OpenFile(filepath.Join(t.TempDir(), "devices.json"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := relayclient.NewNotifier(client, pairing.NewRegistry(store), ""); err != nil {
		t.Error(err)
	}
}
