package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"github.com/sealpush/sealpush/internal/crossorigin"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/secret"
)

const (
	devicesPath = "/push/devices"
	// maxPairing is how many connections the pairing API has at once: one phone comes.
	maxPairing = 20
)

// A pairingServer serves the one request that pairs a phone. It is safe for concurrent use.
type pairingServer struct {
	token  secret.Text // good for one pairing
	paired chan string // the phone's id, with room for it
	failed chan error  // why no phone can come any more
	api    http.Handler
	server *http.Server

	mu      sync.Mutex
	claimed bool // by a phone that has paired
}

// newPairingServer makes one that pages of the relay's origin may use as well: a web phone that is given the link.
func newPairingServer(registry *pairing.Registry, relayURL string) (*pairingServer, error) {
	var pages []string
	if origin, err := originOf(relayURL); err == nil {
		pages = append(pages, origin)
	}
	origins, err := crossorigin.Parse(pages...)
	if err != nil {
		return nil, usageError{fmt.Errorf("the relay's URL: %w", err)}
	}
	api, err := pairing.Handler(registry, nil, pairing.WithOrigins(pages...), pairing.WithCaller(func(*http.Request) string { return pairedBy }))
	if err != nil {
		return nil, err
	}
	s := &pairingServer{token: secret.New(rand.Text()), paired: make(chan string, 1), failed: make(chan error, 2), api: api}
	s.server = &http.Server{
		// Before the token: a page can read what it is refused, and its preflight has none.
		Handler: origins.Handler(s, http.MethodPost, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, http.StatusForbidden, "a page of another site may not pair anything here")
		})),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug), // what strangers do is not the reader's business
	}
	return s, nil
}

// serve begins to serve.
func (s *pairingServer) serve(listener net.Listener, certFile, keyFile string) {
	limited := netutil.LimitListener(listener, maxPairing)
	go func() {
		if certFile != "" {
			s.failed <- s.server.ServeTLS(limited, certFile, keyFile)
			return
		}
		s.failed <- s.server.Serve(limited)
	}()
}

// close ends it when the phone has its answer.
func (s *pairingServer) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if s.server.Shutdown(ctx) != nil {
		s.server.Close()
	}
}

// claim takes the one pairing, unless it is taken.
func (s *pairingServer) claim() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.claimed
	s.claimed = true
	return !was
}

// ServeHTTP hands one pairing request to the pairing API. Listing, testing and revoking are not the phone's.
func (s *pairingServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != devicesPath || r.Method != http.MethodPost {
		refuse(w, http.StatusNotFound, "only POST "+devicesPath+" is served here")
		return
	}
	s.mu.Lock() // of two phones at once, one is paired
	defer s.mu.Unlock()
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || !s.token.Equal(secret.New(token)) || s.claimed {
		w.Header().Set("WWW-Authenticate", `Bearer realm="sealpush pair"`)
		refuse(w, http.StatusUnauthorized, "the link's token is required, which is good for one phone")
		return
	}
	answer := &pairingAnswer{ResponseWriter: w}
	s.api.ServeHTTP(answer, r)
	if answer.status/100 != 2 {
		return
	}
	s.claimed = true
	var said struct{ Device struct{ ID string } }
	if err := json.Unmarshal(answer.body.Bytes(), &said); err != nil {
		s.failed <- err
		return
	}
	s.paired <- said.Device.ID
}

// A pairingAnswer keeps what is answered.
type pairingAnswer struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (a *pairingAnswer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

func (a *pairingAnswer) Write(b []byte) (int, error) {
	a.body.Write(b)
	return a.ResponseWriter.Write(b)
}

// Unwrap lets http.MaxBytesReader and its like reach the connection.
func (a *pairingAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func refuse(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"error": text})
}
