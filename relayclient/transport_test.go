package relayclient_test

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// Close in the middle of an alert: the connections are let go when it is through.
func TestCloseDuringSendKeepsNoConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewRelay(relaytest.InMemory())
		defer relay.Close()
		client, _ := newClientAt(t, relay.URL, relayclient.WithMaxInFlight(2))
		dial, open := countingDial(relay)
		relayclient.SetDial(client, dial, nil)
		devices := sharedKeyDevices(6) // four of which are posted to after Close
		release := make(chan struct{})
		relay.Script(2, relaytest.Answer{Hold: release})
		go func() {
			if err := relay.WaitInFlight(t.Context(), 2); err == nil {
				client.Close()
				close(release)
			}
		}()
		wantAllDelivered(t, client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices), devices)
		synctest.Wait()
		if n := open.Load(); n != 0 {
			t.Errorf("%d connections are open after Close and Send", n)
		}
	})
}

func TestCloseLeavesTheCallersConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewRelay(relaytest.InMemory())
		defer relay.Close()
		own := relay.Client()
		dial, open := countingDial(relay)
		own.Transport.(*http.Transport).DialContext = dial
		client, _ := newClientAt(t, relay.URL, relayclient.WithHTTPClient(own))
		_, devices := phones(1)
		wantAllDelivered(t, client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices), devices)
		client.Close()
		synctest.Wait()
		if n := open.Load(); n != 1 {
			t.Errorf("%d connections are open, want the caller's", n)
		}
		own.CloseIdleConnections()
	})
}

// countingDial reaches the relay, and counts what is open.
func countingDial(relay *relaytest.Relay) (relayclient.Dial, *atomic.Int32) {
	var open atomic.Int32
	dial := relay.Client().Transport.(*http.Transport).DialContext
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		open.Add(1)
		return countedConn(conn, &open), nil
	}, &open
}

func TestRelayAddress(t *testing.T) {
	for url, want := range map[string]string{
		"https://relay.example/push":   "relay.example:443",
		"http://relay.example":         "relay.example:80",
		"http://relay.example:8080":    "relay.example:8080",
		"https://[2001:db8::1]":        "[2001:db8::1]:443",
		"http://[fe80::1%25eth0]:8080": "[fe80::1%eth0]:8080",
		"https://bücher.example:8443":  "xn--bcher-kva.example:8443",
	} {
		client, _ := newClientAt(t, url)
		if got := relayclient.Address(client); got != want {
			t.Errorf("%s is dialed as %s, want %s", url, got, want)
		}
	}
}
