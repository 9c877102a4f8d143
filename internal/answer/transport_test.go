package answer_test

import (
	"io"
	"net/http"
	"testing"
	"testing/iotest"

	"github.com/sealpush/sealpush/internal/answer"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestTransport(t *testing.T) {
	closed := false
	body := struct {
		io.Reader
		io.Closer
	}{iotest.ErrReader(io.ErrNoProgress), closer(func() { closed = true })}
	client := http.Client{Transport: answer.Transport{Base: roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 101, Header: http.Header{"Location": {"%zz"}}, Body: body}, nil
	})}}
	resp, err := client.Get("http://relay.sealpush.test")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); len(text) != 0 || err != nil || !closed {
		t.Errorf("body %q, %v; the connection closed: %v", text, err, closed)
	}

	client.Transport = answer.Transport{Base: roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 302, Header: http.Header{"Location": {"%zz"}}, Body: http.NoBody}, nil
	})}
	resp, err = client.Get("http://relay.sealpush.test")
	if err != nil || resp.StatusCode != 302 {
		t.Errorf("a redirect nowhere: %v, %v", resp, err)
	}
	for _, base := range []roundTripper{
		func(*http.Request) (*http.Response, error) { return nil, nil },
		func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF },
	} {
		client.Transport = answer.Transport{Base: base}
		if _, err := client.Get("http://relay.sealpush.test"); err == nil {
			t.Error("no answer and no error")
		}
	}
}

// An error can say where a redirect leads, and gives nothing away.
func TestLeadsTo(t *testing.T) {
	tests := []struct {
		name, location, want string
		status               int
	}{
		{"elsewhere", "https://new.sealpush.test:8443/v2/", "https://new.sealpush.test:8443/v2/", 301},
		{"credentials, query and fragment", "https://bob:hunter2@new.sealpush.test/v2?key=abc#x", "https://new.sealpush.test/v2", 307},
		{"a path", "/v2", "http://relay.sealpush.test/v2", 308},
		{"another scheme", "//new.sealpush.test/v2", "http://new.sealpush.test/v2", 302},
		{"a secret in the path", "https://new.sealpush.test/capability%2D1/", "https://new.sealpush.test/[redacted]/", 301},
		{"line ends", "https://new.sealpush.test/a%0ab", "https://new.sealpush.test/a%0ab", 301},
		{"no redirect", "https://new.sealpush.test/", "", 201},
		{"nowhere", "%zz", "", 302},
		{"no host", "https:///v2", "", 302},
		{"no web page", "mailto:bob@sealpush.test", "", 302},
		{"nothing", "", "", 302},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			base := roundTripper(func(req *http.Request) (*http.Response, error) {
				header := http.Header{"Location": {tt.location}}
				return &http.Response{StatusCode: tt.status, Header: header, Body: http.NoBody, Request: req}, nil
			})
			ownClient := http.Client{Transport: answer.Transport{Base: base}}
			notFollowing := http.Client{Transport: base, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
			for name, client := range map[string]http.Client{"Transport": ownClient, "ErrUseLastResponse": notFollowing} {
				resp, err := client.Get("http://relay.sealpush.test/v1")
				if err != nil {
					if name == "Transport" {
						t.Error(err)
					}
					continue
				}
				if got := answer.LeadsTo(resp, "capability-1"); got != tt.want {
					t.Errorf("%s: got %q, want %q", name, got, tt.want)
				}
			}
		})
	}
}

type closer func()

func (f closer) Close() error { f(); return nil }
