package bridge_test

import (
	"crypto/rand"
	"crypto/rsa"
	"log/slog"
	"sync"
	"testing"

	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

const clientID = "bridge-home-office"

var (
	notification = bridge.Notification{Title: "Agent Name", Body: "New activity"}
	phone        = bridge.Device{Token: secret.New("hunter2-device-token"), Platform: "apns"}
	quiet        = bridge.WithLogger(slog.New(slog.DiscardHandler))
)

// signingKey is shared, for it takes long to make one.
var signingKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// newService returns a token service and a relay in memory, which work in a bubble, and the configuration for them.
func newService(tb testing.TB, opts ...relaytest.BridgeOption) (*relaytest.BridgeService, bridge.Config) {
	tb.Helper()
	opts = append(opts, relaytest.InMemory(), relaytest.WithHashRounds(1), relaytest.WithSigningKey(signingKey()))
	service := relaytest.NewBridgeService(opts...)
	tb.Cleanup(service.Close)
	return service, bridge.Config{
		URL:          service.RelayURL,
		TokenURL:     service.TokenURL,
		ClientID:     clientID,
		ClientSecret: service.AddClient(clientID),
	}
}

// newClient returns a client of a new service. No device is registered.
func newClient(tb testing.TB, opts ...bridge.Option) (*relaytest.BridgeService, *bridge.Client) {
	tb.Helper()
	service, config := newService(tb)
	client, err := bridge.New(config, append([]bridge.Option{quiet, bridge.WithHTTPClient(service.Client())}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	return service, client
}

func mustRegister(t *testing.T, client *bridge.Client, devices ...bridge.Device) {
	t.Helper()
	for _, device := range devices {
		if err := client.Register(t.Context(), device); err != nil {
			t.Fatal(err)
		}
	}
}

func wantPushes(t *testing.T, service *relaytest.BridgeService, want int) {
	t.Helper()
	if got := service.RequestCount(relaytest.EndpointPush); got != want {
		t.Errorf("the relay saw %d pushes, want %d", got, want)
	}
}
