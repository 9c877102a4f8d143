package transport_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/internal/transport"
)

// pipes is a listener in memory, so that it works in a bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.conns:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { p.close(); return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }

// mortal is a connection that can die without a word: what is written vanishes, and nothing comes any more.
type mortal struct {
	net.Conn
	dead atomic.Bool
}

func (m *mortal) Write(p []byte) (int, error) {
	if m.dead.Load() {
		return len(p), nil
	}
	return m.Conn.Write(p)
}

func (m *mortal) Read(p []byte) (int, error) {
	for {
		n, err := m.Conn.Read(p)
		if err != nil || !m.dead.Load() {
			return n, err
		}
	}
}

func TestASilentlyDeadConnectionIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 2 {
				t.Errorf("%s, want HTTP/2", r.Proto)
			}
		}))
		closed := make(chan struct{})
		listener := pipes{make(chan net.Conn), closed, sync.OnceFunc(func() { close(closed) })}
		server.Listener.Close()
		server.Listener, server.EnableHTTP2 = listener, true
		server.StartTLS()

		var conns []*mortal
		tr := transport.New()
		tr.Proxy = nil
		tr.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		tr.DialContext = func(context.Context, string, string) (net.Conn, error) {
			client, served := net.Pipe()
			listener.conns <- served
			conns = append(conns, &mortal{Conn: client})
			return conns[len(conns)-1], nil
		}
		get := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, "GET", "https://127.0.0.1/", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := tr.RoundTrip(req)
			if err == nil {
				resp.Body.Close()
			}
			return err
		}
		if err := get(); err != nil {
			t.Fatal(err)
		}
		conns[0].dead.Store(true)
		start := time.Now()
		if err := get(); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("on a dead connection, after %v: %v", time.Since(start), err)
		}
		if err := get(); err != nil || len(conns) != 2 {
			t.Errorf("the next request: %v, on connection %d", err, len(conns))
		}
		tr.CloseIdleConnections()
		server.Close()
	})
}
