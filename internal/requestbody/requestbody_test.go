package requestbody_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/internal/requestbody"
)

// A slowWriter takes a second to set a deadline.
type slowWriter struct {
	http.ResponseWriter
	set atomic.Bool
}

func (w *slowWriter) SetReadDeadline(time.Time) error {
	<-time.After(time.Second)
	w.set.Store(true)
	return nil
}

// endsAfter is a body that ends after some time.
type endsAfter time.Duration

func (d endsAfter) Read([]byte) (int, error) {
	<-time.After(time.Duration(d))
	return 0, io.EOF
}

// The writer is not used after Read: one of HTTP/2 whose handler has returned ends the process with a panic.
func TestReadLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slowWriter{ResponseWriter: httptest.NewRecorder()}
		_, err := requestbody.Read(w, httptest.NewRequest("POST", "/", endsAfter(requestbody.Timeout+time.Millisecond)), 100)
		if err != requestbody.ErrTimeout || !w.set.Load() {
			t.Errorf("error %v; the deadline was set before the return: %v", err, w.set.Load())
		}
	})
}
