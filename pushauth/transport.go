package pushauth

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/sealpush/sealpush/internal/answer"
)

// Transport is an [http.RoundTripper] that sends each request with a bearer token from Source.
//
// When the answer is 401 it gets another token and sends the request once more, never twice and never with the same
// token. The other token is one that another call has fetched meanwhile, or a new one. If a 401 has already led to a
// fetch within the last 30 s, the 401 is the answer: so a relay that always answers 401 costs the token service one
// request in 30 s. The 401 is also the answer when the second attempt fails, and when the body cannot be sent again
// because the request has no GetBody; in the latter case the next request gets a new token.
//
// The token is for the relay that the request names. A redirect that an [http.Client] follows to another scheme or host
// is refused with an error, before the token goes there.
//
// A Transport is safe for concurrent use; do not change its fields once it is in use.
type Transport struct {
	Source *Source           // required
	Base   http.RoundTripper // nil for [http.DefaultTransport]
}

var errNoSource = errors.New("pushauth: Transport has no Source")

// RoundTrip implements [http.RoundTripper]. It does not modify req and closes its body on every path. Besides Base's
// errors it returns those of [Source.Token].
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	token, err := t.token(req)
	if err != nil {
		if req.Body != nil {
			req.Body.Close()
		}
		return nil, err
	}
	resp, err := t.send(req, req.Body, token)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	return t.again(req, token, resp)
}

// again sends a request once more that was answered 401, with another token if there is one.
func (t *Transport) again(req *http.Request, refused Token, first *http.Response) (*http.Response, error) {
	body, ok := rewind(req)
	if !ok {
		t.Source.Invalidate(refused)
		return first, nil
	}
	sent := false
	defer func() {
		if !sent && body != nil {
			body.Close()
		}
	}()
	keep(first)
	token, err := t.Source.refresh(req.Context(), refused)
	if errors.Is(err, errNoOther) {
		return first, nil
	}
	if err != nil {
		first.Body.Close()
		return nil, fmt.Errorf("%w (asked because the relay answered 401)", err)
	}
	sent = true
	second, err := t.send(req, body, token)
	if err != nil {
		return first, nil
	}
	first.Body.Close()
	return second, nil
}

// keep reads the body of an answer that may be needed later, so that its connection can be used meanwhile. Of a long
// one it reads the start.
func keep(resp *http.Response) {
	head, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if len(head) < maxAnswer {
		resp.Body.Close()
		resp.Body = io.NopCloser(bytes.NewReader(head))
		return
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
}

// CloseIdleConnections passes the call of [http.Client.CloseIdleConnections] on to Base.
func (t *Transport) CloseIdleConnections() {
	if base, ok := t.base().(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

func (t *Transport) base() http.RoundTripper {
	if t.Base == nil {
		return http.DefaultTransport
	}
	return t.Base
}

func (t *Transport) token(req *http.Request) (Token, error) {
	if t.Source == nil {
		return Token{}, errNoSource
	}
	if err := checkRedirect(req); err != nil {
		return Token{}, err
	}
	return t.Source.Token(req.Context())
}

func (t *Transport) send(req *http.Request, body io.ReadCloser, token Token) (*http.Response, error) {
	clone := req.Clone(req.Context())
	clone.Body = body
	if clone.Header == nil {
		clone.Header = http.Header{}
	}
	clone.Header.Set("Authorization", "Bearer "+token.Value.Reveal())
	resp, err := t.base().RoundTrip(clone)
	if err != nil {
		return nil, answer.Error(err, token.Value.Reveal())
	}
	if _, err := url.Parse(resp.Header.Get("Location")); err != nil {
		resp.Header.Del("Location") // an http.Client would quote the Location header in its error, with whatever the relay put there
	}
	return resp, nil
}

// rewind returns the request's body once more; ok is false when that is not possible.
func rewind(req *http.Request) (body io.ReadCloser, ok bool) {
	if req.Body == nil || req.Body == http.NoBody {
		return req.Body, true
	}
	if req.GetBody == nil {
		return nil, false
	}
	body, err := req.GetBody()
	return body, err == nil
}

// checkRedirect refuses a request that a redirect sent to another origin than the first one's. An http.Client drops the
// headers it was given there, but it cannot drop what a transport adds.
func checkRedirect(req *http.Request) error {
	first := req
	for first.Response != nil && first.Response.Request != nil {
		first = first.Response.Request
	}
	if first.URL.Scheme != req.URL.Scheme || first.URL.Host != req.URL.Host {
		return errors.New("pushauth: the relay redirected to another origin, which must not see the token")
	}
	return nil
}
