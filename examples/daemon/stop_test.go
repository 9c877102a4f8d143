package main

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// A oneConn is a listener that has one connection to accept.
type oneConn struct {
	conn   chan net.Conn
	closed context.Context
	close  func()
}

func (l oneConn) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conn:
		return conn, nil
	case <-l.closed.Done():
		return nil, net.ErrClosed
	}
}

func (l oneConn) Close() error   { l.close(); return nil }
func (l oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// A request that never ends is waited for so long, and then cut off.
func TestStopIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener := oneConn{conn: make(chan net.Conn, 1)}
		listener.closed, listener.close = context.WithCancel(t.Context())
		silent, accepted := net.Pipe()
		listener.conn <- accepted
		relay := relaytest.NewUnstartedRelay()
		server := newServer(routes(nil, nil, relay))
		server.RegisterOnShutdown(relay.Close)

		ctx, stop := context.WithCancel(t.Context())
		stopped := make(chan error)
		go func() { stopped <- work(ctx, server, listener, func(ctx context.Context) { <-ctx.Done() }) }()
		if _, err := io.WriteString(silent, "POST /relay HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // until the handler waits for the body
		stop()
		start := time.Now()
		if err := <-stopped; err != nil {
			t.Error(err)
		}
		if waited := time.Since(start); waited != shutdownTimeout {
			t.Errorf("the request was waited for %v, want %v", waited, shutdownTimeout)
		}
		if _, err := io.Copy(io.Discard, silent); err != nil {
			t.Error(err)
		}
	})
}
