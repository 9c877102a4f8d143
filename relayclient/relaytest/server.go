package relaytest

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"time"
)

// A ServerOption says how a [Relay] or a [BridgeService] is reached. By default it listens on a free port of the
// loopback interface, without TLS.
type ServerOption func(*serverConfig) error

type serverConfig struct {
	inMemory bool
	tls      bool
	// connState, if set, is told about connections as http.Server.ConnState is.
	connState func(net.Conn, http.ConnState)
}

// InMemory serves on a listener in memory instead of a socket, so that the server works inside a testing/synctest
// bubble. It is reached through the server's Client (or that client's Transport) alone.
func InMemory() ServerOption {
	return func(c *serverConfig) error {
		c.inMemory = true
		return nil
	}
}

// WithTLS serves HTTPS, with HTTP/2 offered, under a certificate that the server's Client trusts.
func WithTLS() ServerOption {
	return func(c *serverConfig) error {
		c.tls = true
		return nil
	}
}

// must is for the constructors, which panic on a bad option as they return no error.
func must(err error) {
	if err != nil {
		panic("relaytest: " + err.Error())
	}
}

var errNilOption = errors.New("an option is nil")

// newServer makes a server that listens already and serves nothing before its start is called. Name tells servers in
// memory apart in URLs. The client that it has once it is started reaches it, and its Close waits for the requests in
// hand.
func newServer(name string, config serverConfig) *server {
	s := &server{config: config}
	if config.inMemory {
		s.memory = newMemoryListener(name + ".sealpush.test")
		s.Server = &httptest.Server{Listener: s.memory, Config: &http.Server{}}
	} else {
		s.Server = httptest.NewUnstartedServer(nil)
	}
	scheme := "http://"
	if config.tls {
		scheme = "https://"
	}
	s.url = scheme + s.Listener.Addr().String()
	return s
}

// A server is what Relay and BridgeService have in common.
type server struct {
	*httptest.Server
	url    string // where it will be reached
	config serverConfig
	memory *memoryListener // nil for a socket
}

func (s *server) start(handler http.Handler) {
	s.Config.Handler = handler
	s.Config.ReadHeaderTimeout = 10 * time.Second
	s.Config.MaxHeaderBytes = 64 << 10
	s.Config.ConnState = s.config.connState
	if s.config.tls {
		s.EnableHTTP2 = true
		s.StartTLS()
	} else {
		s.Start()
	}
	if s.memory == nil {
		return
	}
	transport := s.Client().Transport.(*http.Transport)
	transport.DialContext = s.memory.dial
	if s.config.tls {
		transport.TLSClientConfig.ServerName = "example.com" // a name in httptest's certificate
	}
}
