package answer_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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

// quiet is an error that does not say why.
type quiet struct{ cause error }

func (quiet) Error() string   { return "no answer" }
func (q quiet) Unwrap() error { return q.cause }

// A program that logs each error of a chain logs no secret.
func TestNoErrorWithinQuotesASecret(t *testing.T) {
	dns := &net.DNSError{Err: "no such host", Name: "relay.example", IsNotFound: true}
	quoting := func(cause error) error { return fmt.Errorf("cannot send Bearer hunter2-token: %w", cause) }
	tests := map[string]error{
		"at the top":      quoting(dns),
		"one step down":   &url.Error{Op: "Post", URL: "https://relay.example/push", Err: quoting(dns)},
		"behind a silent": quiet{quoting(dns)},
		"one of several":  errors.Join(dns, quoting(io.EOF)),
		"everywhere":      quoting(quoting(errors.Join(quoting(dns), quoting(quoting(io.EOF))))),
	}
	for name, cause := range tests {
		t.Run(name, func(t *testing.T) {
			err := answer.Error(cause, "hunter2-token")
			if found, ok := errors.AsType[*net.DNSError](err); !ok || found != dns {
				t.Errorf("errors.As does not find the cause in %v", err)
			}
			each(err, func(err error) {
				for _, verb := range []string{"%v", "%+v", "%#v", "%q", "%d"} {
					if text := fmt.Sprintf(verb, err); strings.Contains(text, "hunter2") {
						t.Errorf("%T printed with %s: %s", err, verb, text)
					}
				}
			})
			var any interface{ Error() string }
			if !errors.As(err, &any) || strings.Contains(any.Error(), "hunter2") {
				t.Errorf("errors.As finds %v", any)
			}
		})
	}
}

// each calls do with each error in err's tree.
func each(err error, do func(error)) {
	do(err)
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		if cause := e.Unwrap(); cause != nil {
			each(cause, do)
		}
	case interface{ Unwrap() []error }:
		for _, cause := range e.Unwrap() {
			each(cause, do)
		}
	}
}

func gzipped(text string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	io.WriteString(w, text)
	w.Close()
	return out.String()
}

func deflated(text string, bare bool) string {
	var out bytes.Buffer
	var w io.WriteCloser = zlib.NewWriter(&out)
	if bare {
		w, _ = flate.NewWriter(&out, flate.BestCompression)
	}
	io.WriteString(w, text)
	w.Close()
	return out.String()
}

func TestRead(t *testing.T) {
	const most = 1000
	tests := []struct {
		name, coding, body string
		want, problem      string
	}{
		{"plain", "", "hello", "hello", ""},
		{"identity", "identity", "hello", "hello", ""},
		{"empty", "", "", "", ""},
		{"byte order mark", "", "\uFEFFhello", "hello", ""},
		{"gzip", "gzip", gzipped("hello"), "hello", ""},
		{"gzip with a byte order mark", "GZIP", gzipped("\uFEFFhello"), "hello", ""},
		{"x-gzip", "x-gzip", gzipped("hello"), "hello", ""},
		{"deflate", "deflate", deflated("hello", false), "hello", ""},
		{"bare deflate", "deflate", deflated("hello", true), "hello", ""},
		{"empty, said to be gzip", "gzip", "", "", ""},
		{"longest", "", strings.Repeat("x", most), strings.Repeat("x", most), ""},
		{"too long", "", strings.Repeat("x", most+1), strings.Repeat("x", most), "larger than 1000 bytes"},
		{"bomb", "gzip", gzipped(strings.Repeat("x", 10<<20)), strings.Repeat("x", most), "larger than 1000 bytes"},
		{"bomb of empty parts", "gzip", strings.Repeat(gzipped(""), 1<<16), "", "unexpected EOF"},
		{"no gzip", "gzip", "hello, this is text", "", "invalid header"},
		{"cut short", "gzip", strings.TrimSuffix(gzipped("hello"), "\x00"), "hello", "unexpected EOF"},
		{"unknown", "br", "hello", "", `compressed as "br"`},
		{"twice", "gzip, gzip", gzipped(gzipped("hello")), "", "unasked"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			header := http.Header{}
			if tt.coding != "" {
				header.Set("Content-Encoding", tt.coding)
			}
			resp := &http.Response{StatusCode: 200, Header: header, Body: io.NopCloser(strings.NewReader(tt.body))}
			body, err := answer.Read(resp, most)
			if string(body) != tt.want || (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("read %.20q (%d bytes), error %v", body, len(body), err)
			}
		})
	}
}

func TestReadOfAProtocolSwitch(t *testing.T) {
	for _, status := range []int{101, 199} {
		closed := 0
		resp := &http.Response{StatusCode: status, Body: closeCounter{&closed}}
		if body, err := answer.Read(resp, 100); len(body) != 0 || err != nil || closed != 1 {
			t.Errorf("%d: read %q, error %v, closed %d times", status, body, err, closed)
		}
	}
}

type closeCounter struct{ n *int }

func (closeCounter) Read([]byte) (int, error) { panic("read") }
func (c closeCounter) Close() error           { *c.n++; return nil }
