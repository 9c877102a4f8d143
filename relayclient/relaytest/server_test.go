package relaytest

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

var hello = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	io.WriteString(w, r.Proto)
})

func get(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestServerIsReached(t *testing.T) {
	tests := []struct {
		name   string
		config serverConfig
		proto  string
	}{
		{"loopback", serverConfig{}, "HTTP/1.1"},
		{"loopback with TLS", serverConfig{tls: true}, "HTTP/2.0"},
		{"in memory", serverConfig{inMemory: true}, "HTTP/1.1"},
		{"in memory with TLS", serverConfig{inMemory: true, tls: true}, "HTTP/2.0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer("relay", tt.config)
			s.start(hello)
			defer s.Close()
			if got := get(t, s.Client(), s.URL); got != tt.proto {
				t.Errorf("served over %s, want %s", got, tt.proto)
			}
			s.Close()
			if _, err := s.Client().Get(s.URL); err == nil {
				t.Error("reachable after Close")
			}
			s.Close()
		})
	}
}

func TestServerInBubble(t *testing.T) {
	for _, config := range []serverConfig{{inMemory: true}, {inMemory: true, tls: true}} {
		synctest.Test(t, func(t *testing.T) {
			s := newServer("relay", config)
			s.start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				select {
				case <-time.After(time.Minute):
				case <-r.Context().Done():
				}
			}))
			start := time.Now()
			get(t, s.Client(), s.URL)
			if waited := time.Since(start); waited != time.Minute {
				t.Errorf("the handler's minute took %v", waited)
			}

			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Client().Do(req); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want the deadline", err)
			}
			s.Close()
			if waited := time.Since(start); waited >= 2*time.Minute {
				t.Errorf("the handler did not notice that its caller had left: %v", waited)
			}
		})
	}
}

func TestDialGivesUpWithItsContext(t *testing.T) {
	l := newMemoryListener("nobody.accepts")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.dial(ctx, "tcp", "x:80"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want Canceled", err)
	}
	l.Close()
	if _, err := l.dial(t.Context(), "tcp", "x:80"); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}
