package relayclient_test

import (
	"net/http"
	"testing"

	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// The transport that users get, against a relay that offers HTTP/2.
func TestHTTP2WithoutAClientOfOnesOwn(t *testing.T) {
	relay := relaytest.NewRelay(relaytest.WithTLS())
	defer relay.Close()
	client, _ := newClientAt(t, relay.URL)
	client.Transport().TLSClientConfig = relay.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	devices := sharedKeyDevices(100)
	all := make(chan struct{})
	relay.Script(100, relaytest.Answer{Hold: all})
	go func() {
		if err := relay.WaitInFlight(t.Context(), 100); err == nil {
			close(all)
		}
	}()
	push := relayclient.Push{Alert: failure(), Salt: salt}
	wantAllDelivered(t, client.Send(t.Context(), push, devices), devices)
	push.Alert.Name = "another"
	wantAllDelivered(t, client.Send(t.Context(), push, devices), devices)
	if n := relay.Stats().Connections; n >= 100 {
		t.Errorf("%d connections: not HTTP/2", n)
	}
}
