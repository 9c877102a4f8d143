package relayclient

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sealpush/sealpush/internal/clock"
)

// A conn is one connection to the relay.
type conn struct {
	http   *http.ClientConn
	socket *countedConn
	shared bool // HTTP/2: POSTs share it

	// The rest is guarded by pool.mu.
	generation int
	quota      *quota // of the Send that used it last
	inUse      int    // POSTs
	answered   bool   // at least once
	refused    bool   // the latest answer was not 2xx
	idleLimit  time.Duration
	idleUntil  clock.Deadline // of HTTP/1.1
	settled    clock.Deadline // of HTTP/2: what comes from then on is not about a POST that has ended
}

// An unsentError is the error of a POST that the relay has not seen: no byte of it was written, or the relay declared
// its stream unprocessed (RFC 9113, section 8.7). It may be sent again.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

// roundTrip sends req. The error is an unsentError where that is certain.
func (c *conn) roundTrip(req *http.Request) (*http.Response, error) {
	var begun func() bool // a byte may have been written
	if c.shared {
		var wroteHeaders atomic.Bool
		trace := &httptrace.ClientTrace{WroteHeaders: func() { wroteHeaders.Store(true) }}
		req = req.WithContext(httptrace.WithClientTrace(req.Context(), trace))
		begun = wroteHeaders.Load
	} else {
		before := c.socket.written.Load()
		begun = func() bool { return c.socket.written.Load() != before }
	}
	resp, err := c.http.RoundTrip(req)
	if err != nil {
		if req.Context().Err() != nil {
			return nil, err // which it might still be
		}
		if !begun() || isUnprocessed(err) {
			err = &unsentError{err}
		}
		return nil, err
	}
	if resp.StatusCode == http.StatusSwitchingProtocols { // its body is the connection itself, and heeds no context
		resp.Body.Close()
		resp.Body = http.NoBody
	}
	return resp, nil
}

// isUnprocessed reports whether the relay has said over HTTP/2 that it did not look at a request.
func isUnprocessed(err error) bool {
	const refusedStream = 7 // RFC 9113, section 7
	if stream, ok := errors.AsType[streamError](err); ok {
		return stream.Code == refusedStream
	}
	// A stream above the last one of a GOAWAY. net/http does not export this error, and words it in two ways.
	return strings.HasPrefix(err.Error(), "http2: Transport received ") && strings.Contains(err.Error(), "GOAWAY")
}

// A streamError is what net/http makes of an HTTP/2 stream that was reset: it fills any struct with these fields.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return e.Cause.Error() }

// width is how many POSTs the connection takes at once, as far as is known.
func (c *conn) width() int {
	if !c.shared {
		return 1
	}
	return max(1, c.http.Available()+c.http.InFlight())
}

// reusable reports whether another POST may be sent on an HTTP/1.1 connection. After a refusal it is not: the relay may
// have refused before it read the body, and be closing.
func (c *conn) reusable() bool {
	return !c.refused && c.idleLimit > 0 && c.http.Available() > 0
}

// isClosing reports whether an HTTP/1.1 connection that was idle is being closed, or is of no use for another reason.
func (c *conn) isClosing() bool {
	return c.http.Err() != nil || c.answered && hasNews(c.socket.Conn)
}

// idleLimitOf returns for how long a connection may be idle and still be used, from an answer that came on it. A server
// that closes it at that moment does not see the POST, which may not be repeated; so it must be shorter than the
// server's own limit, which Keep-Alive announces (RFC 2068, section 19.7.1).
func idleLimitOf(header http.Header) time.Duration {
	for _, field := range header["Keep-Alive"] {
		for param := range strings.SplitSeq(field, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
			seconds, err := strconv.ParseUint(strings.TrimSpace(value), 10, 31)
			if strings.EqualFold(strings.TrimSpace(name), "timeout") && err == nil {
				return min(max(time.Duration(seconds)*time.Second-time.Second, 0), idleLongest)
			}
		}
	}
	return idleDefault
}

// An answerBody releases its connection when it is closed.
type answerBody struct {
	io.ReadCloser
	sending *sending
	conn    *conn
	post    context.Context
}

// Close is called once.
func (b *answerBody) Close() error {
	err := b.ReadCloser.Close()
	p := b.sending.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retireIfLate(b.conn, b.post)
	p.release(b.sending, b.conn, b.conn.reusable())
	return err
}

// maxAlert is more than a TLS alert takes, with which a connection is closed, and less than any POST, in bytes.
const maxAlert = 128

// A countedConn counts the bytes of POSTs that are written to it, over HTTP/1.1. A write that fails part way is no
// error: the relay may have answered and closed before it had read everything, and its answer, or the end of the
// connection, is there to be read.
type countedConn struct {
	net.Conn
	written atomic.Int64
}

func (c *countedConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if len(p) > maxAlert {
		c.written.Add(int64(n))
	}
	if n > 0 {
		return len(p), nil
	}
	return n, err
}
