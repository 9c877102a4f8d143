package relayclient_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// network is the way to a relay in memory, with connections that can die.
type network struct {
	relay *relaytest.Relay
	mu    sync.Mutex
	conns []*mortal
}

func newNetwork(t *testing.T, opts ...relaytest.RelayOption) *network {
	n := &network{relay: relaytest.NewRelay(append(opts, relaytest.InMemory())...)}
	t.Cleanup(n.relay.Close)
	return n
}

// client returns a client with the transport that users get.
func (n *network) client(t *testing.T, opts ...relayclient.Option) *relayclient.Client {
	client, _ := newClientAt(t, n.relay.URL, opts...)
	inner := n.relay.Client().Transport.(*http.Transport)
	relayclient.SetDial(client, func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := inner.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		m := &mortal{Conn: conn, dead: make(chan struct{}), closed: make(chan struct{})}
		m.die = sync.OnceFunc(func() { close(m.dead); conn.SetReadDeadline(time.Now()) })
		m.bury = sync.OnceFunc(func() { close(m.closed); conn.Close() })
		n.mu.Lock()
		defer n.mu.Unlock()
		n.conns = append(n.conns, m)
		return m, nil
	}, inner.TLSClientConfig)
	return client
}

func (n *network) all() []*mortal {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.conns
}

// mortal is a connection that can die: how says what is seen of it. Nil is
// nothing at all, as when a machine at the other end loses its power.
type mortal struct {
	net.Conn
	how          error
	dieOnWrite   atomic.Bool
	dead, closed chan struct{}
	die, bury    func()
}

func (m *mortal) isDead() bool {
	select {
	case <-m.dead:
		return true
	default:
		return false
	}
}

func (m *mortal) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	if err == nil || !m.isDead() {
		return n, err
	}
	if m.how == nil {
		<-m.closed
		return 0, net.ErrClosed
	}
	return 0, m.how
}

func (m *mortal) Write(p []byte) (int, error) {
	if m.dieOnWrite.Load() {
		m.die()
	}
	if !m.isDead() {
		return m.Conn.Write(p)
	}
	if m.how == nil {
		return len(p), nil
	}
	return 0, syscall.EPIPE
}

func (m *mortal) Close() error {
	m.bury()
	return nil
}

// A network that silently loses its connections costs the alert that finds out,
// and not the next.
func TestSilentlyDeadConnections(t *testing.T) {
	for name, opts := range map[string][]relaytest.RelayOption{"HTTP/1.1": nil, "HTTP/2": {relaytest.WithTLS()}} {
		for _, timeout := range []time.Duration{time.Second, relayclient.DefaultTimeout, time.Minute} {
			t.Run(name+" "+timeout.String(), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newNetwork(t, opts...)
					client := n.client(t, relayclient.WithTimeout(timeout))
					devices := sharedKeyDevices(5)
					push := relayclient.Push{Alert: failure(), Salt: salt}
					n.relay.Script(5, relaytest.Answer{Delay: timeout / 2})
					wantAllDelivered(t, client.Send(t.Context(), push, devices), devices)
					for _, conn := range n.all() {
						conn.die()
					}

					start := time.Now()
					outcome := client.Send(t.Context(), push, devices[:1])[0]
					if took := time.Since(start); took > timeout || !wantNoAnswer()(outcome) {
						t.Errorf("on a dead connection: %+v after %v", outcome, took)
					}
					push.Alert.Name = "the next"
					start = time.Now()
					wantAllDelivered(t, client.Send(t.Context(), push, devices), devices)
					if took := time.Since(start); took > 0 {
						t.Errorf("the next alert took %v", took)
					}
					client.Close()
				})
			})
		}
	}
}

// A relay hangs up on a connection just as it is reused. Nothing was sent on it, so HTTP lets us send on another one.
func TestConnectionClosedJustAsItIsReused(t *testing.T) {
	for name, how := range map[string]error{"closed": io.EOF, "reset": syscall.ECONNRESET} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t)
				client := n.client(t)
				devices := sharedKeyDevices(1)
				push := relayclient.Push{Alert: failure(), Salt: salt}
				wantAllDelivered(t, client.Send(t.Context(), push, devices), devices)

				first := n.all()[0]
				first.how = how
				first.dieOnWrite.Store(true)
				push.Alert.Name = "the next"
				wantAllDelivered(t, client.Send(t.Context(), push, devices), devices)
				if requests := n.relay.Stats().Requests; requests != 2 || !first.isDead() || len(n.all()) != 2 {
					t.Errorf("%d requests on %d connections, the first reused: %v", requests, len(n.all()), first.isDead())
				}
				client.Close()
			})
		})
	}
}

// A POST that may have reached the relay is never repeated, whatever that costs.
func TestPOSTIsNeverRepeated(t *testing.T) {
	for name, opts := range map[string][]relaytest.RelayOption{"HTTP/1.1": nil, "HTTP/2": {relaytest.WithTLS()}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(t, opts...)
				client := n.client(t)
				devices := sharedKeyDevices(1)
				push := relayclient.Push{Alert: failure(), Salt: salt}
				wantAllDelivered(t, client.Send(t.Context(), push, devices), devices)
				n.relay.Script(1, relaytest.Answer{Drop: true})
				outcome := client.Send(t.Context(), push, devices)[0]
				if requests := n.relay.Stats().Requests; requests != 2 || !wantNoAnswer()(outcome) {
					t.Errorf("%d requests, %+v", requests, outcome)
				}
				push.Alert.Name = "the next"
				wantAllDelivered(t, client.Send(t.Context(), push, devices), devices)
				client.Close()
			})
		})
	}
}

// The relay's whole life passes between two alerts.
func TestRelayRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := newNetwork(t, relaytest.WithTLS()), newNetwork(t, relaytest.WithTLS())
		client := first.client(t)
		devices := sharedKeyDevices(20)
		push := relayclient.Push{Alert: failure(), Salt: salt}
		wantAllDelivered(t, client.Send(t.Context(), push, devices), devices)
		first.relay.Close()
		for _, outcome := range client.Send(t.Context(), push, devices) {
			if !wantNoAnswer()(outcome) || errors.Is(outcome.Err, context.DeadlineExceeded) {
				t.Errorf("%+v", outcome)
			}
		}
		inner := second.relay.Client().Transport.(*http.Transport)
		relayclient.SetDial(client, inner.DialContext, inner.TLSClientConfig)
		wantAllDelivered(t, client.Send(t.Context(), push, devices), devices)
		client.Close()
	})
}
