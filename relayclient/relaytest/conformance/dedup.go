package conformance

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
)

func dedupChecks() []Check {
	const collapses = "Deduplication and coalescing on (device, collapseId): several nodes of a cluster may report the same alert; the relay collapses them without learning what the alert is about."
	const fresh = "Test alerts are the exception: each carries a fresh random id so a coalescing relay never swallows one."
	return []Check{
		{
			Name: "dedup-repeat", Part: SealedRelay, Level: Must, Source: relayProtocol, Sentence: collapses,
			Does: "Posts one envelope twice. Wants both accepted, and only the first forwarded. That shows only in the outcome that the hosted relay states, \"forwarded\" or \"coalesced\", and only for a device that exists: not stated without one.",
			run: func(ctx context.Context, s *session) error {
				e := newEnvelope()
				return s.forwardsOne(ctx, e, e)
			},
		},
		{
			Name: "dedup-nodes", Part: SealedRelay, Level: Must, Source: relayProtocol, Sentence: collapses,
			Does: "Posts one alert as five nodes do, at once and each with a ciphertext of its own. Wants all accepted, and just one forwarded, as of their outcomes.",
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
			Does:     "Posts one collapse id for two devices. Wants both accepted and both forwarded, as of their outcomes.",
			run: func(ctx context.Context, s *session) error {
				e := newEnvelope()
				return s.forwardsBoth(ctx, e, e.with("device", randomHex(64)))
			},
		},
		{
			Name: "dedup-other-id", Part: SealedRelay, Level: Must, Source: relayProtocol, Sentence: fresh,
			Does: "Posts two collapse ids for one device, twice: ids that differ in the last digit, and in the first. Wants all accepted and all forwarded, as of their outcomes.",
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

// forwarded is the outcome of an envelope that went on to the push service.
const forwarded = "forwarded"

// outcomes are the hosted relay's words. The contract has none, so one that
// uses others has done nothing wrong: they say nothing to the suite.
func outcomes() []string { return []string{forwarded, "coalesced", "suppressed"} }

// postAll posts envelopes, two one after the other and more of them at once,
// and returns what the relay says became of each. All must be accepted.
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
		said[i] = r.decode().Outcome
		if r.status == http.StatusGone || !slices.Contains(outcomes(), said[i]) {
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
	if n := count(said, forwarded); n != 1 {
		return fmt.Errorf("forwarded %d of %d envelopes of one alert, by the outcomes %q; want one", n, len(said), said)
	}
	return nil
}

func (s *session) forwardsBoth(ctx context.Context, a, b envelope) error {
	said, err := s.postAll(ctx, []envelope{a, b})
	if err != nil {
		return err
	}
	if count(said, forwarded) != 2 {
		return fmt.Errorf("took two alerts for one, by the outcomes %q", said)
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
