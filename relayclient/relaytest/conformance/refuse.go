package conformance

import (
	"bytes"
	"fmt"
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
		// Nothing that a relay does depends on it.
		refuseMember("event", "event: bool. Routing metadata only.", Open,
			"null", nil, "a string", "false", "a number", 0),
	}
}

// refuseMember checks that an envelope is refused without a member, and with
// each of the values, which come after their labels.
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
