package relay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

type forwarderFunc func(ctx context.Context, e relay.Envelope) error

func (f forwarderFunc) Device(token string) (string, error) { return strings.ToLower(token), nil }

func (f forwarderFunc) Forward(ctx context.Context, e relay.Envelope) error { return f(ctx, e) }

func TestForwarderFailures(t *testing.T) {
	tests := []struct {
		name       string
		err        error
		status     int
		reason     string
		retryAfter string
	}{
		{"anything", errors.New("no route to host"), 502, "", ""},
		{"nothing more", &relay.ForwardError{}, 502, "", ""},
		{"a status that is none", &relay.ForwardError{Status: 202}, 502, "", ""},
		{"gone", fmt.Errorf("wrapped: %w", &relay.ForwardError{Status: 410, Reason: "Unregistered"}), 410, "Unregistered", ""},
		{"too many", &relay.ForwardError{Status: 429, Reason: "TooManyRequests", RetryAfter: 1500 * time.Millisecond}, 429, "TooManyRequests", "2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			var healed atomic.Bool
			relay := start(t,
				relaytest.WithRelay(relay.WithForwarder(forwarderFunc(func(context.Context, relay.Envelope) error {
					if healed.Load() {
						return nil
					}
					return tt.err
				}))),
				relaytest.WithRelay(relay.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))
			for range 50 { // which leaves tokens for what follows
				got := post(t, relay, envelope(t))
				reason, _ := got.body["reason"].(string)
				if got.status != tt.status || reason != tt.reason || got.header.Get("Retry-After") != tt.retryAfter {
					t.Fatalf("answered %+v", got)
				}
				if got.body["error"] == "" || got.body["v"] != 1.0 {
					t.Fatalf("not the protocol's shape: %v", got.body)
				}
			}
			healed.Store(true)
			if got := outcomeOf(t, relay); got != "forwarded" {
				t.Errorf("once the push service recovered: %s", got)
			}
			if got := outcomeOf(t, relay); got != "coalesced" {
				t.Errorf("then: %s", got)
			}
			if lines := strings.Count(log.String(), "level=WARN"); lines != 50 || strings.Contains(log.String(), device) {
				t.Errorf("%d lines logged, the last of\n%s", lines, log.String())
			}
			if got := len(relay.Inbox(device)); got != 0 {
				t.Errorf("%d messages in the inbox that another forwarder replaced", got)
			}
		})
	}
}

func TestForwarderThatPanics(t *testing.T) {
	var healed atomic.Bool
	relay := start(t, relaytest.WithRelay(relay.WithForwarder(forwarderFunc(func(context.Context, relay.Envelope) error {
		if !healed.Load() {
			panic(http.ErrAbortHandler)
		}
		return nil
	}))))
	if resp, err := relay.Client().Post(relay.URL, "", strings.NewReader(envelope(t))); err == nil {
		resp.Body.Close()
		t.Errorf("answered %s", resp.Status)
	}
	healed.Store(true)
	if got := outcomeOf(t, relay); got != "forwarded" {
		t.Errorf("afterwards: %s", got)
	}
}

// The daemon does not post again, so a forward outlives the daemon's patience.
func TestForwardOutlivesItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		relay := relaytest.NewRelay(relaytest.InMemory(), relaytest.WithRelay(relay.WithForwarder(forwarderFunc(
			func(ctx context.Context, e relay.Envelope) error {
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Second):
				}
				ended <- ctx.Err()
				return ctx.Err()
			}))))
		defer relay.Close()
		client := *relay.Client()
		client.Timeout = time.Second
		if resp, err := client.Post(relay.URL, "", strings.NewReader(envelope(t))); err == nil {
			resp.Body.Close()
			t.Fatalf("answered %s", resp.Status)
		}
		if err := <-ended; err != nil {
			t.Errorf("the forward ended with %v", err)
		}
		synctest.Wait()
		if got := outcomeOf(t, relay); got != "coalesced" {
			t.Errorf("posted again: %s", got)
		}
	})
}

func TestForwardEndsAfterHalfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quiet := relaytest.WithRelay(relay.WithLogger(slog.New(slog.DiscardHandler)))
		relay := relaytest.NewRelay(relaytest.InMemory(), quiet, relaytest.WithRelay(relay.WithForwarder(forwarderFunc(
			func(ctx context.Context, e relay.Envelope) error {
				<-ctx.Done()
				return ctx.Err()
			}))))
		defer relay.Close()
		begin := time.Now()
		if got := outcomeOf(t, relay); got != "502" || time.Since(begin) != 30*time.Second {
			t.Errorf("%s after %v", got, time.Since(begin))
		}
	})
}

func TestCloseEndsForwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quiet := relaytest.WithRelay(relay.WithLogger(slog.New(slog.DiscardHandler)))
		relay := relaytest.NewRelay(relaytest.InMemory(), quiet, relaytest.WithRelay(relay.WithForwarder(forwarderFunc(
			func(ctx context.Context, e relay.Envelope) error {
				<-ctx.Done()
				return ctx.Err()
			}))))
		go post(t, relay, envelope(t))
		if err := relay.WaitInFlight(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		relay.Close()
		if waited := time.Since(begin); waited != 0 {
			t.Errorf("Close waited %v for a forward", waited)
		}
	})
}

// A finder is a forwarder that keeps no device but one.
type finder struct{ taker }

func (finder) Find(ctx context.Context, name string) error {
	switch name {
	case device:
		return nil
	case "slow":
		<-ctx.Done()
		return &relay.ForwardError{Err: ctx.Err()}
	}
	return &relay.ForwardError{Status: http.StatusGone, Reason: "Unregistered"}
}

type taker struct{}

func (taker) Device(token string) (string, error)           { return token, nil }
func (taker) Forward(context.Context, relay.Envelope) error { return nil }

// A forwarder that keeps its devices is asked first, so that others are answered at once and not counted.
func TestFinderIsAskedBeforeThePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		state, err := relay.NewMemoryState(1)
		if err != nil {
			t.Fatal(err)
		}
		r, err := relay.New(relay.WithForwarder(finder{}), relay.WithState(state))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		post := func(name string) (int, string) {
			w := httptest.NewRecorder()
			r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(envelope(t, "device", name))))
			return w.Code, w.Body.String()
		}
		for _, name := range []string{"one", "two", "one"} { // one device has room in the state
			if status, body := post(name); status != http.StatusGone || !strings.Contains(body, "Unregistered") {
				t.Errorf("%s: %d %s", name, status, body)
			}
		}
		start := time.Now()
		if status, body := post("slow"); status != http.StatusBadGateway || time.Since(start) != 2*time.Second {
			t.Errorf("slow: %d %s after %v", status, body, time.Since(start))
		}
		for _, want := range []string{"forwarded", "coalesced"} {
			if status, body := post(device); status != http.StatusAccepted || !strings.Contains(body, want) {
				t.Errorf("the known one: %d %s", status, body)
			}
		}
	})
}
