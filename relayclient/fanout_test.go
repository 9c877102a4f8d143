package relayclient_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

func TestHundredAtOnceThenNoNewConnection(t *testing.T) {
	for name, opts := range map[string][]relaytest.RelayOption{"HTTP/1.1": nil, "HTTP/2": {relaytest.WithTLS()}} {
		t.Run(name, func(t *testing.T) {
			relay := relaytest.NewRelay(opts...)
			defer relay.Close()
			client, _ := newClientAt(t, relay.URL) // with the transport that users get
			relayclient.SetDial(client, (&net.Dialer{}).DialContext, relay.Client().Transport.(*http.Transport).TLSClientConfig)
			devices := sharedKeyDevices(100)

			// The relay answers nobody until all 100 are in flight.
			all := make(chan struct{})
			relay.Script(100, relaytest.Answer{Hold: all})
			go func() {
				if err := relay.WaitInFlight(t.Context(), 100); err == nil {
					close(all)
				}
			}()
			push := relayclient.Push{Alert: failure(), Salt: salt}
			wantAllDelivered(t, client.Send(t.Context(), push, devices), devices)

			opened := relay.Stats().Connections
			push.Alert.Name = "another"
			wantAllDelivered(t, client.Send(t.Context(), push, devices), devices)
			if again := relay.Stats().Connections; again != opened {
				t.Errorf("the second alert opened %d connections", again-opened)
			}
			if name == "HTTP/2" && opened >= 100 {
				t.Errorf("%d connections: not HTTP/2", opened)
			}
		})
	}
}

func TestThousandDevices(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, _ := newClientAt(t, relay.URL)
	devices := sharedKeyDevices(1000)
	wantAllDelivered(t, client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices), devices)
	stats := relay.Stats()
	if stats.Requests != 1000 || stats.MaxInFlight > relayclient.MaxInFlight {
		t.Errorf("%+v", stats)
	}
}

func TestMaxInFlight(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, _ := newClientAt(t, relay.URL, relayclient.WithMaxInFlight(3))
	devices := sharedKeyDevices(20)
	release := make(chan struct{})
	relay.Script(3, relaytest.Answer{Hold: release})
	go func() {
		if err := relay.WaitInFlight(t.Context(), 3); err == nil {
			close(release)
		}
	}()
	wantAllDelivered(t, client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices), devices)
	if got := relay.Stats().MaxInFlight; got != 3 {
		t.Errorf("%d in flight", got)
	}
}

func TestClose(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, log := newClientAt(t, relay.URL)
	devices := sharedKeyDevices(5)
	push := relayclient.Push{Alert: failure(), Salt: salt}
	release := make(chan struct{})
	relay.Script(5, relaytest.Answer{Hold: release})
	var outcomes []relayclient.Outcome
	var sending sync.WaitGroup
	sending.Go(func() { outcomes = client.Send(t.Context(), push, devices) })
	if err := relay.WaitInFlight(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	client.Close()
	client.Close()
	close(release)
	sending.Wait()
	wantAllDelivered(t, outcomes, devices)
	for _, outcome := range client.Send(t.Context(), push, devices) {
		if !errors.Is(outcome.Err, relayclient.ErrClosed) {
			t.Errorf("after Close: %v", outcome.Err)
		}
	}
	if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], "client or notifier is closed") {
		t.Errorf("log %q, want one line for the alert after Close", lines)
	}
}

// In a bubble a goroutine that is left behind ends the test with a panic.
func TestNoGoroutineIsLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewRelay(relaytest.InMemory())
		client, err := relayclient.New(relay.URL, relayclient.WithHTTPClient(relay.Client()))
		if err != nil {
			t.Fatal(err)
		}
		devices := sharedKeyDevices(10)
		wantAllDelivered(t, client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices), devices)
		before := runtime.NumGoroutine()
		client.Close()
		relay.Close()
		synctest.Wait()
		if after := runtime.NumGoroutine(); after > before {
			t.Errorf("%d goroutines, then %d", before, after)
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, _ := newClientAt(t, relay.URL)
	devices := sharedKeyDevices(3)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			alert := failure()
			alert.Name = fmt.Sprint("job ", i)
			client.Send(t.Context(), relayclient.Push{Alert: alert, Salt: salt}, devices)
			_ = client.String()
		})
	}
	wg.Wait()
	if n := relay.Stats().Requests; n != 64*3 {
		t.Errorf("%d requests", n)
	}
}
