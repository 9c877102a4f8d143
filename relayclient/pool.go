package relayclient

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"time"
)

// A pool is the transport of a Client that makes its own connections. On its own
// an http.Transport keeps some that it should not: an HTTP/2 connection on which
// a request timed out goes on to take requests as long as its other end answers
// pings, and one that had just lost its last request is overlooked by
// CloseIdleConnections. So a pool starts afresh when it must, which it can while
// nobody sends. A nil pool does nothing.
type pool struct {
	timeout time.Duration
	dial    func(ctx context.Context, network, address string) (net.Conn, error)
	tls     *tls.Config // nil for the default

	mu        sync.Mutex
	transport *http.Transport // replaced only while nobody sends
	dials     *dialLimit      // of the transport
	conns     *connSet        // of the transport
	sending   int
	stale     bool // the connections are not to be trusted
	closed    bool // for good, but for a Send that came before
}

func newPool(timeout time.Duration) *pool {
	p := &pool{timeout: timeout, dial: (&net.Dialer{Timeout: 5 * time.Second}).DialContext}
	p.renew()
	return p
}

// RoundTrip implements http.RoundTripper, between enter and leave.
func (p *pool) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := p.transport.RoundTrip(req)
	if err == nil {
		p.dials.answered()
	}
	return resp, err
}

func (p *pool) enter() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sending++
}

func (p *pool) leave() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sending--
	p.renewIfDue()
}

func (p *pool) close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.transport.CloseIdleConnections()
	p.renewIfDue()
}

// distrust is for a request that got no answer in time, or no connection that
// lasts. What swallowed it may have swallowed the other connections too.
func (p *pool) distrust() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stale = true
	p.transport.CloseIdleConnections()
}

func (p *pool) closeIdle() {
	if p != nil {
		p.transport.CloseIdleConnections()
	}
}

func (p *pool) renewIfDue() {
	if p.sending == 0 && (p.stale || p.closed) {
		p.transport.CloseIdleConnections()
		p.conns.closeAll()
		p.renew()
	}
}

func (p *pool) renew() {
	conns := &connSet{open: map[*pooledConn]struct{}{}}
	dials := newDialLimit()
	p.dials = dials
	p.conns, p.stale = conns, false
	p.transport = newTransport(p.timeout)
	p.transport.TLSClientConfig = p.tls.Clone()
	p.transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if err := dials.wait(ctx, p.timeout/2); err != nil {
			return nil, err
		}
		conn, err := p.dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return conns.add(conn)
	}
}

// A connSet is the open connections of one transport.
type connSet struct {
	mu   sync.Mutex
	open map[*pooledConn]struct{} // nil when all are closed, for good
}

func (s *connSet) add(conn net.Conn) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		conn.Close()
		return nil, net.ErrClosed
	}
	pooled := &pooledConn{conn, s}
	s.open[pooled] = struct{}{}
	return pooled, nil
}

func (s *connSet) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.open {
		conn.Conn.Close()
	}
	s.open = nil
}

// A pooledConn is taken out of its set when it is closed.
type pooledConn struct {
	net.Conn
	set *connSet
}

func (c *pooledConn) Close() error {
	c.set.mu.Lock()
	delete(c.set.open, c)
	c.set.mu.Unlock()
	return c.Conn.Close()
}
