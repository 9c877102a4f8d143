package conformance_test

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relayclient/relaytest/conformance"
)

// A pipeListener is a listener without a socket, which works in a bubble.
type pipeListener struct {
	pending chan net.Conn
	closed  chan struct{}
	close   func()
}

func newPipeListener() *pipeListener {
	l := &pipeListener{pending: make(chan net.Conn), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.pending:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.close(); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

func (l *pipeListener) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.pending <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// serveInBubble serves a relay whose connections pass through wrap, if it is
// not nil, and returns the target that it is.
func serveInBubble(t *testing.T, relay http.Handler, wrap func(net.Conn) net.Conn) conformance.Target {
	listener := newPipeListener()
	transport := &http.Transport{DialContext: listener.dial, MaxIdleConnsPerHost: 100}
	server := &http.Server{Handler: relay}
	go server.Serve(wrappingListener{listener, wrap})
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
		<-time.After(time.Second) // of the bubble: net/http lingers on some connections
	})
	return conformance.Target{URL: "http://relay.test", Client: &http.Client{Transport: transport}}
}

type wrappingListener struct {
	net.Listener
	wrap func(net.Conn) net.Conn
}

func (l wrappingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil && l.wrap != nil {
		conn = l.wrap(conn)
	}
	return conn, err
}

// oneHeaderAtATime lets one connection read a header while all others wait.
func oneHeaderAtATime() func(net.Conn) net.Conn {
	turn := make(chan struct{}, 1)
	return func(conn net.Conn) net.Conn { return &headerConn{Conn: conn, turn: turn} }
}

type headerConn struct {
	net.Conn
	turn chan struct{}
	head []byte // of the header so far; nil between headers
	mine bool
}

func (c *headerConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.mine && c.head == nil {
		c.turn <- struct{}{}
		c.mine = true
	}
	c.head = append(c.head, p[:n]...)
	if c.mine && (err != nil || bytes.Contains(c.head, []byte("\r\n\r\n"))) {
		<-c.turn
		c.mine = false
	}
	return n, err
}
