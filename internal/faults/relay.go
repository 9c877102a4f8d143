package main

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"
)

// A server accepts every envelope, and counts its connections.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	accepted int // connections, ever
	open     int
	mostOpen int
}

type connectionNumber struct{}

// serve starts a relay that handles requests with handler, or accepts them when that is nil. Configure may change it
// before it starts.
func serve(protocol string, handler http.HandlerFunc, configure func(*server)) *server {
	if handler == nil {
		handler = accept(0)
	}
	s := &server{Server: httptest.NewUnstartedServer(handler)}
	s.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		s.mu.Lock()
		defer s.mu.Unlock()
		return context.WithValue(ctx, connectionNumber{}, s.accepted)
	}
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch state {
		case http.StateNew:
			s.accepted++
			s.open++
			s.mostOpen = max(s.mostOpen, s.open)
		case http.StateClosed, http.StateHijacked:
			s.open--
		}
	}
	if configure != nil {
		configure(s)
	}
	switch protocol {
	case "http":
		s.Start()
	case "https1":
		s.StartTLS()
	case "https2":
		s.EnableHTTP2 = true
		s.StartTLS()
	}
	return s
}

func (s *server) connections() (accepted, mostOpen int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.accepted, s.mostOpen
}

// accept answers 202 after so long.
func accept(delay time.Duration) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		time.Sleep(delay)
		w.WriteHeader(http.StatusAccepted)
	}
}

// slowHandshakes makes each TLS handshake take so much longer.
func slowHandshakes(delay time.Duration) func(*server) {
	return func(s *server) {
		s.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			time.Sleep(delay)
			return nil, nil
		}}
	}
}

// freeAddress returns an address of the loopback interface on which nobody listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// serveAt is serve over HTTP, or over HTTPS when tls is set, at a given address.
func serveAt(address, protocol string, handler http.HandlerFunc) (*server, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	return serve(protocol, handler, func(s *server) {
		s.Listener.Close()
		s.Listener = l
	}), nil
}

// trustLoopback makes this process trust httptest's certificate by way of the system's roots, so that the client under
// test keeps its own transport. Call it before the first TLS connection.
func trustLoopback() (undo func(), err error) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	file, err := os.CreateTemp("", "relay-*.pem")
	if err != nil {
		return nil, err
	}
	return func() { os.Remove(file.Name()) }, errors.Join(
		pem.Encode(file, &pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
		file.Close(),
		os.Setenv("SSL_CERT_FILE", file.Name()))
}
