package pushauth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sealpush/sealpush/internal/clock"
)

// flight is one request to the token service and those who wait for it. It belongs to no single caller: it ends when
// the answer is there, after fetchTimeout, or when nobody waits any more.
type flight struct {
	waiting int // under Source.mu
	cancel  context.CancelFunc

	landed chan struct{} // closed when token and err are set
	token  Token
	err    error
}

// takeOff starts a flight. s.mu is held.
func (s *Source) takeOff(ctx context.Context) *flight {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), fetchTimeout, errFetchTimeout)
	f := &flight{cancel: cancel, landed: make(chan struct{})}
	s.flight = f
	go func() {
		defer cancel()
		f.token, f.err = s.fetch(ctx)
		s.land(f)
		close(f.landed)
	}()
	return f
}

var errFetchTimeout = fmt.Errorf("no token within %v: %w", fetchTimeout, context.DeadlineExceeded)

// leave is for a caller who gives up; the last one calls the flight off. The next caller starts a new one.
func (s *Source) leave(f *flight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.waiting--
	if f.waiting == 0 && s.flight == f {
		s.flight = nil
		f.cancel()
	}
}

// land records how the flight ended.
func (s *Source) land(f *flight) {
	s.mu.Lock()
	calledOff := s.flight != f
	if !calledOff {
		s.flight = nil
	}
	switch {
	case f.err == nil:
		s.failure = nil
		s.keep(f.token)
	case !calledOff: // else the token service is not to blame
		s.failure, s.retryAt = f.err, clock.NewDeadline(time.Now(), holdFor(f.err))
	}
	s.mu.Unlock()
	if !calledOff {
		s.report(f) // without the lock, for the caller's handler may want a token
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
		stale:  clock.NewDeadline(now, life-refreshMargin+1),
		dead:   clock.NewDeadline(now, life),
		proven: clock.NewDeadline(now, dropInterval),
	})
}

// report logs what happened, except for a failure that the callers are told of.
func (s *Source) report(f *flight) {
	client := slog.String("client_id", s.credentials.ClientID)
	if f.err != nil {
		if c := s.cached.Load(); c != nil && !c.dead.Reached() {
			s.log().Warn("push token not refreshed, using the old one",
				client, "expires", c.token.Expiry, "retry_in", holdFor(f.err), "error", f.err)
		}
		return
	}
	life := time.Until(f.token.Expiry)
	if life <= refreshMargin { // it is fetched for every call, which would fill the log
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
