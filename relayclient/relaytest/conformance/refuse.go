package conformance

import (
	"bytes"
	"fmt"
	"strings"
)

// rejected is the sentence behind every refusal that is a MUST.
const rejected = "Other 4xx: Rejected (malformed body, unknown or unroutable device token)."

func refuseChecks() []Check {
	return []Check{
		{
			Name: "refuse-not-json", Part: SealedRelay, Level: Must, Source: relayProtocol, Sentence: rejected,
			Does: "Posts what is not one JSON text: nothing, words, an envelope cut short, an envelope with more behind it. Wants each refused with a 4xx, whichever it is.",
			run: refusesAll(func() []variant {
				whole := newEnvelope().encode()
				return []variant{
					{"no body", []byte{}},
					{"words", []byte("v=1&device=8f3a1b")},
					{"cut short", whole[:len(whole)-1]},
					{"more behind it", append(bytes.Clone(whole), "}}"...)},
				}
			}),
		},
		{
			Name: "refuse-not-object", Part: SealedRelay, Level: Must, Source: relayProtocol, Sentence: rejected,
			Does: "Posts JSON that is no object: null, a number, a string, a list that holds an envelope. Wants each refused with a 4xx.",
			run: refusesAll(func() []variant {
				return []variant{
					{"null", []byte("null")},
					{"a number", []byte("1")},
					{"a string", encodeJSON(string(newEnvelope().encode()))},
					{"a list", fmt.Appendf(nil, "[%s]", newEnvelope().encode())},
				}
			}),
		},
		refuseMember("v", "v: int. Protocol version. Always 1.", Must,
			"null", nil, "a string", "1", "false", false, "a version that never was", 0),
		refuseMember("device", "device: string. The platform push token (APNs device token), exactly as the device registered it at pairing time.", Must,
			"null", nil, "a number", 7, "an object", map[string]any{}, "empty", ""),
		refuseMember("ciphertext", "ciphertext: string. The sealed alert, base64.", Must,
			"null", nil, "a number", 7, "a list", []any{}, "empty", "", "not base64", "*** not base64 ***"),
		refuseMember("collapseId", "collapseId: string. An opaque coalescing key: 32 lowercase hex characters.", Must,
			"null", nil, "a number", 7, "an object", map[string]any{}, "empty", ""),
		refuseMember("priority", "priority: time-sensitive or passive. The relay maps it to the APNs interruption level.", Must,
			"null", nil, "a number", 7, "empty", "", "another word", "critical"),
		// A relay does not need the event for anything.
		refuseMember("event", "event: bool. Routing metadata only.", Open,
			"null", nil, "a string", "false", "a number", 0),
	}
}

// refuseMember checks that an envelope is refused without a member, and with each of the values, which come after their
// labels.
func refuseMember(name, sentence string, level Level, labelled ...any) Check {
	variants := func() []variant {
		all := []variant{{name + " is missing", newEnvelope().without(name).encode()}}
		for i := 0; i < len(labelled); i += 2 {
			all = append(all, variant{fmt.Sprintf("%s is %s", name, labelled[i]), newEnvelope().with(name, labelled[i+1]).encode()})
		}
		return all
	}
	does := "Posts envelopes in which " + name + " is missing"
	for i := 0; i < len(labelled); i += 2 {
		does += fmt.Sprintf(", %s", labelled[i])
	}
	refuses := refusesAll
	if name == "device" {
		refuses = refusesDevices
	}
	return Check{
		Name: "refuse-" + hyphened(name), Part: SealedRelay, Level: level, Source: relayProtocol, Sentence: sentence,
		Does: does + ". Wants each refused with a 4xx.",
		run:  refuses(variants),
	}
}

// hyphened turns collapseId into collapse-id.
func hyphened(name string) string {
	var b []byte
	for _, c := range []byte(name) {
		if 'A' <= c && c <= 'Z' {
			b = append(b, '-')
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	return string(b)
}

// formChecks are about envelopes that a strict reader refuses and a lenient one, within the contract, may take.
func formChecks() []Check {
	return []Check{
		{
			Name: "form-v-2", Part: SealedRelay, Level: Open, Source: relayProtocol,
			Sentence: "Both the relay envelope and the sealed plaintext carry their own v, so either side of the protocol can evolve independently.",
			Does:     "Posts an envelope with v 2. Wants 4xx. Open, because a relay may be ahead of the suite.",
			run: refusesAll(func() []variant {
				return []variant{{"v is 2", newEnvelope().with("v", 2).encode()}}
			}),
		},
		{
			Name: "form-device", Part: SealedRelay, Level: Open, Source: hostedRelay,
			Sentence: "Device token it routes: 16 to 512 hex digits.",
			Does:     "Posts envelopes for device tokens of 15 and 513 hex digits, and of letters that are no hex digits. Wants each refused with a 4xx. Open, because the token is between the phone and its relay.",
			run: refusesDevices(func() []variant {
				return []variant{
					{"15 digits", newEnvelope().with("device", randomHex(16)[1:]).encode()},
					{"513 digits", newEnvelope().with("device", randomHex(514)[1:]).encode()},
					{"not hex", newEnvelope().with("device", strings.Repeat("phone-", 10)).encode()},
				}
			}),
		},
		{
			Name: "form-ciphertext", Part: SealedRelay, Level: Open, Source: relayProtocol,
			Sentence: "A libsodium sealed box encrypted to the target device's X25519 public key.",
			Does:     "Posts ciphertexts that no daemon makes: in the URL-safe alphabet, and with a line break. Wants each refused with a 4xx. Open, because a relay need not look into what it cannot read.",
			run: refusesAll(func() []variant {
				return []variant{
					{"the URL-safe alphabet", newEnvelope().with("ciphertext", strings.Repeat("-_", 200)).encode()},
					{"a line break", newEnvelope().with("ciphertext", ciphertextOf(96)[:64]+"\r\n"+ciphertextOf(96)[:64]).encode()},
				}
			}),
		},
		{
			Name: "form-collapse-id", Part: SealedRelay, Level: Open, Source: relayProtocol,
			Sentence: "collapseId: an opaque coalescing key: 32 lowercase hex characters.",
			Does:     "Posts collapse ids of 31 and 33 characters, in capitals, and with a letter that is no hex digit. Wants each refused with a 4xx. Open, because to the relay the key is opaque.",
			run: refusesAll(func() []variant {
				return []variant{
					{"31 characters", newEnvelope().with("collapseId", randomHex(32)[1:]).encode()},
					{"33 characters", newEnvelope().with("collapseId", "a"+randomHex(32)).encode()},
					{"capitals", newEnvelope().with("collapseId", "A"+strings.ToUpper(randomHex(32)[1:])).encode()},
					{"not hex", newEnvelope().with("collapseId", "g"+randomHex(32)[1:]).encode()},
				}
			}),
		},
		{
			Name: "form-names", Part: SealedRelay, Level: Open, Source: strictReading,
			Sentence: "Member names are compared exactly.",
			Does:     "Posts an envelope with \"Device\" for \"device\". Wants 4xx, as for one without a device. Open, because some JSON libraries take one for the other.",
			run: refusesAll(func() []variant {
				return []variant{{"Device for device", newEnvelope().renamed("device", "Device").encode()}}
			}),
		},
	}
}
