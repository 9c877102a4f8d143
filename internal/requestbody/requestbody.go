// Package requestbody reads what a client posts, within a size and within a time.
package requestbody

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Timeout is how long a body may take to arrive. A server whose ReadTimeout is shorter ends it sooner.
const Timeout = 10 * time.Second

// ErrTimeout is returned when the body did not arrive within [Timeout], or within the server's own limit.
var ErrTimeout = fmt.Errorf("body took longer than %v", Timeout)

// Read returns at most limit bytes of the body. A caller that wants to know whether there were more asks for one more.
// The error is [ErrTimeout], or what reading met with.
//
// The server's own read deadline is left as it is: a handler that set one of its own would lift the server's. When the
// time is up, the deadline moves to now, which fails the read, and stays there. The caller then answers
// [http.StatusRequestTimeout] after [CloseAfter], and the server closes the connection.
//
// A ResponseWriter that cannot set deadlines, such as that of a test's recorder, leaves slow bodies to the server's own
// timeouts.
func Read(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	conn := http.NewResponseController(w)
	expired := make(chan struct{})
	timer := time.AfterFunc(Timeout, func() {
		defer close(expired)
		conn.SetReadDeadline(time.Now())
	})
	body, err := io.ReadAll(io.LimitReader(r.Body, limit))
	if !timer.Stop() {
		<-expired // w must not be used after the handler: one of HTTP/2 would panic
		return body, ErrTimeout
	}
	var timeout interface{ Timeout() bool }
	if errors.As(err, &timeout) && timeout.Timeout() {
		return body, ErrTimeout
	}
	return body, err
}

// CloseAfter asks the server to close the connection after the answer. Over HTTP/1.1 the server sends the answer at once,
// and then waits for up to 256 KiB of what is left of the body, no longer than its own ReadTimeout. An HTTP/2 connection,
// which other requests share, stays.
func CloseAfter(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
}

// A Replay is a request body that was read before. It ends as reading ended.
type Replay struct {
	Body []byte
	Err  error // nil for io.EOF
}

// Read hands out Body, and then Err.
func (b *Replay) Read(p []byte) (int, error) {
	if len(b.Body) > 0 {
		n := copy(p, b.Body)
		b.Body = b.Body[n:]
		return n, nil
	}
	if b.Err != nil {
		return 0, b.Err
	}
	return 0, io.EOF
}

// Close does nothing.
func (b *Replay) Close() error { return nil }
