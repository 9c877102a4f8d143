package conformance

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/sealpush/sealpush/internal/answer"
)

// burstSize is the most that one alert is posted at once.
const burstSize = 100

func burstChecks() []Check {
	return []Check{{
		Name: "burst-100", Part: SealedRelay, Level: Must, Source: relayProtocol,
		Sentence: "A relay sees a burst of up to one request per paired device (at most 100 connections per alert, the client's connector limit); size admission control for that shape rather than for a serial stream.",
		Does:     "Posts one alert for 100 devices at once. Wants all accepted. A burst that meets 429 is made once more after Retry-After, since what the suite has sent before may count.",
		run: func(ctx context.Context, s *session) error {
			wait, err := s.burst(ctx)
			if wait == 0 {
				return err
			}
			if s.waited += wait; s.waited > s.target.MaxWait {
				return fmt.Errorf("%w, to be waited out for %v", err, wait)
			}
			if err := sleep(ctx, wait); err != nil {
				return err
			}
			_, err = s.burst(ctx)
			return err
		},
	}}
}

// burst returns how long to wait if the first thing in its way is a 429.
func (s *session) burst(ctx context.Context) (wait time.Duration, err error) {
	envelopes := make([]envelope, burstSize)
	alert := newEnvelope()
	for i := range envelopes {
		envelopes[i] = alert.with("device", randomHex(64)).with("ciphertext", ciphertextOf(300))
	}
	answers, errs := s.atOnce(ctx, envelopes)
	refused := 0
	for i, r := range answers {
		problem := errs[i]
		if problem == nil {
			problem = r.accepted()
		}
		if problem == nil {
			continue
		}
		if refused++; refused > 1 {
			continue
		}
		err = problem
		if r.status == http.StatusTooManyRequests {
			wait = max(answer.RetryAfter(r.header, time.Now()), time.Second)
		}
	}
	if err != nil {
		err = fmt.Errorf("%d of %d envelopes were not accepted, the first of them: %w", refused, burstSize, err)
	}
	return wait, err
}
