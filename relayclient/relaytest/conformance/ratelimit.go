package conformance

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/sealpush/sealpush/internal/answer"
)

// patience is how many posts for one device the suite makes to meet its limit.
// The hosted relay's is 60.
const patience = 100

func rateChecks() []Check {
	const perDevice = "Rate limiting per device token."
	return []Check{
		{
			Name: "rate-limit-429", Part: SealedRelay, Level: Must, Source: relayProtocol,
			Sentence: "429: Rate limited.",
			Does:     "Posts up to 100 alerts for one device, until one is not accepted. Wants 429 for that one. Where the limit is, and whether a device that does not exist has one, is the relay's business: not stated if none is met.",
			run: aboutLimit(func(_ context.Context, _ *session, refusal response) error {
				return wantStatus(http.StatusTooManyRequests)(refusal)
			}),
		},
		{
			Name: "rate-limit-retry-after", Part: SealedRelay, Level: Open, Source: hostedRelay,
			Sentence: "429 with Retry-After.",
			Does:     "Looks at the answer to the alert that was over the limit. Wants a Retry-After of seconds, or of a date to come (RFC 9110, section 10.2.3). A daemon does not retry; its owner reads it in the log.",
			run: aboutLimit(func(_ context.Context, _ *session, refusal response) error {
				if answer.RetryAfter(refusal.header, time.Now()) == 0 {
					return fmt.Errorf("answered %d with Retry-After %q", refusal.status, refusal.header.Get("Retry-After"))
				}
				return nil
			}),
		},
		{
			Name: "rate-limit-per-device", Part: SealedRelay, Level: Open, Source: relayProtocol,
			Sentence: perDevice,
			Does:     "Posts an alert for another device right after one device has met its limit. Wants it accepted. Open: a relay may limit who asks as well as who is asked for, and from outside the one looks like the other.",
			run: aboutLimit(func(ctx context.Context, s *session, _ response) error {
				r, err := s.sendOnce(ctx, request{method: http.MethodPost, url: s.target.URL, body: newEnvelope().encode()})
				if err != nil {
					return err
				}
				return r.accepted()
			}),
		},
	}
}

// A limitedDevice is what became of a device that was posted to without a pause.
type limitedDevice struct {
	posts   int
	refusal response // the first answer that is not an acceptance
	err     error
}

// aboutLimit makes a check of the first answer that is over a device's limit.
func aboutLimit(expect func(ctx context.Context, s *session, refusal response) error) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		if s.limited == nil {
			limited := s.exhaust(ctx)
			s.limited = &limited
		}
		if s.limited.err != nil {
			return fmt.Errorf("post %d for one device: %w", s.limited.posts, s.limited.err)
		}
		if s.limited.refusal.status == 0 {
			return unknown("no limit was met in %d posts for one device", s.limited.posts)
		}
		return expect(ctx, s, s.limited.refusal)
	}
}

func (s *session) exhaust(ctx context.Context) limitedDevice {
	device := randomHex(64)
	for i := range patience {
		r, err := s.sendOnce(ctx, request{method: http.MethodPost, url: s.target.URL, body: newEnvelope().with("device", device).encode()})
		if err != nil {
			return limitedDevice{posts: i + 1, err: err}
		}
		if !r.took() {
			return limitedDevice{posts: i + 1, refusal: r}
		}
	}
	return limitedDevice{posts: patience}
}
