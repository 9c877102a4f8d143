package conformance

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"

	"github.com/sealpush/sealpush/internal/answer"
)

// A session is one run of the suite against one target. Checks run one after the other; what several of them need is
// got once.
type session struct {
	target  Target
	client  *http.Client
	close   func()
	limiter *rate.Limiter
	waited  time.Duration // by the check at hand, because of 429s
	quiet   bool          // the latest request had no answer, or 429 to the end
	status  int           // of the latest answer; 0 if there was none
	failed  atomic.Bool   // some request of the check at hand was answered 5xx, or not in time
	begun   map[Part]bool

	limited *limitedDevice // see exhaust
	bridge  bridgeState
}

func newSession(target Target) (*session, error) {
	target, err := target.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &session{target: target, close: func() {}, begun: map[Part]bool{}, limiter: rate.NewLimiter(rate.Inf, 1)}
	if target.Pace > 0 {
		s.limiter.SetLimit(rate.Every(target.Pace))
	}
	client := http.Client{}
	if target.Client != nil {
		client = *target.Client
	} else {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = burstSize // the burst's connections serve the rest
		client.Transport = transport
		s.close = transport.CloseIdleConnections
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	s.client = &client
	return s, nil
}

// A request is one request of a check.
type request struct {
	method, url string
	bearer      string // "" for no Authorization header
	body        []byte // sent as JSON unless nil
}

// A response is what came back.
type response struct {
	status int
	header http.Header
	body   []byte // the first 64 KiB
}

const maxResponse = 64 << 10

// String is the status and the start of the body on one printable line. The body may quote secrets: see redact.
func (r response) String() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", r.status, answer.Line(string(r.body))))
}

// send makes a request at the target's pace, and again after the time that a 429 asks for.
func (s *session) send(ctx context.Context, req request) (response, error) {
	for {
		r, err := s.sendOnce(ctx, req)
		if err != nil || r.status != http.StatusTooManyRequests {
			return r, err
		}
		wait := cmp.Or(answer.RetryAfter(r.header, time.Now()), time.Second)
		if s.waited += wait; s.waited > s.target.MaxWait {
			s.quiet = true
			return r, unknown("rate limited: answered %v; more than %v of waiting would be needed", r, s.target.MaxWait)
		}
		if err := sleep(ctx, wait); err != nil {
			return r, err
		}
	}
}

// sendOnce makes a request at the target's pace and returns a 429 like any answer.
func (s *session) sendOnce(ctx context.Context, req request) (response, error) {
	if err := s.limiter.Wait(ctx); err != nil {
		return response{}, err
	}
	r, err := s.exchange(ctx, req)
	s.quiet, s.status = err != nil, r.status
	return r, err
}

// exchange is safe for concurrent use.
func (s *session) exchange(ctx context.Context, req request) (response, error) {
	ctx, cancel := context.WithTimeout(ctx, s.target.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, req.method, req.url, bytes.NewReader(req.body))
	if err != nil {
		return response{}, errors.New("the target's URL makes no request") // the error would quote it
	}
	if req.body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if req.bearer != "" {
		r.Header.Set("Authorization", "Bearer "+req.bearer)
	}
	r.Header.Set("User-Agent", "sealpush-conformance")
	res, err := s.client.Do(r)
	var body []byte
	if err == nil {
		defer res.Body.Close()
		body, err = io.ReadAll(io.LimitReader(res.Body, maxResponse))
	}
	if errors.Is(err, context.DeadlineExceeded) || err == nil && res.StatusCode/100 == 5 {
		s.failed.Store(true)
	}
	if err != nil {
		return response{}, s.noAnswer(err)
	}
	return response{res.StatusCode, res.Header, body}, nil
}

// noAnswer keeps what net/http wraps its errors in, method and URL, out.
func (s *session) noAnswer(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("no answer within %v", s.target.Timeout)
	}
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return fmt.Errorf("no answer: %w", err)
}

// redact takes out of a finding what a server may have quoted.
func (s *session) redact(text string) string {
	secrets := []string{s.target.Bridge.ClientSecret.Reveal()}
	if s.bridge.token != nil {
		secrets = append(secrets, s.bridge.token.answer.AccessToken)
	}
	for _, raw := range []string{s.target.URL, s.target.Bridge.TokenURL, s.target.Bridge.RelayURL} {
		if u, err := url.Parse(raw); err == nil {
			secrets = append(secrets, answer.URLSecrets(u)...)
		}
	}
	text = answer.Line(text, secrets...)
	if len(text) > maxDetail {
		text = strings.ToValidUTF8(text[:maxDetail], "") + "…"
	}
	return text
}

// maxDetail bounds what a report says about one check, in bytes.
const maxDetail = 240

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
