package relayclient_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/seal"
)

func TestPhoneReadsWhatTheDaemonSent(t *testing.T) {
	for _, opts := range [][]relaytest.RelayOption{nil, {relaytest.WithTLS()}} {
		relay := relaytest.NewRelay(opts...)
		defer relay.Close()
		phones, devices := phones(2)
		client, log := newClient(t, relay)

		alert := failure()
		wantAllDelivered(t, client.Send(t.Context(), relayclient.Push{Alert: alert, Salt: salt}, devices), devices)
		for _, phone := range phones {
			messages := relay.Inbox(phone.PushToken())
			if len(messages) != 1 {
				t.Fatalf("%d messages for a phone", len(messages))
			}
			got, err := phone.Open(messages[0])
			if err != nil {
				t.Fatal(err)
			}
			if got.Alert.Name != alert.Name || got.Alert.LogTail[1] != "gave up" || *got.Alert.ExitCode != 3 || got.Stale {
				t.Errorf("the phone reads %+v", got)
			}
		}
		if lines := log.lines(); len(lines) != 0 {
			t.Errorf("success was logged: %q", lines)
		}
	}
}

func TestEnvelope(t *testing.T) {
	sla := payload.NewSLA("node-a", "etl", payload.CheckLateAfter, 0, time.Minute)
	tests := []struct {
		name string
		push relayclient.Push
		want func(relaytest.Envelope) bool
	}{
		{"derived collapse id", relayclient.Push{Alert: failure(), Salt: salt}, func(e relaytest.Envelope) bool {
			return e.CollapseID == failure().CollapseID(salt) && e.Priority == "time-sensitive" && !e.Event
		}},
		{"collapse id of the caller's", relayclient.Push{Alert: failure(), CollapseID: strings.Repeat("ab", 16)}, func(e relaytest.Envelope) bool {
			return e.CollapseID == strings.Repeat("ab", 16)
		}},
		{"passive", relayclient.Push{Alert: sla, Salt: salt, Priority: relayclient.Passive}, func(e relaytest.Envelope) bool {
			return e.Priority == "passive" && !e.Event
		}},
		{"event", relayclient.Push{Alert: payload.NewEvent("node-a", "node-a", payload.EventQuorumLoss), Salt: salt}, func(e relaytest.Envelope) bool {
			return e.Event
		}},
	}
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, _ := newClient(t, relay)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, devices := phones(1)
			devices[0].PushToken = strings.ToUpper(devices[0].PushToken) // it goes out as the phone registered it
			wantAllDelivered(t, client.Send(t.Context(), tt.push, devices), devices)
			requests := relay.Requests()
			last := requests[len(requests)-1]
			if last.Header.Get("Content-Type") != "application/json" {
				t.Errorf("Content-Type %q", last.Header.Get("Content-Type"))
			}
			envelope, err := last.Envelope()
			if err != nil {
				t.Fatal(err)
			}
			if envelope.Device != devices[0].PushToken {
				t.Error("the device token is not the one that the phone registered")
			}
			if !tt.want(envelope) {
				t.Errorf("collapse id %s, priority %s, event %v", envelope.CollapseID, envelope.Priority, envelope.Event)
			}
		})
	}
}

func TestCollapseIDIsDerivedAfterFitting(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, _ := newClient(t, relay)
	_, devices := phones(1)
	alert := failure()
	alert.RunID = strings.Repeat("r", 3000)
	fitted, err := payload.Fit(alert, seal.MaxPlaintext)
	if err != nil {
		t.Fatal(err)
	}
	wantAllDelivered(t, client.Send(t.Context(), relayclient.Push{Alert: alert, Salt: salt}, devices), devices)
	envelope, err := relay.Requests()[0].Envelope()
	if err != nil {
		t.Fatal(err)
	}
	if envelope.CollapseID != fitted.Alert.CollapseID(salt) || envelope.CollapseID == alert.CollapseID(salt) {
		t.Error("the id counts a run id that did not fit")
	}
}

func TestTestAlertsAreNeverCoalesced(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, _ := newClient(t, relay)
	_, devices := phones(1)
	seen := map[string]bool{}
	for range 3 {
		wantAllDelivered(t, client.Send(t.Context(), relayclient.Push{Alert: payload.NewTest("node-a"), Salt: salt}, devices), devices)
	}
	for _, request := range relay.Requests() {
		envelope, err := request.Envelope()
		if err != nil {
			t.Fatal(err)
		}
		seen[envelope.CollapseID] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d collapse ids for 3 test alerts", len(seen))
	}
}

func TestAlertsThatCannotBeSent(t *testing.T) {
	huge := failure()
	huge.Name = strings.Repeat("n", 5000)
	tests := []struct {
		name string
		push relayclient.Push
		want func(error) bool
	}{
		{"untrimmable", relayclient.Push{Alert: huge, Salt: salt}, func(err error) bool {
			var size *payload.SizeError
			return errors.As(err, &size)
		}},
		{"zero alert", relayclient.Push{Salt: salt}, func(err error) bool {
			var field *payload.FieldError
			return errors.As(err, &field)
		}},
		{"no salt", relayclient.Push{Alert: failure()}, func(err error) bool { return strings.Contains(err.Error(), "NewSalt") }},
		{"bad collapse id", relayclient.Push{Alert: failure(), CollapseID: strings.Repeat("AB", 16)}, func(err error) bool {
			return strings.Contains(err.Error(), "CollapseID")
		}},
		{"bad priority", relayclient.Push{Alert: failure(), Salt: salt, Priority: 7}, func(err error) bool {
			return strings.Contains(err.Error(), "Priority(7)")
		}},
	}
	relay := relaytest.NewRelay()
	defer relay.Close()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			client, log := newClient(t, relay)
			_, devices := phones(3)
			outcomes := client.Send(t.Context(), tt.push, devices)
			for i, outcome := range outcomes {
				if outcome.DeviceID != devices[i].ID || outcome.Status != 0 || outcome.Err == nil || !tt.want(outcome.Err) {
					t.Errorf("outcome %d: %+v", i, outcome)
				}
			}
			if len(outcomes) != 3 || len(log.lines()) != 1 {
				t.Errorf("%d outcomes, log %q", len(outcomes), log.lines())
			}
		})
	}
	if n := relay.Stats().Requests; n != 0 {
		t.Errorf("the relay saw %d requests", n)
	}
}

func TestOneBadDeviceCostsOnlyItself(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, log := newClient(t, relay)
	_, devices := phones(4)
	devices[0].PushToken = ""
	devices[1].PublicKey = seal.PublicKey{}
	devices[2].PushToken = "\xff\xfe"
	outcomes := client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices)
	for i := range 3 {
		if !errors.Is(outcomes[i].Err, relayclient.ErrUnusableDevice) || outcomes[i].DeviceID != devices[i].ID {
			t.Errorf("outcome %d: %+v", i, outcomes[i])
		}
	}
	if !errors.Is(outcomes[1].Err, seal.ErrInvalidKey) {
		t.Errorf("an unusable key: %v", outcomes[1].Err)
	}
	wantAllDelivered(t, outcomes[3:], devices[3:])
	if len(log.lines()) != 3 || relay.Stats().Requests != 1 {
		t.Errorf("%d requests, log %q", relay.Stats().Requests, log.lines())
	}
	for i, line := range log.lines() {
		if !strings.Contains(strings.Join(log.lines(), "\n"), devices[i].ID) {
			t.Errorf("device %s is not named: %s", devices[i].ID, line)
		}
	}
}

func TestStatuses(t *testing.T) {
	for status := 200; status <= 599; status++ {
		relay := relaytest.NewRelay(relaytest.InMemory())
		client, _ := newClient(t, relay)
		_, devices := phones(1)
		relay.Script(1, relaytest.Answer{
			Status: status,
			Header: http.Header{"Retry-After": {"7"}, "Location": {"http://elsewhere.sealpush.test/"}},
			Body:   `{"v":1,"error":"no luck"}`,
		})
		outcome := client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices)[0]
		if outcome.Status != status || relay.Stats().Requests != 1 {
			t.Errorf("%d: status %d after %d requests", status, outcome.Status, relay.Stats().Requests)
		}
		var answer *relayclient.StatusError
		switch isStatus := errors.As(outcome.Err, &answer); {
		case status < 300:
			if outcome.Err != nil {
				t.Errorf("%d: %v", status, outcome.Err)
			}
		case !isStatus || answer.StatusCode != status || answer.RetryAfter != 7*time.Second:
			t.Errorf("%d: %#v", status, outcome.Err)
		case status != http.StatusNotModified && answer.Body != `{"v":1,"error":"no luck"}`:
			t.Errorf("%d: body %q", status, answer.Body)
		}
		if got := errors.Is(outcome.Err, relayclient.ErrRateLimited); got != (status == 429) {
			t.Errorf("%d: ErrRateLimited is %v", status, got)
		}
		if got := errors.Is(outcome.Err, relayclient.ErrDeviceGone); got != (status == 410) {
			t.Errorf("%d: ErrDeviceGone is %v", status, got)
		}
		relay.Close()
	}
}

func TestNoAnswerIsATransportError(t *testing.T) {
	relay := relaytest.NewRelay()
	client, log := newClientAt(t, relay.URL)
	_, devices := phones(2)
	push := relayclient.Push{Alert: failure(), Salt: salt}

	relay.Script(2, relaytest.Answer{Drop: true})
	for _, outcome := range client.Send(t.Context(), push, devices) {
		var transport *relayclient.TransportError
		if !errors.As(outcome.Err, &transport) || outcome.Status != 0 {
			t.Errorf("a dropped connection: %+v", outcome)
		}
	}
	if n := relay.Stats().Requests; n != 2 {
		t.Errorf("%d requests for 2 devices", n)
	}
	wantAllDelivered(t, client.Send(t.Context(), push, devices), devices)

	relay.Close()
	for _, outcome := range client.Send(t.Context(), push, devices) {
		if outcome.Err == nil || !strings.Contains(outcome.Err.Error(), relay.URL) {
			t.Errorf("a relay that is not there: %+v", outcome)
		}
	}
	if len(log.lines()) != 4 {
		t.Errorf("log %q", log.lines())
	}
}

func TestHundredAtOnceThenNoNewConnection(t *testing.T) {
	for name, opts := range map[string][]relaytest.RelayOption{"HTTP/1.1": nil, "HTTP/2": {relaytest.WithTLS()}} {
		t.Run(name, func(t *testing.T) {
			relay := relaytest.NewRelay(opts...)
			defer relay.Close()
			own := relay.Client()
			own.Transport.(*http.Transport).MaxIdleConnsPerHost = relayclient.MaxInFlight
			client, _ := newClientAt(t, relay.URL, relayclient.WithHTTPClient(own))
			if len(opts) == 0 {
				client, _ = newClientAt(t, relay.URL) // the transport that users get
			}
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

func TestDefaultLoggerIsTheOneOfTheMoment(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, err := relayclient.New(relay.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	before, log := slog.Default(), &logbook{}
	slog.SetDefault(log.logger())
	defer slog.SetDefault(before)
	relay.Script(1, relaytest.Answer{Status: 500})
	_, devices := phones(1)
	client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices)
	if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], devices[0].ID) || !strings.Contains(lines[0], "level=WARN") {
		t.Errorf("log %q", lines)
	}
}

func TestTimeoutCountsFromTheSlot(t *testing.T) {
	t.Run("HTTP/1.1", func(t *testing.T) { testTimeout(t) })
	t.Run("HTTP/2", func(t *testing.T) { testTimeout(t, relaytest.WithTLS()) })
}

func testTimeout(t *testing.T, opts ...relaytest.RelayOption) {
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewRelay(append(opts, relaytest.InMemory())...)
		defer relay.Close()
		client, _ := newClient(t, relay, relayclient.WithMaxInFlight(1))
		_, devices := phones(3)
		// Each answer takes 7 s: together more than the timeout, alone less.
		relay.Script(3, relaytest.Answer{Delay: 7 * time.Second})
		start := time.Now()
		push := relayclient.Push{Alert: failure(), Salt: salt}
		wantAllDelivered(t, client.Send(t.Context(), push, devices), devices)
		if took := time.Since(start); took != 21*time.Second {
			t.Errorf("took %v", took)
		}

		relay.Script(1, relaytest.Answer{Delay: time.Hour})
		start = time.Now()
		push.Alert.Name = "another"
		outcomes := client.Send(t.Context(), push, devices)
		if took := time.Since(start); took != relayclient.DefaultTimeout {
			t.Errorf("a silent relay took %v", took)
		}
		if err := outcomes[0].Err; !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer within 10s") {
			t.Errorf("a silent relay: %v", err)
		}
		wantAllDelivered(t, outcomes[1:], devices[1:])
	})
}

func TestContextBoundsTheWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewRelay(relaytest.InMemory())
		defer relay.Close()
		client, _ := newClient(t, relay, relayclient.WithMaxInFlight(2))
		_, devices := phones(5)
		relay.Script(relaytest.Always, relaytest.Answer{Delay: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		outcomes := client.Send(ctx, relayclient.Push{Alert: failure(), Salt: salt}, devices)
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("took %v", took)
		}
		for i, outcome := range outcomes {
			if !errors.Is(outcome.Err, context.DeadlineExceeded) {
				t.Errorf("outcome %d: %v", i, outcome.Err)
			}
			if notAttempted := errors.Is(outcome.Err, relayclient.ErrNotAttempted); notAttempted != (i >= 2) {
				t.Errorf("outcome %d: %v", i, outcome.Err)
			}
		}
	})
}

func TestCancelledBeforeSend(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, _ := newClient(t, relay)
	_, devices := phones(3)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("daemon is shutting down")
	cancel(reason)
	for _, outcome := range client.Send(ctx, relayclient.Push{Alert: failure(), Salt: salt}, devices) {
		if !errors.Is(outcome.Err, relayclient.ErrNotAttempted) || !errors.Is(outcome.Err, reason) {
			t.Errorf("%v", outcome.Err)
		}
	}
	if n := relay.Stats().Requests; n != 0 {
		t.Errorf("%d requests", n)
	}
}

func TestNobodyToSendTo(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, _ := newClient(t, relay)
	if outcomes := client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, nil); len(outcomes) != 0 {
		t.Errorf("%v", outcomes)
	}
}

func TestZeroClient(t *testing.T) {
	_, devices := phones(1)
	for _, client := range []*relayclient.Client{nil, {}} {
		outcomes := client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices)
		if len(outcomes) != 1 || outcomes[0].Err == nil || !strings.Contains(outcomes[0].Err.Error(), "New") {
			t.Errorf("%v", outcomes)
		}
		client.Close()
		_ = fmt.Sprintf("%v %#v", client, client)
	}
}

type panicky struct{}

func (panicky) RoundTrip(*http.Request) (*http.Response, error) { panic("boom") }

func TestPanickingTransportCostsItsDevice(t *testing.T) {
	client, _ := newClientAt(t, "http://relay.sealpush.test", relayclient.WithHTTPClient(&http.Client{Transport: panicky{}}))
	_, devices := phones(2)
	for _, outcome := range client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices) {
		if outcome.Err == nil || !strings.Contains(outcome.Err.Error(), "boom") {
			t.Errorf("%v", outcome.Err)
		}
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
	if lines := log.lines(); len(lines) != 1 || !strings.Contains(lines[0], "client is closed") {
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

func TestRedirectsAreNotFollowed(t *testing.T) {
	var elsewhere int
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	relay := relaytest.NewRelay()
	defer relay.Close()
	own := relay.Client()
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return nil }
	client, _ := newClientAt(t, relay.URL, relayclient.WithHTTPClient(own))
	_, devices := phones(1)
	for _, status := range []int{301, 302, 303, 307, 308} {
		relay.Script(1, relaytest.Answer{Status: status, Header: http.Header{"Location": {other.URL}}})
		outcome := client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices)[0]
		if outcome.Status != status || !strings.Contains(outcome.Err.Error(), "redirects are not followed") {
			t.Errorf("%d: %+v", status, outcome)
		}
	}
	if elsewhere != 0 {
		t.Errorf("the other host saw %d requests", elsewhere)
	}
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
