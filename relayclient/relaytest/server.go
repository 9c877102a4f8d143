package relaytest

import (
	"net"
	"net/http"
	"net/http/httptest"
)

// A ServerOption says how a [Relay] or a [BridgeService] is reached. By default
// it listens on a free port of the loopback interface, without TLS.
// It is a plain value.
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

// startServer serves handler. What Relay and BridgeService have in common: the
// server they return has a client that reaches it, and its Close waits for the
// requests in hand. Name tells servers in memory apart in URLs.
func startServer(name string, handler http.Handler, config serverConfig) *httptest.Server {
	if !config.inMemory {
		s := httptest.NewUnstartedServer(handler)
		start(s, config)
		return s
	}
	listener := newMemoryListener(name + ".sealpush.test")
	s := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
	start(s, config)
	transport := s.Client().Transport.(*http.Transport)
	transport.DialContext = listener.dial
	if config.tls {
		transport.TLSClientConfig.ServerName = "example.com" // a name in httptest's certificate
	}
	return s
}

func start(s *httptest.Server, config serverConfig) {
	s.Config.ConnState = config.connState
	if config.tls {
		s.EnableHTTP2 = true
		s.StartTLS()
		return
	}
	s.Start()
}
