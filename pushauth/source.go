package pushauth

import (
	"context"
	"errors"
	"fmt"
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
	dropInterval  = 30 * time.Second // refused tokens cost the token service one request in this time
)

// Source turns [Credentials] into a bearer token and keeps it: see [Source.Token]. Make one with [NewSource] and share
// it; a second Source for the same credentials fetches a second token.
//
// A Source is safe for concurrent use. It starts no goroutine of its own beyond a fetch that somebody waits for, so
// there is nothing to close.
type Source struct {
	config
	credentials Credentials
	endpoint    string

	cached atomic.Pointer[cachedToken] // written under mu, read without

	mu       sync.Mutex
	request  *request // under way, if any
	failure  error    // why the last fetch failed; nil after a success
	retryAt  clock.Deadline
	nextDrop clock.Deadline // before this, a refused token leads to no fetch
}

// cachedToken is immutable.
type cachedToken struct {
	token Token
	stale clock.Deadline // when to refresh it
	dead  clock.Deadline // when it expires
}

// config is what the options set.
type config struct {
	client *http.Client
	logger *slog.Logger // nil for slog.Default
}

// Option changes how a [Source] works.
type Option func(*config) error

// WithHTTPClient sets the client that calls the token service, instead of one that drops a dead connection within
// seconds. It is copied; the copy follows no redirects, which would carry the client secret elsewhere.
func WithHTTPClient(client *http.Client) Option {
	return func(c *config) error {
		if client == nil {
			return errors.New("pushauth: WithHTTPClient: the client is nil")
		}
		c.client = client
		return nil
	}
}

// WithLogger sets the logger. The default, and nil, is what [slog.Default] returns at the time of each line.
func WithLogger(logger *slog.Logger) Option {
	return func(c *config) error {
		c.logger = logger
		return nil
	}
}

// NewSource returns a Source for the credentials. It makes no request: the first [Source.Token] does.
//
// The token URL must be http or https and have a host; a trailing slash and a path are fine, user info, a query and a
// fragment are not. Plain http is for a service on the same machine: it shows the client secret to everyone on the way.
func NewSource(credentials Credentials, opts ...Option) (*Source, error) {
	credentials, endpoint, err := credentials.cleaned()
	if err != nil {
		return nil, err
	}
	s := &Source{credentials: credentials, endpoint: endpoint.String(), config: config{client: &http.Client{Transport: transport.New()}}}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("pushauth: an option is nil")
		}
		if err := opt(&s.config); err != nil {
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
// one request; it may take 10 s, retries of transient failures (no connection, 5xx) included, and is cancelled when no
// caller waits for it any more. ctx bounds this caller's wait only; it does not matter when the token is cached. A nil
// ctx is [context.Background].
//
// A token lives as long as the answer's expires_in says (a number or a numeric string), or its own exp claim if that
// ends first. A token with neither, or one that has expired on arrival, is returned to the callers that wait for it and
// is not cached.
//
// When a fetch fails, an old token that is still valid is returned. Otherwise the error is a [TokenError], matching
// [ErrInvalidClient] for wrong credentials, or wraps ctx.Err() when the caller gave up. For 5 s after a failure, 60 s
// after a 401, or as long as a Retry-After in between asks, no request is made: the old token or a [BackoffError] is
// returned at once.
func (s *Source) Token(ctx context.Context) (Token, error) {
	if c := s.cached.Load(); c != nil && !c.stale.Reached() {
		return c.token, nil
	}
	return s.refresh(ctx, Token{})
}

// errNoOther says that there is no other token than the refused one, nor one to be fetched now.
var errNoOther = errors.New("pushauth: a refused token has led to a fetch a moment ago")

// refresh returns a token other than the refused one, which is the zero Token when there was none: the cached one, or
// that of the request under way, or of a new one. If a refused token has led to a request within dropInterval, there is
// no new one, and the error is errNoOther.
func (s *Source) refresh(ctx context.Context, refused Token) (Token, error) {
	if s.client == nil {
		return Token{}, errors.New("pushauth: this Source was not made by NewSource")
	}
	if ctx == nil {
		ctx = context.Background()
	}
	if err := ctx.Err(); err != nil {
		return Token{}, gaveUp(err)
	}
	s.mu.Lock()
	if c := s.cached.Load(); c != nil && !c.stale.Reached() && !c.token.Value.Equal(refused.Value) {
		s.mu.Unlock()
		return c.token, nil
	}
	r := s.request
	if r == nil {
		if s.failure != nil && !s.retryAt.Reached() {
			err := &BackoffError{RetryAt: s.retryAt.Wall(), Err: s.failure}
			s.mu.Unlock()
			return s.orOld(err, refused)
		}
		if !refused.Value.IsZero() {
			if !s.nextDrop.Reached() {
				s.mu.Unlock()
				return Token{}, errNoOther
			}
			s.nextDrop = clock.NewDeadline(time.Now(), dropInterval)
		}
		r = s.start(ctx)
	}
	r.waiting++
	s.mu.Unlock()

	select {
	case <-r.done:
	case <-ctx.Done():
		s.leave(r)
		return Token{}, gaveUp(ctx.Err())
	}
	switch {
	case r.err != nil:
		return s.orOld(r.err, refused)
	case r.token.Value.Equal(refused.Value):
		return Token{}, errNoOther
	}
	return r.token, nil
}

// orOld returns the old token while it is valid and was not refused, and err otherwise.
func (s *Source) orOld(err error, refused Token) (Token, error) {
	if c := s.cached.Load(); c != nil && !c.dead.Reached() && !c.token.Value.Equal(refused.Value) {
		return c.token, nil
	}
	return Token{}, err
}

func gaveUp(err error) error { return fmt.Errorf("pushauth: gave up waiting for a token: %w", err) }

// Invalidate drops t, so that the next [Source.Token] fetches anew. Call it when a relay refuses t and you do not use
// [Transport].
//
// It does nothing when t is not the cached token (somebody else has dropped it already), nor within 30 s of the last
// fetch that a refused token led to: a relay that refuses every token must not turn each call into a request to the
// token service.
func (s *Source) Invalidate(t Token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.cached.Load(); c == nil || !c.token.Value.Equal(t.Value) || !s.nextDrop.Reached() {
		return
	}
	s.cached.Store(nil)
	s.nextDrop = clock.NewDeadline(time.Now(), dropInterval)
}

func (s *Source) log() *slog.Logger {
	if s.logger != nil {
		return s.logger
	}
	return slog.Default()
}
