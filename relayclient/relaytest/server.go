package relaytest

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
)

// A ServerOption says how a [Relay] or a [BridgeService] is reached. By default
// it listens on a free port of the loopback interface, without TLS.
type ServerOption func(*serverConfig)

type serverConfig struct {
	inMemory bool
	tls      bool
	// connState, if set, is told about connections as http.Server.ConnState is.
	connState func(net.Conn, http.ConnState)
}

// InMemory serves on a listener in memory instead of a socket, so that the
// server works inside a testing/synctest bubble. It is reached through the
// server's Client (or that client's Transport) alone.
func InMemory() ServerOption { return func(c *serverConfig) { c.inMemory = true } }

// WithTLS serves HTTPS, with HTTP/2 offered, under a certificate that the
// server's Client trusts.
func WithTLS() ServerOption { return func(c *serverConfig) { c.tls = true } }

// server is what Relay and BridgeService have in common: it runs a handler and
// hands out a client that reaches it.
type server struct {
	*httptest.Server
	closing chan struct{} // closed first of all, so that a scripted delay ends
	close   func()
}

// startServer serves handler. Name tells servers in memory apart in URLs.
func startServer(name string, handler http.Handler, config serverConfig) *server {
	s := &server{closing: make(chan struct{})}
	if !config.inMemory {
		s.Server = httptest.NewUnstartedServer(handler)
		s.start(config)
		return s
	}
	listener := newMemoryListener(name + ".sealpush.test")
	s.Server = &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
	s.start(config)
	transport := s.Client().Transport.(*http.Transport)
	transport.DialContext = listener.dial
	if config.tls {
		transport.TLSClientConfig.ServerName = "example.com" // a name in httptest's certificate
	}
	return s
}

func (s *server) start(config serverConfig) {
	s.close = sync.OnceFunc(func() {
		close(s.closing)
		s.Server.Close()
	})
	s.Config.ConnState = config.connState
	if config.tls {
		s.EnableHTTP2 = true
		s.StartTLS()
		return
	}
	s.Start()
}

// Close ends scripted delays, waits for the requests in hand and stops the
// server. It may be called more than once.
func (s *server) Close() { s.close() }
