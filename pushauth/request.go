package pushauth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sealpush/sealpush/internal/clock"
)

// request is a fetch under way and those who wait for it. It belongs to no single caller: it ends when the answer is
// there, after fetchTimeout, or when nobody waits any more.
type request struct {
	waiting int // under Source.mu
	cancel  context.CancelFunc

	done  chan struct{} // closed when token and err are set
	token Token
	err   error
}

// start starts a request. s.mu is held.
func (s *Source) start(ctx context.Context) *request {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), fetchTimeout, errFetchTimeout)
	r := &request{cancel: cancel, done: make(chan struct{})}
	s.request = r
	go func() {
		defer cancel()
		r.token, r.err = s.fetch(ctx)
		s.finish(r)
		close(r.done)
	}()
	return r
}

var errFetchTimeout = fmt.Errorf("no token within %v: %w", fetchTimeout, context.DeadlineExceeded)

// leave is for a caller who gives up; the last one cancels the request. The next caller starts a new one.
func (s *Source) leave(r *request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.waiting--
	if r.waiting == 0 && s.request == r {
		s.request = nil
		r.cancel()
	}
}

// finish records how the request ended.
func (s *Source) finish(r *request) {
	s.mu.Lock()
	cancelled := s.request != r
	if !cancelled {
		s.request = nil
	}
	switch {
	case r.err == nil:
		s.failure = nil
		s.keep(r.token)
	case !cancelled: // else the token service is not to blame
		s.failure, s.retryAt = r.err, clock.NewDeadline(time.Now(), holdFor(r.err))
	}
	s.mu.Unlock()
	if !cancelled {
		s.report(r) // without the lock, because the caller's log handler may itself ask for a token
	}
}

// keep caches a token that has life left. s.mu is held.
func (s *Source) keep(token Token) {
	now := time.Now()
	life := token.Expiry.Sub(now.Round(0))
	if token.Expiry.IsZero() || life <= 0 {
		return
	}
	s.cached.Store(&cachedToken{
		token: token,
		// "Until less than 60 s remain": at 60 s sharp it is still good.
		stale: clock.NewDeadline(now, life-refreshMargin+1),
		dead:  clock.NewDeadline(now, life),
	})
}

// report logs what happened, except for a failure that the callers are told of.
func (s *Source) report(r *request) {
	client := slog.String("client_id", s.credentials.ClientID)
	if r.err != nil {
		if c := s.cached.Load(); c != nil && !c.dead.Reached() {
			s.log().Warn("push token not refreshed, using the old one",
				client, "expires", c.token.Expiry, "retry_in", holdFor(r.err), "error", r.err)
		}
		return
	}
	life := time.Until(r.token.Expiry)
	if life <= refreshMargin { // one is fetched for every call, and a line for each would fill the log
		s.log().Debug("fetched push token, not cached", client)
		return
	}
	s.log().Info("fetched push token", client, "expires_in", life.Round(time.Second))
}

// holdFor is how long a failed fetch is not repeated.
func holdFor(err error) time.Duration {
	if errors.Is(err, ErrInvalidClient) {
		return refusedHold
	}
	if failed, ok := errors.AsType[*TokenError](err); ok {
		return min(max(failed.RetryAfter, failureHold), refusedHold)
	}
	return failureHold
}
