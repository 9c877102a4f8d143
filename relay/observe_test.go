package relay_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

// slowPush takes 2 s, and fails as the collapse id says.
type slowPush struct{ forwarderFunc }

func newSlowPush() slowPush {
	return slowPush{func(_ context.Context, e relay.Envelope) error {
		time.Sleep(2 * time.Second)
		switch e.CollapseID {
		case id(410), id(429):
			var status int
			fmt.Sscanf(strings.TrimLeft(e.CollapseID, "0"), "%x", &status)
			return &relay.ForwardError{Status: status}
		case id(502):
			return errors.New("no route to host")
		}
		return nil
	}}
}

func (slowPush) ForwardDigest(context.Context, secret.Text) error { return nil }

func TestObservations(t *testing.T) {
	var mu sync.Mutex
	var seen []relay.Observation
	observe := func(o relay.Observation) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, o)
		panic("an observer may panic")
	}
	policy := relay.Policy{Burst: 5, MonthlyQuota: 2, FlapLimit: 1, CoalesceWindow: time.Second}
	inBubble(t, func(t *testing.T, to *relaytest.Relay) {
		for _, step := range []struct {
			what string
			want []string // operation, result, status and duration
		}{
			{envelope(t, "collapseId", id(1)), []string{"forward forwarded 202 2s", "post forwarded 202 2s"}},
			{envelope(t, "collapseId", id(1)), []string{"post suppressed 202 0s"}},
			{envelope(t, "collapseId", id(410)), []string{"forward device_gone 410 2s", "post device_gone 410 2s"}},
			{envelope(t, "collapseId", id(429)), []string{"forward rate_limited 429 2s", "post rate_limited 429 2s"}},
			{envelope(t, "collapseId", id(502)), []string{"forward not_forwarded 502 2s", "post not_forwarded 502 2s"}},
			{envelope(t, "v", 2), []string{"post invalid 400 0s"}},
			{strings.Repeat("x", 9000), []string{"post invalid 413 0s"}},
			{envelope(t, "collapseId", id(2)), []string{"forward forwarded 202 2s", "post forwarded 202 2s"}},
			{envelope(t, "collapseId", id(3)), []string{"digest forwarded 202 0s", "post digested 202 0s"}},
			{envelope(t, "collapseId", id(3)), []string{"post digested 202 0s"}},
		} {
			seen = nil
			post(t, to, step.what)
			mu.Lock()
			var got []string
			for _, o := range seen {
				got = append(got, fmt.Sprint(o.Operation, " ", o.Result, " ", o.Status, " ", o.Duration))
				if o.Operation == "post" && !slices.Contains(relay.PostResults(), o.Result) {
					t.Errorf("%q is not among PostResults", o.Result)
				}
				if o.Start.IsZero() {
					t.Error("no start")
				}
			}
			mu.Unlock()
			if !slices.Equal(got, step.want) {
				t.Errorf("observed %q, want %q", got, step.want)
			}
		}
		seen = nil
		request(t, to, http.MethodPost, "/elsewhere", envelope(t))
		request(t, to, http.MethodPut, "/", envelope(t))
		if len(seen) != 0 {
			t.Errorf("observed %+v of what is no post", seen)
		}
	}, relaytest.WithRelay(relay.WithForwarder(newSlowPush()), relay.WithPolicy(policy), relay.WithObserver(observe)))
	if _, err := relay.New(relay.WithForwarder(newSlowPush()), relay.WithObserver(nil)); err == nil {
		t.Error("a nil observer was accepted")
	}
}

func TestAMemoryStateCountsItsDevices(t *testing.T) {
	state, err := relay.NewMemoryState(100)
	if err != nil {
		t.Fatal(err)
	}
	to := start(t, relaytest.WithRelay(relay.WithState(state)))
	for _, device := range []string{device, device, "00" + device} {
		post(t, to, envelope(t, "device", device))
	}
	if n := state.Devices(); n != 2 {
		t.Errorf("%d devices", n)
	}
}
