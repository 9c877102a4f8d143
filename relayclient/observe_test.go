package relayclient_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// observations keeps what an observer is told.
type observations struct {
	mu   sync.Mutex
	seen []relayclient.Observation
}

func (o *observations) observe(_ context.Context, seen relayclient.Observation) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, seen)
}

func (o *observations) take() []relayclient.Observation {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.seen)
}

func TestObservations(t *testing.T) {
	refuse := func(status int) relaytest.Answer { return relaytest.Answer{Status: status} }
	tests := []struct {
		want   string
		answer *relaytest.Answer
		repeat bool // the alert was posted before
		change func(*relayclient.Client, *relayclient.Push, context.CancelFunc)
		posted bool
	}{
		{want: "forwarded", posted: true},
		{want: "coalesced", repeat: true, posted: true},
		{want: "accepted", answer: &relaytest.Answer{Status: 202}, posted: true},
		{want: "rate_limited", answer: new(refuse(429)), posted: true},
		{want: "device_gone", answer: new(refuse(410)), posted: true},
		{want: "refused", answer: new(refuse(404)), posted: true},
		{want: "relay_failed", answer: new(refuse(502)), posted: true},
		{want: "timeout", answer: &relaytest.Answer{Delay: time.Minute}, posted: true},
		{want: "no_answer", answer: &relaytest.Answer{Drop: true}, posted: true},
		{want: "invalid_alert", change: func(_ *relayclient.Client, p *relayclient.Push, _ context.CancelFunc) { p.Alert.Kind = "party" }},
		{want: "not_attempted", change: func(_ *relayclient.Client, _ *relayclient.Push, cancel context.CancelFunc) { cancel() }},
		{want: "closed", change: func(c *relayclient.Client, _ *relayclient.Push, _ context.CancelFunc) { c.Close() }},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				relay := relaytest.NewRelay(relaytest.InMemory())
				defer relay.Close()
				var seen observations
				client, _ := newClient(t, relay, relayclient.WithObserver(seen.observe))
				_, devices := phones(1)
				push := relayclient.Push{Alert: failure(), Salt: salt}
				if tt.repeat {
					client.Send(t.Context(), push, devices)
					time.Sleep(time.Second)
				}
				if tt.answer != nil {
					relay.Script(1, *tt.answer)
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.change != nil {
					tt.change(client, &push, cancel)
				}
				start := time.Now()
				outcome := client.Send(ctx, push, devices)[0]
				took := time.Since(start)
				all := seen.take()
				if len(all) != 1 && !tt.repeat || len(all) == 0 {
					t.Fatalf("%d observations", len(all))
				}
				o := all[len(all)-1]
				kind := push.Alert.Kind
				if kind == "party" {
					kind = ""
				}
				if o.Result != tt.want || o.Status != outcome.Status || o.Relay != relay.URL || o.Kind != kind ||
					!o.Start.Equal(start) || o.Duration != took || o.Name != "" || o.RunID != "" || o.DeviceID != "" {
					t.Errorf("observed %+v of %v after %v", o, outcome.Err, took)
				}
				size := 0
				if tt.posted {
					requests := relay.Requests()
					size = len(requests[len(requests)-1].Body)
				}
				if o.Bytes != size {
					t.Errorf("%d bytes, want %d", o.Bytes, size)
				}
			})
		})
	}
}

func TestObservedBeforeAnyPost(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	var seen observations
	client, _ := newClientAt(t, "http://"+listener.Addr().String(), relayclient.WithObserver(seen.observe), relayclient.WithPatience(time.Millisecond))
	_, devices := phones(1)
	client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices)
	devices[0].Unusable = errors.New("no key")
	client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices)
	var results []string
	for _, o := range seen.take() {
		if results = append(results, o.Result); o.Bytes != 0 || o.Status != 0 || o.Start.IsZero() {
			t.Errorf("%+v", o)
		}
	}
	if !slices.Equal(results, []string{"unreachable", "unusable_device"}) {
		t.Errorf("results %q", results)
	}
}

// What is held back is observed once, and so is a page that another process posts.
func TestObservedWithNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewRelay(relaytest.InMemory())
		defer relay.Close()
		var seen observations
		client, _ := newClient(t, relay, relayclient.WithObserver(seen.observe), relayclient.WithObservedNames())
		registry := registryFile(t, "")
		pairPhones(t, registry, 1)
		notifier, err := relayclient.NewNotifier(client, registry, "node-a", relayclient.WithStormGuard(5))
		if err != nil {
			t.Fatal(err)
		}
		defer notifier.Close(t.Context())
		for i := range 6 {
			alert := payload.NewFailure("", "job")
			alert.RunID = fmt.Sprint("run-", i)
			notifier.Notify(t.Context(), alert)
		}
		_, devices := phones(1)
		sealed, err := client.Seal(relayclient.Push{Alert: failure(), Salt: salt}, devices)
		if err != nil {
			t.Fatal(err)
		}
		stored := relayclient.Sealed{DeviceID: sealed[0].DeviceID, Envelope: sealed[0].Envelope}
		client.Post(t.Context(), []relayclient.Sealed{stored}, nil)
		all := seen.take()
		if len(all) != 7 {
			t.Fatalf("%d observations", len(all))
		}
		if o := all[4]; o.Result != "forwarded" || o.Name != "job" || o.RunID != "run-4" || o.DeviceID == "" {
			t.Errorf("%+v", o)
		}
		if o := all[5]; o.Result != "held_back" || o.Name != "job" || o.RunID != "run-5" || o.DeviceID != "" {
			t.Errorf("%+v", o)
		}
		if o := all[6]; o.Result != "forwarded" || o.Kind != "" || o.DeviceID != devices[0].ID || o.Bytes != len(stored.Envelope) {
			t.Errorf("%+v", o)
		}
	})
}

// An observation prints nothing that is secret, and nothing that the relay wrote.
func TestObservationsHoldNoSecret(t *testing.T) {
	relay := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, "hunter2 is the word")
	}))
	defer relay.Close()
	var seen observations
	client, _ := newClientAt(t, strings.Replace(relay.URL, "http://", "http://user:hunter2@", 1)+"/hunter2?key=hunter2",
		relayclient.WithObserver(seen.observe), relayclient.WithObservedNames())
	_, devices := phones(1)
	client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices)
	for _, o := range seen.take() {
		text := fmt.Sprintf("%+v", o)
		for _, hidden := range []string{"hunter2", devices[0].PushToken.Reveal(), salt.Reveal()} {
			if strings.Contains(text, hidden) {
				t.Errorf("%q is in %s", hidden, text)
			}
		}
	}
}

// An observer that panics costs no page.
func TestAnObserverMayPanic(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	client, _ := newClient(t, relay, relayclient.WithObserver(func(context.Context, relayclient.Observation) { panic("observer") }))
	_, devices := phones(3)
	wantAllDelivered(t, client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, devices), devices)
	if _, err := relayclient.New(relay.URL, relayclient.WithObserver(nil)); err == nil {
		t.Error("a nil observer was accepted")
	}
}

// Without an observer, an alert costs no allocation more, nor does it with one that allocates nothing.
func TestObservingAllocatesNothing(t *testing.T) {
	outcome := relayclient.Outcome{DeviceID: "a", Status: 202, Relay: relayclient.Forwarded}
	alert := failure()
	var total int
	for name, opts := range map[string][]relayclient.Option{
		"without": nil,
		"with":    {relayclient.WithObserver(func(_ context.Context, o relayclient.Observation) { total += o.Bytes })},
	} {
		client, _ := newClientAt(t, "https://relay.example", opts...)
		ctx := t.Context()
		if n := testing.AllocsPerRun(1000, func() { relayclient.Observe(client, ctx, alert, outcome, 1) }); n != 0 {
			t.Errorf("%s an observer: %v allocations", name, n)
		}
	}
	if total == 0 {
		t.Error("nothing was observed")
	}
}

// BenchmarkObserve is the cost of one observation.
func BenchmarkObserve(b *testing.B) {
	outcome := relayclient.Outcome{DeviceID: "a", Status: 202, Relay: relayclient.Forwarded}
	alert := failure()
	for name, opts := range map[string][]relayclient.Option{
		"without": nil,
		"with":    {relayclient.WithObserver(func(context.Context, relayclient.Observation) {})},
	} {
		b.Run(name, func(b *testing.B) {
			client, _ := newClientAt(b, "https://relay.example", opts...)
			b.ReportAllocs()
			for b.Loop() {
				relayclient.Observe(client, b.Context(), alert, outcome, 1)
			}
		})
	}
}
