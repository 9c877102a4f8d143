package relayclient_test

import (
	"bufio"
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// A hostile relay is what it does to one connection, which is closed when it returns.
type hostile func(net.Conn)

// answers reads a request, then writes each piece, then does the rest.
func answers(then hostile, pieces ...string) hostile {
	return func(conn net.Conn) {
		req, err := http.ReadRequest(bufio.NewReader(conn))
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		for _, piece := range pieces {
			io.WriteString(conn, piece)
		}
		then(conn)
	}
}

// afterHello reads the start of a TLS handshake, then writes.
func afterHello(text string) hostile {
	return func(conn net.Conn) {
		conn.Read(make([]byte, 16<<10))
		io.WriteString(conn, text)
		listen(conn)
	}
}

func hangUp(net.Conn) {}

// listen never answers.
func listen(conn net.Conn) { io.Copy(io.Discard, conn) }

// drip writes a byte a second, for ever.
func drip(conn net.Conn) {
	for {
		if _, err := io.WriteString(conn, "x"); err != nil {
			return
		}
		<-time.After(time.Second)
	}
}

// pour writes without end.
func pour(text string) hostile {
	return func(conn net.Conn) {
		for text := strings.Repeat(text, 100); ; {
			if _, err := io.WriteString(conn, text); err != nil {
				return
			}
		}
	}
}

const noLength = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\n"

func wantStatus(status int, parts ...string) func(relayclient.Outcome) bool {
	return func(o relayclient.Outcome) bool {
		var answer *relayclient.StatusError
		return o.Status == status && errors.As(o.Err, &answer) && answer.StatusCode == status &&
			len(answer.Body) <= 512 && containsAll(o.Err.Error(), parts...)
	}
}

func wantNoAnswer(parts ...string) func(relayclient.Outcome) bool {
	return func(o relayclient.Outcome) bool {
		var transport *relayclient.TransportError
		return o.Status == 0 && errors.As(o.Err, &transport) && containsAll(o.Err.Error(), parts...)
	}
}

func accepted(o relayclient.Outcome) bool { return o.Status == 202 && o.Err == nil }

func containsAll(text string, parts ...string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

func TestHostileRelays(t *testing.T) {
	const limit = relayclient.DefaultTimeout
	tests := []struct {
		name  string
		relay hostile
		takes time.Duration // at most
		want  func(relayclient.Outcome) bool
	}{
		{"hangs up at once", hangUp, limit, wantNoAnswer("no connection within 10s")},
		{"reads nothing", func(net.Conn) { <-time.After(limit + time.Second) }, limit, wantNoAnswer("no answer within 10s")},
		{"never answers", listen, limit, wantNoAnswer("no answer within 10s")},
		{"hangs up after the request", answers(hangUp), 0, wantNoAnswer("EOF")},
		{"hangs up in the head", answers(hangUp, "HTTP/1.1 202 Acc"), 0, wantNoAnswer("EOF")},
		{"hangs up in the body", answers(hangUp, "HTTP/1.1 500 x\r\nContent-Length: 99\r\n\r\nhalf a "), 0, wantStatus(500, "half a")},
		{"hangs up in the body of a success", answers(hangUp, "HTTP/1.1 202 x\r\nContent-Length: 99\r\n\r\nhalf"), 0, accepted},
		{"a byte a second", answers(drip), limit, wantNoAnswer("no answer within 10s")},
		{"a byte of the head a second", answers(drip, "HTTP/1.1 202 Accepted\r\nX-Slow: "), limit, wantNoAnswer("no answer within 10s")},
		{"a byte of the body a second", answers(drip, noLength), limit, wantStatus(503, ": xxxxxx")},
		{"a byte of a success a second", answers(drip, "HTTP/1.1 202 Accepted\r\n\r\n"), limit, accepted},
		{"a head and no body", answers(listen, "HTTP/1.1 500 x\r\nContent-Length: 9\r\n\r\n"), limit, wantStatus(500)},
		{"a body without end", answers(pour("no "), noLength), 0, wantStatus(503, "no no no")},
		{"a gigabyte", answers(pour("0123456789"), "HTTP/1.1 500 x\r\nContent-Length: 1073741824\r\n\r\n"), 0, wantStatus(500)},
		{"a gigabyte of success", answers(pour("0123456789"), "HTTP/1.1 202 x\r\nContent-Length: 1073741824\r\n\r\n"), 0, accepted},
		{"a head without end", answers(pour("X-Y: z\r\n"), "HTTP/1.1 202 Accepted\r\n"), 0, wantNoAnswer("exceeded")},
		{"a line without end", answers(pour("z"), "HTTP/1.1 202 "), 0, wantNoAnswer("exceeded")},
		{"endless informational answers", answers(pour("HTTP/1.1 103 Early Hints\r\n\r\n")), 0, wantNoAnswer("exceeded")},
		{"informational answers, a success", answers(hangUp, "HTTP/1.1 100 x\r\n\r\nHTTP/1.1 102 x\r\n\r\nHTTP/1.1 202 x\r\n\r\n"), 0, accepted},
		{"informational answers alone", answers(listen, "HTTP/1.1 100 Continue\r\n\r\n"), limit, wantNoAnswer("no answer within 10s")},
		{"a change of protocol", answers(listen, "HTTP/1.1 101 x\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"), 0, wantStatus(101, "Switching")},
		{"a change of protocol, half", answers(listen, "HTTP/1.1 101 x\r\n\r\n"), 0, wantStatus(101)},
		{"compressed", answers(hangUp, "HTTP/1.1 500 x\r\nContent-Encoding: gzip\r\nContent-Length: 10\r\n\r\n\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"), 0, wantStatus(500)},
		{"a web page", answers(hangUp, noLength, "<html>\n<h1>502 Bad\tGateway</h1>\x1b[2J"), 0, wantStatus(503, "<html> <h1>502 Bad Gateway</h1>")},
		{"not HTTP", answers(hangUp, "220 mail.example ESMTP\r\n"), 0, wantNoAnswer("malformed HTTP")},
		{"status of four digits", answers(hangUp, "HTTP/1.1 2020 Accepted\r\n\r\n"), 0, wantNoAnswer("malformed")},
		{"status past 599", answers(hangUp, "HTTP/1.1 999 x\r\n\r\n"), 0, wantStatus(999, "answered 999")},
		{"absurd length", answers(hangUp, "HTTP/1.1 202 x\r\nContent-Length: 99999999999999999999\r\n\r\n"), 0, wantNoAnswer("Content-Length")},
		{"negative length", answers(hangUp, "HTTP/1.1 202 x\r\nContent-Length: -1\r\n\r\n"), 0, wantNoAnswer("Content-Length")},
		{"two lengths", answers(hangUp, "HTTP/1.1 202 x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"), 0, wantNoAnswer("Content-Length")},
		{"a chunk that is none", answers(hangUp, "HTTP/1.1 500 x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), 0, wantStatus(500)},
		{"absurd Retry-After", answers(hangUp, "HTTP/1.1 429 x\r\nRetry-After: 99999999999999999999\r\nContent-Length: 0\r\n\r\n"), 0, func(o relayclient.Outcome) bool {
			var answer *relayclient.StatusError
			return errors.As(o.Err, &answer) && answer.RetryAfter == 24*time.Hour && errors.Is(o.Err, relayclient.ErrRateLimited)
		}},
		{"a redirect nowhere", answers(hangUp, "HTTP/1.1 302 x\r\nLocation: http://[::1\r\nContent-Length: 0\r\n\r\n"), 0, wantStatus(302, "not followed")},
		{"a redirect to no host", answers(hangUp, "HTTP/1.1 308 x\r\nLocation: %zz\r\nContent-Length: 0\r\n\r\n"), 0, wantStatus(308, "not followed")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				survive(t, "http://relay.sealpush.test", tt.relay, new(atomic.Bool), tt.takes, tt.want)
			})
		})
	}
}

func TestHostileTLS(t *testing.T) {
	const patience = relayclient.DefaultTimeout
	tests := []struct {
		name  string
		relay hostile
		takes time.Duration // at most
		want  func(relayclient.Outcome) bool
	}{
		{"stalls", listen, patience, wantNoAnswer("TLS handshake timeout")},
		{"hangs up", hangUp, patience, wantNoAnswer("no connection within 10s")},
		{"speaks HTTP", afterHello("HTTP/1.1 400 Bad Request\r\n\r\n"), 0, wantNoAnswer("HTTP response to HTTPS client")},
		{"speaks nonsense", afterHello("nonsense that is long enough"), 0, wantNoAnswer("tls")},
		{"refuses", afterHello("\x15\x03\x03\x00\x02\x02\x28"), 0, wantNoAnswer("handshake failure")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				survive(t, "https://relay.sealpush.test", tt.relay, new(atomic.Bool), tt.takes, tt.want)
			})
		})
	}
	t.Run("has another's certificate", func(t *testing.T) {
		relay := relaytest.NewRelay(relaytest.WithTLS())
		defer relay.Close()
		client, _ := newClientAt(t, relay.URL)
		outcome := client.Send(t.Context(), relayclient.Push{Alert: failure(), Salt: salt}, sharedKeyDevices(1))[0]
		var unknown x509.UnknownAuthorityError
		if !errors.As(outcome.Err, &unknown) || !wantNoAnswer("certificate")(outcome) {
			t.Errorf("%+v", outcome)
		}
	})
}

// survive sends an alert to a hostile relay, then, when it has reformed, one to a
// good relay in its place. A goroutine that is left ends the test's bubble with a panic.
func survive(t *testing.T, url string, relay hostile, reformed *atomic.Bool, takes time.Duration, want func(relayclient.Outcome) bool) {
	good := relaytest.NewRelay(relaytest.InMemory())
	if strings.HasPrefix(url, "https:") {
		good.Close()
		good = relaytest.NewRelay(relaytest.InMemory(), relaytest.WithTLS())
	}
	defer good.Close()
	trusted := good.Client().Transport.(*http.Transport)
	var open atomic.Int32
	gone := make(chan struct{}) // closed when the hostile relay is
	client, log := newClientAt(t, url)
	relayclient.SetDial(client, func(ctx context.Context, network, address string) (net.Conn, error) {
		open.Add(1)
		if reformed.Load() {
			conn, err := trusted.DialContext(ctx, network, address)
			if err != nil {
				open.Add(-1)
				return nil, err
			}
			return countedConn(conn, &open), nil
		}
		conn, peer := net.Pipe()
		go func() {
			defer peer.Close()
			relay(peer)
		}()
		go func() {
			<-gone
			peer.Close()
		}()
		return countedConn(conn, &open), nil
	}, trusted.TLSClientConfig)

	devices := sharedKeyDevices(3)
	push := relayclient.Push{Alert: failure(), Salt: salt}
	start := time.Now()
	outcomes := client.Send(t.Context(), push, devices)
	if took := time.Since(start); took > takes+500*time.Millisecond {
		t.Errorf("took %v", took)
	}
	failed := 0
	for i, outcome := range outcomes {
		if !want(outcome) || outcome.DeviceID != devices[i].ID {
			t.Errorf("outcome %d: %d, %v", i, outcome.Status, outcome.Err)
		}
		if outcome.Err != nil {
			failed++
		}
	}
	if n := len(log.lines()); n != failed {
		t.Errorf("%d lines for %d failures: %q", n, failed, log.lines())
	}

	reformed.Store(true)
	if !strings.HasPrefix(url, "https:") {
		close(gone)
	} else {
		defer close(gone)
	}
	push.Alert.Name = "the next"
	wantAllDelivered(t, client.Send(t.Context(), push, devices), devices)
	client.Close()
	synctest.Wait()
	if n := open.Load(); n != 0 {
		t.Errorf("%d connections are left", n)
	}
	<-time.After(2 * time.Second) // for the hostile relay to see that nobody listens
}

// countedConn takes one off open when it is closed.
func countedConn(conn net.Conn, open *atomic.Int32) net.Conn {
	return closer{conn, sync.OnceFunc(func() { open.Add(-1) })}
}

type closer struct {
	net.Conn
	closed func()
}

func (c closer) Close() error {
	c.closed()
	return c.Conn.Close()
}
