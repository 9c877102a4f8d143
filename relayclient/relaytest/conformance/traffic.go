package conformance

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/sealpush/sealpush/internal/answer"
)

func dedupChecks() []Check {
	const collapses = "Deduplication and coalescing on (device, collapseId): several nodes of a cluster may report the same alert; the relay collapses them without learning what the alert is about."
	const fresh = "Test alerts are the exception: each carries a fresh random id so a coalescing relay never swallows one."
	return []Check{
		{
			Name: "dedup-repeat", Part: SealedRelay, Level: Must, Source: relayProtocol, Sentence: collapses,
			Does: "Posts one envelope twice. Wants both accepted, and only the first handed to the push service. That shows in the outcomes of the hosted relay alone. Not stated if both are answered 410: the relay may try again what its push service has refused.",
			run: func(ctx context.Context, s *session) error {
				e := newEnvelope()
				return s.forwardsOne(ctx, e, e)
			},
		},
		{
			Name: "dedup-nodes", Part: SealedRelay, Level: Must, Source: relayProtocol, Sentence: collapses,
			Does: "Posts one alert as five nodes do, at once and each with a ciphertext of its own. Wants all accepted, and one handed to the push service, as dedup-repeat does.",
			run: func(ctx context.Context, s *session) error {
				envelopes := make([]envelope, 5)
				for i, e := 0, newEnvelope(); i < len(envelopes); i++ {
					envelopes[i] = e.with("ciphertext", ciphertextOf(300))
				}
				return s.forwardsOne(ctx, envelopes...)
			},
		},
		{
			Name: "dedup-other-device", Part: SealedRelay, Level: Must, Source: relayProtocol,
			Sentence: "The daemon sends one HTTP POST per (alert, device).",
			Does:     "Posts one collapse id for two devices. Wants both accepted, and both handed to the push service: forwarded, or answered 410.",
			run: func(ctx context.Context, s *session) error {
				e := newEnvelope()
				return s.forwardsBoth(ctx, e, e.with("device", randomHex(64)))
			},
		},
		{
			Name: "dedup-other-id", Part: SealedRelay, Level: Must, Source: relayProtocol, Sentence: fresh,
			Does: "Posts two collapse ids for one device, twice: ids that differ in the last digit, and in the first. Wants all accepted, and all handed to the push service: forwarded, or answered 410.",
			run: func(ctx context.Context, s *session) error {
				e, digits := newEnvelope(), randomHex(32)[1:]
				if err := s.forwardsBoth(ctx, e.with("collapseId", digits+"0"), e.with("collapseId", digits+"1")); err != nil {
					return err
				}
				e = newEnvelope()
				return s.forwardsBoth(ctx, e.with("collapseId", "0"+digits), e.with("collapseId", "1"+digits))
			},
		},
	}
}

// Outcomes of the hosted relay. The relay protocol has no such words, so that a relay may use others, which say nothing
// to the suite.
const (
	forwarded = "forwarded" // to the push service
	digested  = "digested"  // the device's quota is used up
	gone      = "410"       // not an outcome: handed to the push service, which knows no such device
)

func outcomes() []string { return []string{forwarded, "coalesced", "suppressed", digested} }

// postAll posts envelopes, two one after the other and more of them at once, and returns what the relay says became of
// each. All must be accepted.
func (s *session) postAll(ctx context.Context, envelopes []envelope) ([]string, error) {
	answers := make([]response, len(envelopes))
	errs := make([]error, len(envelopes))
	if len(envelopes) == 2 {
		for i, e := range envelopes {
			answers[i], errs[i] = s.post(ctx, e.encode())
		}
	} else {
		answers, errs = s.atOnce(ctx, envelopes)
		for i, r := range answers {
			if errs[i] == nil && r.status == http.StatusTooManyRequests { // later, then
				answers[i], errs[i] = s.post(ctx, envelopes[i].encode())
			}
		}
	}
	said := make([]string, len(envelopes))
	for i, r := range answers {
		err := errs[i]
		if err == nil {
			err = r.accepted()
		}
		if err != nil {
			return nil, fmt.Errorf("envelope %d of %d: %w", i+1, len(envelopes), err)
		}
		if said[i] = r.decode().Outcome; r.status == http.StatusGone {
			said[i] = gone
		} else if said[i] == digested || !slices.Contains(outcomes(), said[i]) {
			return nil, unknown("what became of the envelopes does not show: answered %v", r)
		}
	}
	return said, nil
}

func (s *session) forwardsOne(ctx context.Context, envelopes ...envelope) error {
	said, err := s.postAll(ctx, envelopes)
	if err != nil {
		return err
	}
	dead := count(said, gone)
	switch n := count(said, forwarded) + dead; {
	case n == 1:
		return nil
	case n > 1 && dead > 0:
		return unknown("the push service knows no such device, and the relay may try again: outcomes %q", said)
	default:
		return fmt.Errorf("forwarded %d of %d envelopes of one alert: outcomes %q; want one", n, len(said), said)
	}
}

func (s *session) forwardsBoth(ctx context.Context, a, b envelope) error {
	said, err := s.postAll(ctx, []envelope{a, b})
	if err != nil {
		return err
	}
	if count(said, forwarded)+count(said, gone) != 2 {
		return fmt.Errorf("took two alerts for one: outcomes %q", said)
	}
	return nil
}

func count(all []string, want string) (n int) {
	for _, s := range all {
		if s == want {
			n++
		}
	}
	return n
}

// atOnce posts envelopes in parallel and takes a 429 for what it is.
func (s *session) atOnce(ctx context.Context, envelopes []envelope) ([]response, []error) {
	answers, errs := make([]response, len(envelopes)), make([]error, len(envelopes))
	var wg sync.WaitGroup
	for i, e := range envelopes {
		wg.Go(func() {
			answers[i], errs[i] = s.exchange(ctx, request{method: http.MethodPost, url: s.target.URL, body: e.encode()})
		})
	}
	wg.Wait()
	return answers, errs
}

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

// patience is how many posts for one device the suite makes to meet its limit. The hosted relay's is 60.
const patience = 100

func rateChecks() []Check {
	const perDevice = "Rate limiting per device token."
	return []Check{
		{
			Name: "rate-limit-429", Part: SealedRelay, Level: Must, Source: relayProtocol,
			Sentence: "429: Rate limited.",
			Does:     "Posts up to 100 alerts for one device, until one is not accepted. Wants 429 for that one. Not stated if no limit is met, since the relay sets it.",
			run: aboutLimit(func(_ context.Context, _ *session, refusal response) error {
				return wantStatus(http.StatusTooManyRequests)(refusal)
			}),
		},
		{
			Name: "rate-limit-retry-after", Part: SealedRelay, Level: Open, Source: hostedRelay,
			Sentence: "429 with Retry-After.",
			Does:     "Looks at the answer to the alert that was over the limit. Wants a Retry-After of seconds, or of a date to come (RFC 9110, section 10.2.3). A daemon does not retry, and logs it.",
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
			Does:     "Posts an alert for another device right after one device has met its limit. Wants it accepted. Open, because a relay may also limit how much one address posts, and the answers do not show which.",
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
