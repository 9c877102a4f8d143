package pushauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sealpush/sealpush/internal/clock"
	"github.com/sealpush/sealpush/internal/transport"
)

const (
	refreshMargin = 60 * time.Second // a token with less than this left is refreshed
	failureHold   = 5 * time.Second  // a failed fetch is not repeated for this long,
	refusedHold   = 60 * time.Second // and one with wrong credentials not for this long
	dropInterval  = 30 * time.Second // a refused token costs the token service one request in this time
)

// Source turns [Credentials] into a bearer token and keeps it: see [Source.Token]. Make one with [NewSource] and share
// it; a second Source for the same credentials fetches a second token.
//
// A Source is safe for concurrent use. It starts no goroutine of its own beyond a fetch that somebody waits for, so
// there is nothing to close. It prints redacted.
type Source struct {
	credentials Credentials
	endpoint    string
	client      *http.Client
	logger      *slog.Logger // nil for slog.Default

	cached atomic.Pointer[cachedToken] // written under mu, read without

	mu       sync.Mutex
	flight   *flight // the request under way, if any
	failure  error   // why the last fetch failed; nil after a success
	retryAt  clock.Deadline
	nextDrop clock.Deadline // from when on Invalidate may drop a token again
}

// cachedToken is immutable but for accepted.
type cachedToken struct {
	token    Token
	stale    clock.Deadline // from when on it is to be refreshed
	dead     clock.Deadline // from when on it is no use
	proven   clock.Deadline // from when on a 401 may be the token's age, not the relay's mood
	accepted atomic.Bool    // a relay took it
}

// Option changes how a [Source] works. It is a plain value.
type Option func(*Source) error

// WithHTTPClient sets the client that calls the token service, instead of one that gives up dead
// connections soon. It is copied; the copy follows no redirects, which would carry the client secret elsewhere.
func WithHTTPClient(client *http.Client) Option {
	return func(s *Source) error {
		if client == nil {
			return errors.New("pushauth: HTTP client is nil")
		}
		s.client = client
		return nil
	}
}

// WithLogger sets the logger, instead of whatever [slog.Default] is when there is something to log.
func WithLogger(logger *slog.Logger) Option {
	return func(s *Source) error {
		if logger == nil {
			return errors.New("pushauth: logger is nil")
		}
		s.logger = logger
		return nil
	}
}

// NewSource returns a Source for the credentials. It makes no request: the first [Source.Token] does.
//
// The token URL must be http or https and have a host; a trailing slash and a path are fine, user info, a query and a
// fragment are not. Plain http is for a service on the same machine: it shows the client secret to everyone on the way.
func NewSource(credentials Credentials, opts ...Option) (*Source, error) {
	endpoint, err := credentials.endpoint()
	if err != nil {
		return nil, err
	}
	s := &Source{credentials: credentials, endpoint: endpoint.String(), client: &http.Client{Transport: transport.New()}}
	for _, opt := range opts {
		if err := opt(s); err != nil {
			return nil, err
		}
	}
	client := *s.client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	s.client = &client
	return s, nil
}

// Token returns the cached token, or fetches one when there is none or less than 60 s of it remain.
//
// A cached token costs neither a lock nor an allocation. However many callers wait for a fetch, the token service sees
// one request; it may take 10 s, retries of transient failures (no connection, 5xx) included, and is given up when
// the last caller has. ctx bounds this caller's wait only; with a cached token it is not looked at.
//
// A token lives as long as the answer's expires_in says (a number or a numeric string), or its own exp claim if that
// ends first. One that says neither, or is over on arrival, serves those who wait for it and no others.
//
// When a fetch fails, an old token that still lives is returned. Otherwise the error is a [TokenError], matching
// [ErrInvalidClient] for wrong credentials, or wraps ctx.Err() when the caller gave up. For 5 s after a failure, 60 s
// after a 401, or as long as a Retry-After in between asks, no request is made: the old token or a [BackoffError] is
// returned at once.
func (s *Source) Token(ctx context.Context) (Token, error) {
	if c := s.cached.Load(); c != nil && !c.stale.Reached() {
		return c.token, nil
	}
	return s.refresh(ctx)
}

func (s *Source) refresh(ctx context.Context) (Token, error) {
	if s.client == nil {
		return Token{}, errors.New("pushauth: this Source was not made by NewSource")
	}
	if err := ctx.Err(); err != nil {
		return Token{}, gaveUp(err)
	}
	s.mu.Lock()
	if c := s.cached.Load(); c != nil && !c.stale.Reached() {
		s.mu.Unlock()
		return c.token, nil
	}
	if s.failure != nil && !s.retryAt.Reached() {
		err := &BackoffError{RetryAt: s.retryAt.Wall(), Err: s.failure}
		s.mu.Unlock()
		return s.orOld(err)
	}
	f := s.flight
	if f == nil {
		f = s.takeOff(ctx)
	}
	f.waiting++
	s.mu.Unlock()

	select {
	case <-f.landed:
	case <-ctx.Done():
		s.leave(f)
		return Token{}, gaveUp(ctx.Err())
	}
	if f.err != nil {
		return s.orOld(f.err)
	}
	return f.token, nil
}

// orOld returns the old token while it lives, and err otherwise.
func (s *Source) orOld(err error) (Token, error) {
	if c := s.cached.Load(); c != nil && !c.dead.Reached() {
		return c.token, nil
	}
	return Token{}, err
}

func gaveUp(err error) error { return fmt.Errorf("pushauth: gave up waiting for a token: %w", err) }

// Invalidate drops t, so that the next [Source.Token] fetches anew. Call it when a relay refuses t; [Transport] does.
//
// It does nothing when t is not the cached token (somebody else has dropped it already), nor within 30 s of the last
// drop: a relay that refuses every token must not turn each call into a request to the token service.
func (s *Source) Invalidate(t Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.cached.Load(); c == nil || c.token.Value != t.Value || !s.nextDrop.Reached() {
		return
	}
	s.cached.Store(nil)
	s.nextDrop = clock.NewDeadline(time.Now(), dropInterval)
}

// refused is Invalidate for a token that a relay answered 401 to. A token younger than 30 s that no relay ever took
// is kept, for another one would fare no better: thus a relay that always answers 401 costs one fetch per 30 s.
func (s *Source) refused(t Token) {
	c := s.cached.Load()
	if c != nil && c.token.Value == t.Value && !c.accepted.Load() && !c.proven.Reached() {
		return
	}
	s.Invalidate(t)
}

// accepted notes that a relay took t.
func (s *Source) accepted(t Token) {
	c := s.cached.Load()
	if c != nil && c.token.Value == t.Value && !c.accepted.Load() {
		c.accepted.Store(true)
	}
}

func (s *Source) log() *slog.Logger {
	if s.logger != nil {
		return s.logger
	}
	return slog.Default()
}

// String names the client and nothing else.
func (s *Source) String() string {
	return fmt.Sprintf("pushauth.Source{ClientID: %q}", s.credentials.ClientID)
}

// Format implements [fmt.Formatter]: every verb prints what String returns.
func (s *Source) Format(f fmt.State, _ rune) { io.WriteString(f, s.String()) }

// LogValue implements [slog.LogValuer].
func (s *Source) LogValue() slog.Value { return slog.StringValue(s.String()) }
