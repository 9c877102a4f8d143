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

type closer func()

func (f closer) Close() error { f(); return nil }
