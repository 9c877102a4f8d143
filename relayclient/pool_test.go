package relayclient_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// A way is how a client under test reaches a relay in memory.
type way struct {
	relay    *relaytest.Relay
	before   func(ctx context.Context, n int) error // what happens before the n-th dial succeeds, from 1
	dials    atomic.Int32
	mu       sync.Mutex
	open     int
	mostOpen int
}

// client returns a client that takes the way.
func (w *way) client(t *testing.T, opts ...relayclient.Option) *relayclient.Client {
	t.Helper()
	client, _ := newClientAt(t, w.relay.URL, opts...)
	inner := w.relay.Client().Transport.(*http.Transport)
	relayclient.SetDial(client, func(ctx context.Context, network, address string) (net.Conn, error) {
		n := int(w.dials.Add(1))
		if w.before != nil {
			if err := w.before(ctx, n); err != nil {
				return nil, err
			}
		}
		conn, err := inner.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		w.count(1)
		return closer{conn, sync.OnceFunc(func() { w.count(-1) })}, nil
	}, inner.TLSClientConfig)
	return client
}

func (w *way) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open += n
	w.mostOpen = max(w.mostOpen, w.open)
}

// connections returns how many are open, and how many were at most.
func (w *way) connections() (open, most int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open, w.mostOpen
}

// after is a dial that takes so long.
func after(d time.Duration) func(context.Context, int) error {
	return func(ctx context.Context, _ int) error { return pause(ctx, d) }
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

var errRefused = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}

// inBubble runs the test with a relay in memory.
func inBubble(t *testing.T, test func(t *testing.T, w *way), opts ...relaytest.RelayOption) {
	synctest.Test(t, func(t *testing.T) {
		w := &way{relay: relaytest.NewRelay(append(opts, relaytest.InMemory(), relaytest.WithoutPolicy())...)}
		defer w.relay.Close()
		test(t, w)
	})
}

func delivered(outcomes []relayclient.Outcome) (n int) {
	for _, outcome := range outcomes {
		if outcome.Err == nil {
			n++
		}
	}
	return n
}

func alert(name string) relayclient.Push {
	push := relayclient.Push{Alert: failure(), Salt: salt}
	push.Alert.Name = name
	return push
}

// An HTTP/2 relay whose first connection takes requests and answers pings, and no request.
func swallower(t *testing.T) (client *relayclient.Client, connections *atomic.Int32) {
	config, trusting := http2Config(t)
	client, _ = newClientAt(t, "https://relay.sealpush.test", relayclient.WithTimeout(500*time.Millisecond))
	connections = new(atomic.Int32)
	relayclient.SetDial(client, func(context.Context, string, string) (net.Conn, error) {
		swallows := connections.Add(1) == 1
		conn, peer := net.Pipe()
		go overTLS(config, frames("", func(stream uint32) string {
			if swallows {
				return ""
			}
			return frame(frameHeaders, endHeaders|endStream, stream, status("202"))
		}))(peer)
		return conn, nil
	}, trusting)
	return client, connections
}

func TestBadConnectionDoesNotStarveABusyClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, connections := swallower(t)
		devices := sharedKeyDevices(1)
		var good atomic.Int32
		var sends sync.WaitGroup
		for i := range 25 {
			sends.Go(func() { good.Add(int32(delivered(client.Send(t.Context(), alert(fmt.Sprint("job ", i)), devices)))) })
			<-time.After(200 * time.Millisecond)
		}
		sends.Wait()
		if good.Load() != 22 || connections.Load() != 2 { // those at 0, 200 and 400 ms are on the bad one
			t.Errorf("%d of 25 delivered, on %d connections", good.Load(), connections.Load())
		}
		client.Close()
	})
}

func TestOneSendGoesOnAfterABadConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := swallower(t)
		if n := delivered(client.Send(t.Context(), alert("job"), sharedKeyDevices(300))); n != 200 {
			t.Errorf("%d of 300 delivered", n)
		}
		client.Close()
	})
}

// POSTs that are under way on a connection that is retired go on to their end.
func TestRetiredConnectionsEndTheirPOSTs(t *testing.T) {
	for _, opts := range [][]relaytest.RelayOption{nil, {relaytest.WithTLS()}} {
		inBubble(t, func(t *testing.T, w *way) {
			client := w.client(t, relayclient.WithTimeout(time.Second))
			w.relay.Script(1, relaytest.Answer{Delay: time.Hour})
			w.relay.Script(1, relaytest.Answer{Delay: 900 * time.Millisecond})
			var sends sync.WaitGroup
			sends.Go(func() {
				if n := delivered(client.Send(t.Context(), alert("lost"), sharedKeyDevices(1))); n != 0 {
					t.Error("delivered")
				}
			})
			<-time.After(500 * time.Millisecond) // the second one is answered 400 ms after the first timed out
			devices := sharedKeyDevices(1)
			wantAllDelivered(t, client.Send(t.Context(), alert("slow"), devices), devices)
			sends.Wait()
			synctest.Wait()
			if open, _ := w.connections(); open != 0 {
				t.Errorf("%d connections are left of the retired", open)
			}
			client.Close()
		}, opts...)
	}
}

func TestOutageLeavesNoTrace(t *testing.T) {
	for _, opts := range [][]relaytest.RelayOption{nil, {relaytest.WithTLS()}} {
		inBubble(t, func(t *testing.T, w *way) {
			var up atomic.Bool
			w.before = func(ctx context.Context, _ int) error {
				if !up.Load() {
					return errRefused
				}
				return pause(ctx, 20*time.Millisecond)
			}
			client := w.client(t, relayclient.WithTimeout(time.Second))
			for i := range 6 {
				outcome := client.Send(t.Context(), alert(fmt.Sprint("lost ", i)), sharedKeyDevices(1))[0]
				if !errors.Is(outcome.Err, syscall.ECONNREFUSED) {
					t.Errorf("%v", outcome.Err)
				}
			}
			up.Store(true)
			var good atomic.Int32
			var sends sync.WaitGroup
			start := time.Now()
			for i := range 3 {
				sends.Go(func() {
					good.Add(int32(delivered(client.Send(t.Context(), alert(fmt.Sprint("job ", i)), sharedKeyDevices(100)))))
				})
			}
			sends.Wait()
			if took := time.Since(start); good.Load() != 300 || took > 50*time.Millisecond {
				t.Errorf("%d of 300 delivered, after %v", good.Load(), took)
			}
			client.Close()
		}, opts...)
	}
}

func TestHundredConnectionsOfOneSend(t *testing.T) {
	for _, sends := range []int{1, 3} {
		inBubble(t, func(t *testing.T, w *way) {
			w.before = after(40 * time.Millisecond)
			w.relay.Script(relaytest.Always, relaytest.Answer{Delay: 10 * time.Millisecond})
			client := w.client(t)
			var running sync.WaitGroup
			for i := range sends {
				running.Go(func() {
					devices := sharedKeyDevices(300)
					start := time.Now()
					wantAllDelivered(t, client.Send(t.Context(), alert(fmt.Sprint("job ", i)), devices), devices)
					// Two dials, one after the other, and three rounds on a hundred connections.
					if took := time.Since(start); took > 110*time.Millisecond {
						t.Errorf("one of %d Sends took %v", sends, took)
					}
				})
			}
			running.Wait()
			if _, most := w.connections(); most > 100*sends || int(w.dials.Load()) > 100*sends {
				t.Errorf("%d connections open at once, %d dials, for %d Sends", most, w.dials.Load(), sends)
			}
			client.Close()
		})
	}
}

// Slow dials do not multiply.
func TestHundredConnectionsOfOneSendWithSlowDials(t *testing.T) {
	inBubble(t, func(t *testing.T, w *way) {
		w.before = func(ctx context.Context, n int) error {
			if n > 1 {
				return pause(ctx, 4*time.Second)
			}
			return nil
		}
		w.relay.Script(relaytest.Always, relaytest.Answer{Delay: 6 * time.Second})
		client := w.client(t)
		devices := sharedKeyDevices(100)
		wantAllDelivered(t, client.Send(t.Context(), alert("job"), devices), devices)
		if n := w.dials.Load(); n > 100 {
			t.Errorf("%d dials", n)
		}
		client.Close()
	})
}

func TestColdStartOverHTTP2MakesOneConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, w *way) {
		w.before = after(300 * time.Millisecond)
		client := w.client(t)
		devices := sharedKeyDevices(50)
		w.relay.Script(50, relaytest.Answer{Delay: time.Second})
		start := time.Now()
		wantAllDelivered(t, client.Send(t.Context(), alert("job"), devices), devices)
		if took := time.Since(start); took != 1300*time.Millisecond || w.dials.Load() != 1 {
			t.Errorf("took %v and %d connections, want all at once on one", took, w.dials.Load())
		}
		client.Close()
	}, relaytest.WithTLS())
}

// A POST must not go out on a connection that the relay may be closing.
func TestIdleConnections(t *testing.T) {
	tests := []struct {
		announced string
		idle      time.Duration
		reused    bool
	}{
		{"", 999 * time.Millisecond, true},
		{"", 1001 * time.Millisecond, false},
		{"timeout=5", 3999 * time.Millisecond, true},
		{"timeout=5, max=100", 4001 * time.Millisecond, false},
		{"max=9,Timeout=5", 3999 * time.Millisecond, true},
		{"timeout=600", 59 * time.Second, true},
		{"timeout=600", 61 * time.Second, false},
		{"timeout=1", 0, false},
		{"timeout=0", 0, false},
		{"timeout=-3", 999 * time.Millisecond, true},
		{"timeout=x", 1001 * time.Millisecond, false},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.announced, " ", tt.idle), func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *way) {
				client := w.client(t)
				devices := sharedKeyDevices(1)
				header := http.Header{}
				if tt.announced != "" {
					header.Set("Keep-Alive", tt.announced)
				}
				w.relay.Script(2, relaytest.Answer{Status: 202, Header: header})
				wantAllDelivered(t, client.Send(t.Context(), alert("first"), devices), devices)
				<-time.After(tt.idle)
				synctest.Wait()
				if open, _ := w.connections(); (open == 1) != tt.reused {
					t.Errorf("%d connections are open", open)
				}
				wantAllDelivered(t, client.Send(t.Context(), alert("second"), devices), devices)
				if reused := w.dials.Load() == 1; reused != tt.reused {
					t.Errorf("%d connections", w.dials.Load())
				}
				client.Close()
			})
		})
	}
	t.Run("HTTP/2", func(t *testing.T) {
		inBubble(t, func(t *testing.T, w *way) {
			client := w.client(t)
			devices := sharedKeyDevices(3)
			for i, idle := range []time.Duration{0, 59 * time.Second, 61 * time.Second} {
				<-time.After(idle)
				wantAllDelivered(t, client.Send(t.Context(), alert(fmt.Sprint("job ", i)), devices), devices)
			}
			if n := w.dials.Load(); n != 2 {
				t.Errorf("%d connections, want a new one after 61 s only", n)
			}
			client.Close()
		}, relaytest.WithTLS())
	})
}

func TestNewConnectionsResumeTheirTLSSession(t *testing.T) {
	inBubble(t, func(t *testing.T, w *way) {
		client, _ := newClientAt(t, w.relay.URL)
		inner := w.relay.Client().Transport.(*http.Transport)
		var resumed []bool
		config := inner.TLSClientConfig.Clone()
		config.VerifyConnection = func(state tls.ConnectionState) error {
			resumed = append(resumed, state.DidResume)
			return nil
		}
		relayclient.SetDial(client, inner.DialContext, config)
		devices := sharedKeyDevices(1)
		for _, name := range []string{"first", "second"} {
			wantAllDelivered(t, client.Send(t.Context(), alert(name), devices), devices)
			<-time.After(2 * time.Minute)
		}
		if len(resumed) != 2 || resumed[0] || !resumed[1] {
			t.Errorf("resumed: %v", resumed)
		}
		client.Close()
	}, relaytest.WithTLS())
}

// A page is not lost because the relay is away for less than the patience.
func TestRelayComesBackWithinThePatience(t *testing.T) {
	for _, patience := range []time.Duration{0, 2 * time.Second, time.Minute} {
		inBubble(t, func(t *testing.T, w *way) {
			var opts []relayclient.Option
			if patience > 0 {
				opts = append(opts, relayclient.WithPatience(patience))
			} else {
				patience = relayclient.DefaultTimeout
			}
			back := time.Now().Add(patience * 8 / 10)
			w.before = func(context.Context, int) error {
				if time.Now().Before(back) {
					return errRefused
				}
				return nil
			}
			client := w.client(t, opts...)
			devices := sharedKeyDevices(150)
			wantAllDelivered(t, client.Send(t.Context(), alert("job"), devices), devices)
			if late := time.Since(back); late > time.Second {
				t.Errorf("found %v after it was back", late)
			}
			// One dial at a time, then those for the other 149.
			if n := int(w.dials.Load()) - 149; n > 10+int(patience/time.Second) {
				t.Errorf("%d dials while it was away for %v", n, patience*8/10)
			}
			client.Close()
		})
	}
}

// A dial that hangs, at an address that is dead or in a handshake that nobody answers, does not hold up the others.
func TestHangingDial(t *testing.T) {
	for _, opts := range [][]relaytest.RelayOption{nil, {relaytest.WithTLS()}} {
		inBubble(t, func(t *testing.T, w *way) {
			w.before = func(ctx context.Context, n int) error {
				if n == 1 {
					return pause(ctx, time.Hour)
				}
				return nil
			}
			client := w.client(t, relayclient.WithTimeout(2*time.Second))
			devices := sharedKeyDevices(100)
			start := time.Now()
			wantAllDelivered(t, client.Send(t.Context(), alert("job"), devices), devices)
			if took := time.Since(start); took != time.Second {
				t.Errorf("took %v", took)
			}
			client.Close()
		}, opts...)
	}
}

// The wait for a connection is one for the whole Send.
func TestPatienceEndsForAll(t *testing.T) {
	for _, tt := range []struct {
		name string
		dial func(context.Context, int) error
		want string
	}{
		{"refused", func(context.Context, int) error { return errRefused }, "connection refused"},
		{"hanging", after(time.Hour), "deadline exceeded"},
		{"no such name", func(context.Context, int) error {
			return &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "relay.sealpush.test", IsNotFound: true}}
		}, "no such host"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, w *way) {
				w.before = tt.dial
				client := w.client(t, relayclient.WithTimeout(2*time.Second), relayclient.WithPatience(7*time.Second))
				start := time.Now()
				for _, outcome := range client.Send(t.Context(), alert("job"), sharedKeyDevices(300)) {
					if !wantNoAnswer("no connection within 7s", tt.want)(outcome) {
						t.Fatalf("%+v", outcome)
					}
				}
				if took := time.Since(start); took != 7*time.Second {
					t.Errorf("took %v", took)
				}
				client.Close()
			})
		})
	}
}

// An answer starts the wait anew, so that two outages cost no page of a long Send.
func TestPatienceStartsAnewWithAnAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, w *way) {
		start := time.Now()
		w.before = func(context.Context, int) error {
			if away := time.Since(start); away < 4*time.Second || w.relay.Stats().Requests == 1 && away < 8*time.Second {
				return errRefused
			}
			return nil
		}
		w.relay.Script(1, relaytest.Answer{Status: 202, Header: http.Header{"Connection": {"close"}}})
		client := w.client(t, relayclient.WithPatience(5*time.Second), relayclient.WithMaxInFlight(1))
		devices := sharedKeyDevices(2)
		wantAllDelivered(t, client.Send(t.Context(), alert("job"), devices), devices)
		client.Close()
	})
}

// A relay that is slow to answer takes nothing from the patience.
func TestPatienceIsForConnectionsOnly(t *testing.T) {
	inBubble(t, func(t *testing.T, w *way) {
		w.before = func(_ context.Context, n int) error {
			if n > 1 {
				return syscall.EMFILE
			}
			return nil
		}
		w.relay.Script(relaytest.Always, relaytest.Answer{Delay: 800 * time.Millisecond})
		client := w.client(t, relayclient.WithTimeout(time.Second))
		devices := sharedKeyDevices(5) // 4 s on the one connection there is
		wantAllDelivered(t, client.Send(t.Context(), alert("job"), devices), devices)
		client.Close()
	})
}

func TestShortageOfDescriptors(t *testing.T) {
	inBubble(t, func(t *testing.T, w *way) {
		w.before = func(context.Context, int) error {
			if open, _ := w.connections(); open >= 56 {
				return &net.OpError{Op: "dial", Net: "tcp", Err: syscall.EMFILE}
			}
			return nil
		}
		w.relay.Script(relaytest.Always, relaytest.Answer{Delay: 10 * time.Millisecond})
		client := w.client(t)
		devices := sharedKeyDevices(100)
		for i := range 3 {
			wantAllDelivered(t, client.Send(t.Context(), alert(fmt.Sprint("job ", i)), devices), devices)
		}
		client.Close()
	})
}

func TestCertificateErrorEndsTheWait(t *testing.T) {
	inBubble(t, func(t *testing.T, w *way) {
		client, _ := newClientAt(t, w.relay.URL)
		relayclient.SetDial(client, w.relay.Client().Transport.(*http.Transport).DialContext, nil)
		start := time.Now()
		for _, outcome := range client.Send(t.Context(), alert("job"), sharedKeyDevices(200)) {
			var certificate *tls.CertificateVerificationError
			if !errors.As(outcome.Err, &certificate) {
				t.Fatalf("%v", outcome.Err)
			}
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("took %v", took)
		}
		client.Close()
	}, relaytest.WithTLS())
}

func TestContextEndsTheWaitForAConnection(t *testing.T) {
	inBubble(t, func(t *testing.T, w *way) {
		w.before = after(time.Hour)
		client := w.client(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		for _, outcome := range client.Send(ctx, alert("job"), sharedKeyDevices(150)) {
			if !errors.Is(outcome.Err, context.DeadlineExceeded) {
				t.Fatalf("%v", outcome.Err)
			}
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v", took)
		}
		// The dial that was under way is of use to the next alert, or ends with the client.
		client.Close()
	})
}

// A relay that answers before it has read the body, and closes, does not say so: another POST that is sent on the
// connection would vanish.
func TestEarlyAnswers(t *testing.T) {
	const answer = "HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"
	for name, then := range map[string]func(net.Conn){
		"and closes": hangUp,
		"and closes late": func(conn net.Conn) {
			conn.SetReadDeadline(time.Now().Add(time.Millisecond))
			listen(conn)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, _ := newClientAt(t, "http://relay.sealpush.test", relayclient.WithMaxInFlight(2))
				relayclient.SetDial(client, func(context.Context, string, string) (net.Conn, error) {
					conn, peer := net.Pipe()
					go func() {
						defer peer.Close()
						var b [1]byte
						for head := ""; !strings.HasSuffix(head, "\r\n\r\n"); head += string(b[:]) {
							if _, err := peer.Read(b[:]); err != nil {
								return
							}
						}
						peer.Write([]byte(answer))
						then(peer)
					}()
					return conn, nil
				}, nil)
				for _, outcome := range client.Send(t.Context(), alert("job"), sharedKeyDevices(60)) {
					if !wantStatus(404, "no")(outcome) {
						t.Fatalf("%+v", outcome)
					}
				}
				client.Close()
			})
		})
	}
}

// The answer counts where it arrives while the body is being written, and writing fails.
func TestAnswerWhileWritingFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := newClientAt(t, "http://relay.sealpush.test")
		relayclient.SetDial(client, func(context.Context, string, string) (net.Conn, error) {
			conn, peer := net.Pipe()
			go func() {
				go listen(peer)
				<-time.After(time.Second)
				peer.Write([]byte("HTTP/1.1 413 x\r\nContent-Length: 0\r\n\r\n"))
				peer.Close()
			}()
			return halfWriter{conn}, nil
		}, nil)
		if outcome := client.Send(t.Context(), alert("job"), sharedKeyDevices(1))[0]; !wantStatus(413)(outcome) {
			t.Errorf("%+v", outcome)
		}
		client.Close()
	})
}

// halfWriter is a connection whose other end stops reading.
type halfWriter struct{ net.Conn }

func (h halfWriter) Write(p []byte) (int, error) {
	n, err := h.Conn.Write(p[:len(p)/2])
	if err == nil {
		err = syscall.EPIPE
	}
	return n, err
}

// With a private authority and a client certificate, connections are kept as they are without.
func TestTLSConfig(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		relay := relaytest.NewUnstartedRelay(relaytest.WithoutPolicy())
		var connections atomic.Int32
		server := httptest.NewUnstartedServer(relay)
		server.EnableHTTP2 = http2
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		}
		server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
		server.StartTLS()
		config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		config.Certificates = server.TLS.Certificates // any will do

		client, _ := newClientAt(t, server.URL, relayclient.WithTLSConfig(config))
		devices := sharedKeyDevices(100)
		all := make(chan struct{})
		relay.Script(100, relaytest.Answer{Hold: all})
		go func() {
			if err := relay.WaitInFlight(t.Context(), 100); err == nil {
				close(all)
			}
		}()
		wantAllDelivered(t, client.Send(t.Context(), alert("first"), devices), devices)
		first := connections.Load()
		wantAllDelivered(t, client.Send(t.Context(), alert("second"), devices), devices)
		if again := connections.Load() - first; again != 0 {
			t.Errorf("HTTP/2 %v: %d connections, and %d for the second alert", http2, first, again)
		}
		client.Close()
		server.Close()
		relay.Close()
	}
	if _, err := relayclient.New("https://relay.example", relayclient.WithTLSConfig(nil)); err == nil {
		t.Error("a nil configuration was accepted")
	}
	if _, err := relayclient.New("https://relay.example", relayclient.WithTLSConfig(&tls.Config{}), relayclient.WithHTTPClient(&http.Client{})); err == nil {
		t.Error("a configuration for a client of one's own was accepted")
	}
}

func TestPatienceOption(t *testing.T) {
	for d, ok := range map[time.Duration]bool{-1: false, 0: false, 1: true, 9 * time.Minute: true, 9*time.Minute + 1: false} {
		if _, err := relayclient.New("https://relay.example", relayclient.WithPatience(d)); (err == nil) != ok {
			t.Errorf("%v: %v", d, err)
		}
	}
}

// Somebody waits for the result of a test.
func TestTestAlertWaitsThreeSeconds(t *testing.T) {
	inBubble(t, func(t *testing.T, w *way) {
		w.before = func(context.Context, int) error { return errRefused }
		client := w.client(t, relayclient.WithPatience(time.Minute))
		registry := registryFile(t, "")
		pairPhones(t, registry, 1)
		devices, err := registry.Devices(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		notifier, err := relayclient.NewNotifier(client, registry, "node-a")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		_, err = notifier.Test(t.Context(), devices[0].ID)
		if took := time.Since(start); took != 3*time.Second || !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("after %v: %v", took, err)
		}
		client.Close()
	})
}
