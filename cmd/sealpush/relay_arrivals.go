package main

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// arrived is the answer to GET /: what a phone, or rather its push service, would know by now.
type arrived struct {
	Alerts  int64    `json:"alerts"`  // envelopes that the sealed relay was posted
	Devices []device `json:"devices"` // registered by the bridge
	Pushes  []push   `json:"pushes"`  // sent by the bridge
}

type device struct {
	Platform string `json:"platform"`
	BundleID string `json:"bundleId,omitempty"`
}

type push struct {
	Time    time.Time                `json:"time"`
	Title   string                   `json:"title"`
	Body    string                   `json:"body"`
	Data    map[string]string        `json:"data,omitempty"`
	Results []relay.BridgePushResult `json:"results"`
}

func arrivals(alerts *counter, bridge *relaytest.BridgeService, clientID string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer := arrived{Alerts: alerts.requests.Load(), Devices: []device{}, Pushes: []push{}}
		for _, d := range bridge.Devices(clientID) {
			answer.Devices = append(answer.Devices, device{d.Platform, d.BundleID})
		}
		for _, p := range bridge.Pushes(clientID) {
			answer.Pushes = append(answer.Pushes, push{p.Time, p.Title, p.Body, p.Data, p.Results})
		}
		w.Header().Set("Content-Type", "application/json")
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(answer); err != nil {
			slog.Warn("cannot answer what arrived", "error", err)
		}
	})
}

// A counter counts the requests that it hands on.
type counter struct {
	next     http.Handler
	requests atomic.Int64
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.requests.Add(1)
	c.next.ServeHTTP(w, r)
}

// loggedPath is a path without the device token or the mailbox id at its end, because anybody who knows one can use it.
func loggedPath(path string) string {
	for _, prefix := range []string{"/subscriptions/", "/mailboxes/"} {
		if strings.HasPrefix(path, prefix) {
			return prefix + "…"
		}
	}
	return path
}

// logged logs each request with the status of its answer.
func logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		method, path := r.Method, loggedPath(r.URL.Path)
		recorder := &statusRecorder{ResponseWriter: w, status: http.StatusOK}
		next.ServeHTTP(recorder, r)
		slog.Info("request", "method", method, "path", path, "status", recorder.status)
	})
}

type statusRecorder struct {
	http.ResponseWriter
	status int
}

// Unwrap lets the relay set the deadline by which a body must have arrived.
func (r *statusRecorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

func (r *statusRecorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}
