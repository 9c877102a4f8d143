package main

import (
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

const (
	devicesPath = "/push/devices"
	relayPath   = "/relay"
	inboxPath   = "/inbox"
)

// maxConnections is how many phones, browsers and others are served at once. More wait until one of them is done or
// timed out.
const maxConnections = 500

// newServer bounds every request by more than a phone's fetch waits, which is 25 s.
func newServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       time.Minute,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
	}
}

// routes serves the pairing API to callers alone and, when the daemon has a relay of its own, that relay and its
// inboxes.
func routes(known callers, api http.Handler, own *relaytest.Relay) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(devicesPath, known.only(api))
	mux.Handle(devicesPath+"/", known.only(api))
	if own != nil {
		mux.Handle(relayPath, http.StripPrefix(relayPath, own))
		mux.Handle(inboxPath, own.InboxHandler())
		mux.Handle("/pair", relay.PairPage()) // where links lead
	}
	return mux
}

// pairingAPI tells paired, without waiting, when a phone was paired.
func pairingAPI(registry *pairing.Registry, notifier *relayclient.Notifier, paired chan<- struct{}) (http.Handler, error) {
	api, err := pairing.Handler(registry, notifier.Test, pairing.WithCaller(callerOf))
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := &answer{ResponseWriter: w}
		api.ServeHTTP(answer, r)
		if r.Method == http.MethodPost && r.URL.Path == devicesPath && answer.status < 300 {
			wake(paired)
		}
	}), nil
}

// answer remembers the status of an answer.
type answer struct {
	http.ResponseWriter
	status int
}

func (a *answer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.MaxBytesReader and its like reach the connection.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // a signal is waiting already
	}
}

// reachable returns the address to connect to for a server that listens on addr.
func reachable(addr *net.TCPAddr) string {
	if addr.IP.IsUnspecified() {
		return (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: addr.Port}).String()
	}
	return addr.String()
}
