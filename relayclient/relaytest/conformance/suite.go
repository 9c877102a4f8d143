package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

func suiteChecks() []Check {
	const grammar = "Identifier grammar: 1-16 of [a-z0-9-], the first a letter or digit. A relay answers 400 naming suite outside the grammar, for null too."
	const shortest = "Minimum ciphertext lengths: 68 characters (x25519), 1520 (xwing)."
	return []Check{
		{
			Name: "suite-known", Part: SealedRelay, Level: Must, Source: liveProtocol,
			Sentence: "A suite names the algorithm of a device's key. It stands in the envelope.",
			Does:     "Posts envelopes under the suites x25519 and xwing. Wants each accepted. To a relay that does not know the member it is one of those that it ignores.",
			run: acceptsAll(func() []variant {
				return []variant{
					{"x25519", newEnvelope().with("suite", "x25519").encode()},
					{"xwing", newEnvelope().with("suite", "xwing").with("ciphertext", ciphertextOf(1436)).encode()},
				}
			}),
		},
		{
			Name: "suite-unknown", Part: SealedRelay, Level: Must, Source: liveProtocol,
			Sentence: "Inside the grammar, a relay that does not know the suite still forwards (MUST), and applies the loosest minimum length.",
			Does:     "Posts envelopes under suites that there are not: \"0\", \"a-\" and one of 16 characters, each with a ciphertext of 400 characters. Wants each accepted.",
			run: acceptsAll(func() (all []variant) {
				for _, suite := range []string{"0", "a-", "sntrup761-x25519"} {
					all = append(all, variant{suite, newEnvelope().with("suite", suite).encode()})
				}
				return all
			}),
		},
		{
			Name: "suite-grammar", Part: SealedRelay, Level: Must, Source: liveProtocol, Sentence: grammar,
			Does: "Posts envelopes in which suite is null, empty, a number, an object, of 17 characters, \"X25519\", \"-a\", \"a_b\". Wants 400 each time, and the word suite in the answer. Not stated if the relay accepts all of them: it follows the relay protocol, in which there is no suite.",
			run:  refusesSuites,
		},
		{
			Name: "suite-shortest-taken", Part: SealedRelay, Level: Open, Source: hostedRelay, Sentence: shortest,
			Does: "Posts the shortest ciphertexts: 68 characters under x25519 and under a suite that there is not, 1520 under xwing. Wants each accepted. Open, because no alert is as short.",
			run: acceptsAll(func() []variant {
				return []variant{
					{"x25519", newEnvelope().with("suite", "x25519").with("ciphertext", ciphertextOf(51)).encode()},
					{"an unknown suite", newEnvelope().with("suite", "a-").with("ciphertext", ciphertextOf(51)).encode()},
					{"xwing", newEnvelope().with("suite", "xwing").with("ciphertext", ciphertextOf(1140)).encode()},
				}
			}),
		},
		{
			Name: "suite-shorter-refused", Part: SealedRelay, Level: Open, Source: hostedRelay, Sentence: shortest,
			Does: "Posts ciphertexts that are shorter by four characters: 64 without a suite, under x25519 and under a suite that there is not, 1516 under xwing. Wants each refused with a 4xx. Open, because a relay need not look into what it cannot read.",
			run: refusesAll(func() []variant {
				return []variant{
					{"no suite", newEnvelope().with("ciphertext", ciphertextOf(48)).encode()},
					{"x25519", newEnvelope().with("suite", "x25519").with("ciphertext", ciphertextOf(48)).encode()},
					{"an unknown suite", newEnvelope().with("suite", "a-").with("ciphertext", ciphertextOf(48)).encode()},
					{"xwing", newEnvelope().with("suite", "xwing").with("ciphertext", ciphertextOf(1137)).encode()},
				}
			}),
		},
	}
}

// refusesSuites comes to no verdict about a relay of the relay protocol, which ignores the member.
func refusesSuites(ctx context.Context, s *session) error {
	values := []variant{
		{"null", encodeJSON(nil)}, {"empty", encodeJSON("")}, {"a number", encodeJSON(25519)}, {"an object", encodeJSON(map[string]any{})},
		{"of 17 characters", encodeJSON("sntrup761-x25519x")}, {"X25519", encodeJSON("X25519")}, {"-a", encodeJSON("-a")}, {"a_b", encodeJSON("a_b")},
	}
	var problems []error
	accepted := 0
	for _, v := range values {
		r, err := s.post(ctx, newEnvelope().with("suite", json.RawMessage(v.body)).encode())
		if err != nil {
			return fmt.Errorf("suite is %s: %w", v.label, err)
		}
		if r.took() {
			accepted++
		}
		if err := namesMember("suite")(r); err != nil {
			problems = append(problems, fmt.Errorf("suite is %s: %w", v.label, err))
		}
	}
	switch {
	case accepted == len(values):
		return unknown("the relay accepts everything as suite, as one of the relay protocol does, which has no such member")
	case len(problems) > 0:
		return problems[0]
	}
	return nil
}

// namesMember wants 400 and the name of a member in what a daemon reads of the answer.
func namesMember(name string) func(response) error {
	return func(r response) error {
		if r.status == http.StatusBadRequest && slices.Contains(r.words(), name) {
			return nil
		}
		return fmt.Errorf("want 400 and the word %s; answered %v", name, r)
	}
}
