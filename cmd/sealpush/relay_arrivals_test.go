package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// The relay gives a body ten seconds to arrive, which it can only do if the
// connection is within reach behind what logs.
func TestLoggingLeavesTheConnectionWithinReach(t *testing.T) {
	reached := make(chan error, 1)
	server := httptest.NewServer(logged(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached <- http.NewResponseController(w).SetReadDeadline(time.Now().Add(time.Minute))
	})))
	defer server.Close()
	resp, err := server.Client().Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if err := <-reached; err != nil {
		t.Errorf("no deadline can be set: %v", err)
	}
}

// A relay that forwards to Apple keeps no requests, and counts them all the same.
func TestAlertsAreCounted(t *testing.T) {
	sealed := relaytest.NewUnstartedRelay(relaytest.WithoutRequests())
	defer sealed.Close()
	bridge := relaytest.NewUnstartedBridgeService("http://relay.example/token-service", "http://relay.example/push-relay")
	defer bridge.Close()
	alerts := &counter{next: sealed}
	for range 2 {
		alerts.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}")))
	}
	w := httptest.NewRecorder()
	arrivals(alerts, bridge, "bridge").ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	var answer struct{ Alerts int }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Alerts != 2 {
		t.Errorf("%v, %s", err, w.Body)
	}
}

// What strangers send is bounded, and not kept.
func TestRelayServerRefusesBigHeaders(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.Config = newRelayServer(http.NotFoundHandler())
	server.Start()
	defer server.Close()
	for size, want := range map[int]int{8 << 10: 404, 64 << 10: 431} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Large", strings.Repeat("a", size))
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%d bytes: answered %s, want %d", size, resp.Status, want)
		}
	}
	for name, limit := range map[string]time.Duration{
		"ReadHeaderTimeout": server.Config.ReadHeaderTimeout, "ReadTimeout": server.Config.ReadTimeout,
		"WriteTimeout": server.Config.WriteTimeout, "IdleTimeout": server.Config.IdleTimeout,
	} {
		if limit <= 0 || limit > 5*time.Minute {
			t.Errorf("%s is %v", name, limit)
		}
	}
}
