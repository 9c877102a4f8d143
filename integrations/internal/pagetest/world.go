// Package pagetest is a relay with one paired phone, for the tests of integrations.
package pagetest

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

// A World is a relay in memory, which forwards everything, and a notifier for its one phone. It fits in a
// testing/synctest bubble.
type World struct {
	Relay    *relaytest.Relay
	Phone    *relaytest.Phone
	Registry *pairing.Registry
	Notifier *relayclient.Notifier
}

// New makes a world that ends with the test. What goes wrong with a page is not logged.
func New(t testing.TB) *World {
	t.Helper()
	w := &World{Relay: relaytest.NewRelay(relaytest.InMemory(), relaytest.WithRelay(relay.WithoutPolicy())), Phone: relaytest.NewPhone()}
	t.Cleanup(w.Relay.Close)
	store, err := pairing.OpenFile(filepath.Join(t.TempDir(), "devices.json"))
	if err != nil {
		t.Fatal(err)
	}
	if w.Registry, err = pairing.NewRegistry(store); err != nil {
		t.Fatal(err)
	}
	request := pairing.Request{Name: "phone", Platform: "ios", PublicKey: w.Phone.PublicKey(), PushToken: secret.New(w.Phone.PushToken())}
	if _, _, err := w.Registry.Pair(t.Context(), request, "test"); err != nil {
		t.Fatal(err)
	}
	client, err := relayclient.New(w.Relay.URL, relayclient.WithHTTPClient(w.Relay.Client()), relayclient.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	if w.Notifier, err = relayclient.NewNotifier(client, w.Registry, "node-a"); err != nil {
		t.Fatal(err)
	}
	return w
}

// Alerts are what the phone shows, oldest first.
func (w *World) Alerts(t testing.TB) []payload.Alert {
	t.Helper()
	received, err := w.Phone.Received(w.Relay)
	if err != nil {
		t.Fatal(err)
	}
	var alerts []payload.Alert
	for _, notification := range received {
		alerts = append(alerts, notification.Alert)
	}
	return alerts
}
