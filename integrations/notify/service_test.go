package notifypage_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	notifypage "github.com/sealpush/sealpush/integrations/notify"
	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

func newService(t *testing.T, phones int, opts ...notifypage.Option) (*notifypage.Service, *relaytest.Relay, []*relaytest.Phone) {
	t.Helper()
	relay := relaytest.NewRelay()
	t.Cleanup(relay.Close)
	store, err := pairing.OpenFile(filepath.Join(t.TempDir(), "devices.json"))
	if err != nil {
		t.Fatal(err)
	}
	registry, err := pairing.NewRegistry(store)
	if err != nil {
		t.Fatal(err)
	}
	paired := make([]*relaytest.Phone, phones)
	for i := range paired {
		paired[i] = relaytest.NewPhone()
		request := pairing.Request{Name: "phone", Platform: "ios", PublicKey: paired[i].PublicKey(), PushToken: secret.New(paired[i].PushToken())}
		if _, _, err := registry.Pair(t.Context(), request, ""); err != nil {
			t.Fatal(err)
		}
	}
	client, err := relayclient.New(relay.URL, relayclient.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	notifier, err := relayclient.NewNotifier(client, registry, "node-a")
	if err != nil {
		t.Fatal(err)
	}
	service, err := notifypage.New(notifier, append([]notifypage.Option{notifypage.WithName("app")}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return service, relay, paired
}

func alerts(t *testing.T, relay *relaytest.Relay, phone *relaytest.Phone) []payload.Alert {
	t.Helper()
	received, err := phone.Received(relay)
	if err != nil {
		t.Fatal(err)
	}
	var alerts []payload.Alert
	for _, notification := range received {
		alerts = append(alerts, notification.Alert)
	}
	return alerts
}

func TestMessagesReachThePhones(t *testing.T) {
	service, relay, phones := newService(t, 2)
	for _, message := range []string{"no space left on /srv", "no space left on /srv", "no space left on /home\n" + strings.Repeat("é", 1<<20)} {
		if err := service.Send(t.Context(), "Backup\nfailed", message); err != nil {
			t.Fatal(err)
		}
	}
	for _, phone := range phones {
		shown := alerts(t, relay, phone)
		if len(shown) != 2 {
			t.Fatalf("%d alerts: the same message coalesces, another one does not", len(shown))
		}
		first := shown[0]
		if first.Kind != payload.KindEvent || first.Name != "app" || first.Host != "node-a" || first.Event != notifypage.Event ||
			first.Subject != "Backup failed" || first.Message != "no space left on /srv" {
			t.Errorf("the phone shows %+v", first)
		}
		if !strings.HasPrefix(shown[1].Message, "no space left on /home\né") {
			t.Errorf("the phone shows %+v", shown[1])
		}
	}
}

func TestSendSaysWhichPhoneWasNotReached(t *testing.T) {
	service, relay, phones := newService(t, 2)
	relay.ScriptDevice(phones[0].PushToken(), 1, relaytest.Answer{Status: http.StatusGone})
	err := service.Send(nil, "subject", "message") //lint:ignore SA1012 a nil context is taken
	if !errors.Is(err, relayclient.ErrDeviceGone) || strings.Contains(err.Error(), phones[0].PushToken()) {
		t.Errorf("%v", err)
	}
	if len(alerts(t, relay, phones[1])) != 1 {
		t.Error("the other phone was not paged")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := service.Send(ctx, "subject", "late"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestNobodyIsPaired(t *testing.T) {
	service, _, _ := newService(t, 0)
	if err := service.Send(t.Context(), "subject", "message"); !errors.Is(err, relayclient.ErrNobodyPaired) {
		t.Errorf("%v", err)
	}
	if err := service.Send(t.Context(), " \n", "\x1b[31m\x00"); err == nil || errors.Is(err, relayclient.ErrNobodyPaired) {
		t.Errorf("an empty message: %v", err)
	}
}

func TestPassive(t *testing.T) {
	service, relay, phones := newService(t, 1, notifypage.WithPriority(relayclient.Passive))
	if err := service.Send(t.Context(), "subject", "message"); err != nil {
		t.Fatal(err)
	}
	received, err := phones[0].Received(relay)
	if err != nil || len(received) != 1 || received[0].Alert.Subject != "subject" {
		t.Fatalf("%v, %v", received, err)
	}
	if envelope, err := relay.Requests()[0].Envelope(); err != nil || string(envelope.Priority) != relayclient.Passive.String() {
		t.Errorf("priority %v, %v", envelope.Priority, err)
	}
}

func TestBadOptions(t *testing.T) {
	if _, err := notifypage.New(nil); err == nil {
		t.Error("no notifier")
	}
	for name, opt := range map[string]notifypage.Option{"nil": nil, "name": notifypage.WithName(""), "long name": notifypage.WithName(strings.Repeat("x", 257)), "priority": notifypage.WithPriority(7)} {
		if _, err := notifypage.New(&relayclient.Notifier{}, opt); err == nil {
			t.Errorf("%s taken", name)
		}
	}
}
