package bridge

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sealpush/sealpush/internal/answer"
	"github.com/sealpush/sealpush/internal/retry"
	"github.com/sealpush/sealpush/pushauth"
)

const maxAnswer = 64 << 10 // bytes that are read of an answer

// reply is what the relay says to everything.
type reply struct {
	OK      *bool          `json:"ok"`
	Error   string         `json:"error"`
	Results []DeviceResult `json:"results"`

	status int // of the answer
}

// call is one call to the relay.
type call struct {
	method, path string
	body         any
	registers    bool     // registers or unregisters: such calls are repeated after transient failures, and made one after the other
	secrets      []string // that the answer might echo
}

func (r call) String() string { return r.method + " " + r.path }

// do makes the call within callTimeout. acted says whether the relay may have done what it was asked to. The error is a
// *RelayError.
func (c *Client) do(ctx context.Context, r call) (said reply, acted bool, err error) {
	if ctx == nil {
		ctx = context.Background()
	}
	if c.observer == nil {
		return c.exchange(ctx, r)
	}
	start := time.Now()
	said, acted, err = c.exchange(ctx, r)
	c.observeCall(ctx, r, start, said, err)
	return said, acted, err
}

// exchange is do without an observer.
func (c *Client) exchange(ctx context.Context, r call) (said reply, acted bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var lost atomic.Bool
	resp, err := c.send(context.WithValue(ctx, lostKey{}, &lost), r)
	if err != nil {
		err = answer.Error(err, append(r.secrets, c.config.ClientSecret.Reveal())...)
		return reply{}, lost.Load(), &RelayError{Call: r.String(), Err: err}
	}
	defer resp.Body.Close()
	secrets := append(r.secrets, bearer(resp), c.config.ClientSecret.Reveal())
	acted = lost.Load() || resp.StatusCode/100 != 4

	body, err := answer.Read(resp, maxAnswer)
	if err == nil {
		said, err = parseReply(body, resp.StatusCode)
	}
	failed := &RelayError{
		Call:       r.String(),
		StatusCode: resp.StatusCode,
		LeadsTo:    answer.LeadsTo(resp, secrets...),
		Message:    answer.Line(head(cmp.Or(said.Error, string(body))), secrets...),
	}
	switch {
	case resp.StatusCode/100 != 2, said.OK != nil && !*said.OK:
		return reply{}, acted, failed
	case err != nil && r.registers: // which is repeated without harm
		failed.Err = fmt.Errorf("its answer cannot be read: %w", answer.Error(err, secrets...))
		return reply{}, acted, failed
	case err != nil:
		c.log().WarnContext(ctx, "push relay accepted a notification, but its answer cannot be read",
			"status", resp.StatusCode, "error", answer.Error(err, secrets...), "answer", failed.Message)
	}
	for i := range said.Results {
		said.Results[i].scrub(secrets)
	}
	said.status = resp.StatusCode
	return said, acted, nil
}

// parseReply reads an answer. A relay may say nothing, and members of a type that we do not know; an answer that is not
// a JSON object is not a relay's.
func parseReply(body []byte, status int) (said reply, err error) {
	if len(body) == 0 && status == http.StatusNoContent {
		return reply{}, nil
	}
	if !json.Valid(body) || !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return reply{}, errors.New("it is no JSON object; is url right?")
	}
	json.Unmarshal(body, &said) // what is of another type stays empty
	return said, nil
}

func (c *Client) send(ctx context.Context, r call) (*http.Response, error) {
	endpoint, err := url.JoinPath(c.config.URL, r.path)
	if err != nil {
		return nil, err
	}
	body, err := encode(r.body)
	if err != nil {
		return nil, err
	}
	if r.registers {
		// A relay may read, change and write its list of devices: of two calls at once it would keep one.
		select {
		case c.registering <- struct{}{}:
			defer func() { <-c.registering }()
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for another registration: %w", ctx.Err())
		}
		return retry.Do(ctx, c.http, r.method, endpoint, body, isTokenError)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	answer.NoCompression(req.Header)
	return c.http.Do(req)
}

// encode returns v as JSON, in which <, > and & are as they are: relays do not escape them either.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// lostKey is for an *atomic.Bool in the context of a request: set when a request got no answer and may have reached the
// relay.
type lostKey struct{}

// lossRecorder is a transport that sets the flag of lostKey. It is the base of the transport that adds the bearer
// token, because of a request that is sent twice only one attempt may be lost.
type lossRecorder struct {
	base http.RoundTripper // nil for http.DefaultTransport
}

// RoundTrip implements [http.RoundTripper].
func (t lossRecorder) RoundTrip(req *http.Request) (*http.Response, error) {
	base := cmp.Or(t.base, http.DefaultTransport)
	lost, ok := req.Context().Value(lostKey{}).(*atomic.Bool)
	if !ok {
		return base.RoundTrip(req)
	}
	// A relay does nothing before it has the whole header. The caller's own transport may not support tracing.
	var traced, connected, wrote atomic.Bool
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GetConn:      func(string) { traced.Store(true) },
		GotConn:      func(httptrace.GotConnInfo) { connected.Store(true) },
		WroteHeaders: func() { wrote.Store(true) },
	})
	resp, err := base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		interrupted := connected.Load() && ctx.Err() != nil // perhaps while it was being written
		if wrote.Load() || interrupted || !traced.Load() && !isDialError(err) {
			lost.Store(true)
		}
	}
	return resp, err
}

// CloseIdleConnections passes the call of [http.Client.CloseIdleConnections] on.
func (t lossRecorder) CloseIdleConnections() {
	if base, ok := cmp.Or(t.base, http.DefaultTransport).(interface{ CloseIdleConnections() }); ok {
		base.CloseIdleConnections()
	}
}

func isDialError(err error) bool {
	failed, ok := errors.AsType[*net.OpError](err)
	return ok && failed.Op == "dial"
}

// isTokenError says whether the token service is to blame, which has been retried as often as it should be.
func isTokenError(err error) bool {
	_, ok := errors.AsType[*pushauth.TokenError](err)
	return ok
}

// scrub makes what the relay says of a device safe to print.
func (d *DeviceResult) scrub(secrets []string) {
	for _, text := range []*string{&d.Platform, &d.Status, &d.Reason} {
		*text = answer.Line(head(*text), secrets...)
	}
}

// head cuts a text to what is longer than answer.Line keeps and short enough to search for secrets.
func head(text string) string { return text[:min(len(text), 4*answer.MaxText)] }

// bearer is the token that the answered request carried.
func bearer(resp *http.Response) string {
	if resp.Request == nil {
		return ""
	}
	return strings.TrimPrefix(resp.Request.Header.Get("Authorization"), "Bearer ")
}
