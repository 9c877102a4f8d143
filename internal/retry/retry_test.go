package retry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func respond(code int, header http.Header) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: header, Body: http.NoBody}, nil
	}
}

func TestDo(t *testing.T) {
	broken := errors.New("connection refused")
	fail := func() (*http.Response, error) { return nil, broken }
	tests := []struct {
		name    string
		tries   []func() (*http.Response, error) // the last one again and again
		final   func(error) bool
		timeout time.Duration
		want    int // tries
		status  int // 0 for an error
		took    time.Duration
	}{
		{name: "at once", tries: []func() (*http.Response, error){respond(200, nil)}, want: 1, status: 200},
		{name: "their fault", tries: []func() (*http.Response, error){respond(503, nil), fail, respond(200, nil)}, want: 3, status: 200, took: 750 * time.Millisecond},
		{name: "our fault", tries: []func() (*http.Response, error){respond(400, nil)}, want: 1, status: 400},
		{name: "down", tries: []func() (*http.Response, error){respond(500, nil)}, want: 4, status: 500, took: 1750 * time.Millisecond},
		{name: "unreachable", tries: []func() (*http.Response, error){fail}, want: 4, took: 1750 * time.Millisecond},
		{name: "final", tries: []func() (*http.Response, error){fail}, final: func(err error) bool { return errors.Is(err, broken) }, want: 1},
		{name: "slow down", tries: []func() (*http.Response, error){respond(429, nil)}, want: 1, status: 429},
		{name: "come back later", tries: []func() (*http.Response, error){respond(503, http.Header{"Retry-After": {"1"}})}, want: 1, status: 503},
		{name: "out of time", tries: []func() (*http.Response, error){fail}, timeout: 500 * time.Millisecond, want: 2, took: 500 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if tt.timeout != 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.timeout)
					defer cancel()
				}
				tries := 0
				client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
					if body, err := io.ReadAll(r.Body); err != nil || string(body) != "{}" {
						t.Errorf("try %d: body %q, error %v", tries, body, err)
					}
					tries++
					return tt.tries[min(tries, len(tt.tries))-1]()
				})}
				start := time.Now()
				resp, err := Do(ctx, client, "POST", "https://service.example/", []byte("{}"), tt.final)
				if tries != tt.want || time.Since(start) != tt.took {
					t.Errorf("%d tries in %v, want %d in %v", tries, time.Since(start), tt.want, tt.took)
				}
				switch {
				case tt.status != 0 && (err != nil || resp.StatusCode != tt.status):
					t.Errorf("answer %v, error %v", resp, err)
				case tt.status == 0 && !strings.Contains(err.Error(), broken.Error()):
					t.Errorf("error lost its cause: %v", err)
				}
			})
		})
	}
}

// The words of a status line are the server's own, and could be anything.
func TestErrorDoesNotQuoteTheStatusLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		client := &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 503, Status: "503 hunter2", Body: http.NoBody}, nil
		})}
		_, err := Do(ctx, client, "POST", "https://service.example/", []byte("{}"), nil)
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "503 Service Unavailable") {
			t.Errorf("got %v", err)
		}
	})
}
