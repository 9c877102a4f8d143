// Package conformance says whether a relay keeps the contract that daemons and bridges rely on. It looks at a relay
// from outside, over HTTP, so the relay can be in any language and anywhere.
//
// # In a Go test
//
//	func TestRelay(t *testing.T) {
//		server := httptest.NewServer(newRelay())
//		defer server.Close()
//		conformance.Run(t, conformance.Target{URL: server.URL})
//	}
//
// Each check is a subtest. Everywhere else, [Evaluate] returns a [Report], and the tool sealpush prints one:
//
//	sealpush conformance -url https://relay.example.com
//
// # What the verdicts mean
//
// Each [Check] stands for a sentence of the relay protocol or of the bridge protocol, or for something that the hosted
// services do and the contract does not demand. The first are [Must] where the sentence binds the relay, and only they
// can [Fail]. A relay that differs in what is [Open] has done nothing wrong: the verdict is [NotStated], and the detail
// says what it did. So it is where the answers of a relay do not show whether it keeps a sentence.
//
// # What it sends
//
// Device tokens are random hex digits, new for every envelope that is not about one device, so that no check runs into
// what a relay remembers of another. A relay that is wired to a real push service will be told that there is no such
// device. It then answers 410, which counts as having accepted the envelope: it was read. What becomes of two envelopes
// of one alert does not show in that case.
//
// A sealed relay gets some 400 requests, 100 of them at once and up to 100 for one device. [Target.Pace] spaces them. A
// 429 that a check is not about is waited out, and where that would take longer than [Target.MaxWait], the check is not
// stated.
//
// The bridge half registers devices, unregisters them and pushes to them. Give it a client of its own ([Bridge]).
//
// # What it cannot see
//
// What happens behind a relay: whether the push service gets what it should, in the form that wakes the app. Flap
// suppression, which takes half an hour to show. An expired token, which only the token service could make. And whether
// one bridge can reach the devices of another, beyond the refusal of tokens that say so.
//
// The suite shares no code with this module's clients that knows either protocol. Its tests run every check against
// relays that are broken in the one way that the check is there to find.
//
// # Concurrency
//
// The functions may be called by several goroutines at once. Targets, checks, reports and results are plain values:
// several goroutines may read one, and nobody may change it meanwhile.
package conformance
