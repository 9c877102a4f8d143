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
func TestAlertsAreCountedWithoutAHistory(t *testing.T) {
	sealed := relaytest.NewUnstartedRelay(relaytest.WithHistory(0))
	defer sealed.Close()
	bridge := relaytest.NewUnstartedBridgeService("http://relay.example/token-service", "http://relay.example/push-relay")
	defer bridge.Close()
	for range 2 {
		sealed.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}")))
	}
	w := httptest.NewRecorder()
	arrivals(sealed, bridge, "bridge").ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	var answer struct{ Alerts int }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Alerts != 2 {
		t.Errorf("%v, %s", err, w.Body)
	}
}
