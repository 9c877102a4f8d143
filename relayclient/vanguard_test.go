package relayclient_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

func TestColdStartOverHTTP2MakesOneConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewRelay(relaytest.InMemory(), relaytest.WithTLS())
		defer relay.Close()
		client, _ := newClient(t, relay)
		devices := sharedKeyDevices(50)
		relay.Script(50, relaytest.Answer{Delay: time.Second})
		start := time.Now()
		wantAllDelivered(t, client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices), devices)
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v, want all at once", took)
		}
		if n := relay.Stats().Connections; n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

// A first POST that gets no connection must not hold up the others.
func TestSlowFirstConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewRelay(relaytest.InMemory())
		defer relay.Close()
		own := relay.Client()
		own.Transport = withoutTrace{own.Transport}
		client, _ := newClient(t, relay, relayclient.WithHTTPClient(own))
		devices := sharedKeyDevices(50)
		relay.Script(50, relaytest.Answer{Delay: time.Second})
		start := time.Now()
		wantAllDelivered(t, client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices), devices)
		if took := time.Since(start); took != 1250*time.Millisecond {
			t.Errorf("took %v, want the others a quarter of a second after the first", took)
		}
	})
}

// withoutTrace is a transport that says nothing of its connections.
type withoutTrace struct{ next http.RoundTripper }

func (t withoutTrace) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.next.RoundTrip(req.WithContext(context.Background()))
}
