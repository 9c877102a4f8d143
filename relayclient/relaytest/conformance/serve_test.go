package conformance_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relayclient/relaytest"
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

func randomHex() string {
	var raw [16]byte
	rand.Read(raw[:])
	return hex.EncodeToString(raw[:])
}

// checksOf returns the checks of one part, of which there must be some.
func checksOf(t *testing.T, part conformance.Part) []conformance.Check {
	t.Helper()
	checks := slices.DeleteFunc(conformance.Checks(), func(c conformance.Check) bool { return c.Part != part })
	if len(checks) == 0 {
		t.Fatalf("no check is about a %s", part)
	}
	return checks
}

// eachIsProved expects that checks are those that have something broken.
func eachIsProved[T any](t *testing.T, checks []conformance.Check, broken map[string][]T) {
	t.Helper()
	var names []string
	for _, c := range checks {
		names = append(names, c.Name)
		if len(broken[c.Name]) == 0 {
			t.Errorf("nothing broken proves the check %s", c.Name)
		}
	}
	for name := range broken {
		if !slices.Contains(names, name) {
			t.Errorf("something is broken for %s, which is no check", name)
		}
	}
}

// findsOnly expects that one check, and no other, finds something.
func findsOnly(t *testing.T, ctx context.Context, target conformance.Target, check conformance.Check) {
	t.Helper()
	report, err := conformance.Evaluate(ctx, target)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range report.Results {
		want := conformance.Pass
		if r.Check == check.Name && check.Level == conformance.Must {
			want = conformance.Fail
		} else if r.Check == check.Name {
			want = conformance.NotStated
		}
		if r.Verdict != want {
			t.Errorf("%s: %s, want %s: %s", r.Check, r.Verdict, want, r.Detail)
		}
		if r.Check == check.Name {
			t.Logf("%s: %s: %s", r.Check, r.Verdict, r.Detail)
		}
	}
}

func variantName(check string, i int) string { return fmt.Sprintf("%s/%d", check, i) }

func TestEachCheckFindsItsBrokenRelay(t *testing.T) {
	broken := brokenRelays()
	checks := checksOf(t, conformance.SealedRelay)
	eachIsProved(t, checks, broken)
	for _, check := range checks {
		for i, b := range broken[check.Name] {
			t.Run(variantName(check.Name, i), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					relay := relaytest.NewUnstartedRelay()
					t.Cleanup(relay.Close)
					var wrap func(net.Conn) net.Conn
					if b.serialHeaders {
						wrap = oneHeaderAtATime()
					}
					findsOnly(t, t.Context(), serveInBubble(t, b.over(relay), wrap), check)
				})
			})
		}
	}
}
