package relayclient_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

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
		attempted := 0
		for i, outcome := range outcomes {
			if !errors.Is(outcome.Err, context.DeadlineExceeded) {
				t.Errorf("outcome %d: %v", i, outcome.Err)
			}
			if !errors.Is(outcome.Err, relayclient.ErrNotAttempted) {
				attempted++
			}
		}
		if attempted != 2 {
			t.Errorf("%d POSTs attempted, %v", attempted, outcomes)
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
