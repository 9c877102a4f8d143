package answer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/internal/answer"
)

func TestError(t *testing.T) {
	if err := answer.Error(nil, "hunter2"); err != nil {
		t.Errorf("nil became %v", err)
	}
	plain := errors.New("connection refused")
	if err := answer.Error(plain, "hunter2"); err != plain {
		t.Errorf("%v was wrapped for nothing", err)
	}
	cause := fmt.Errorf("malformed answer \"hunter2\r\n%s: %w", strings.Repeat(".", 5000), context.DeadlineExceeded)
	err := answer.Error(cause, "hunter2")
	if text := err.Error(); len(text) > answer.MaxText || strings.Contains(text, "hunter2") || strings.Contains(text, "\n") {
		t.Errorf("got %q", text)
	}
	if !errors.Is(err, context.DeadlineExceeded) || !(&url.Error{Err: err}).Timeout() {
		t.Error("it is no timeout any more")
	}
}

func TestBodyOfAProtocolSwitch(t *testing.T) {
	for status, want := range map[int]bool{101: false, 199: false, 200: true, 500: true} {
		resp := &http.Response{StatusCode: status, Body: closeCounter{new(int)}}
		if got := answer.Body(resp) == resp.Body; got != want {
			t.Errorf("%d: read %v, want %v", status, got, want)
		}
		if closed := *resp.Body.(closeCounter).n == 1; closed == want {
			t.Errorf("%d: closed %v", status, closed)
		}
	}
}

type closeCounter struct{ n *int }

func (closeCounter) Read([]byte) (int, error) { panic("read") }
func (c closeCounter) Close() error           { *c.n++; return nil }
