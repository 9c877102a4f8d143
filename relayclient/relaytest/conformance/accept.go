package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

func acceptChecks() []Check {
	return []Check{
		{
			Name: "accept-envelope", Part: SealedRelay, Level: Must, Source: relayProtocol,
			Sentence: "The daemon sends one HTTP POST per (alert, device) to push.relay.url, with a JSON body.",
			Does:     "Posts an envelope of the six members of the relay protocol. Wants 2xx or 410. Here and everywhere, 410 counts as having accepted the envelope, because the device tokens of the suite are made up.",
			run:      acceptsWith(func(e envelope) envelope { return e }),
		},
		{
			Name: "accept-passive", Part: SealedRelay, Level: Must, Source: relayProtocol,
			Sentence: "priority: time-sensitive or passive.",
			Does:     "Posts an envelope of priority passive. Wants it accepted.",
			run:      acceptsWith(func(e envelope) envelope { return e.with("priority", "passive") }),
		},
		{
			Name: "accept-event", Part: SealedRelay, Level: Must, Source: relayProtocol,
			Sentence: "event: true when the alert is a daemon event, false for job, SLA, and test alerts.",
			Does:     "Posts an envelope with event true. Wants it accepted.",
			run:      acceptsWith(func(e envelope) envelope { return e.with("event", true) }),
		},
		{
			Name: "accept-json", Part: SealedRelay, Level: Must, Source: relayProtocol,
			Sentence: "The daemon sends one HTTP POST per (alert, device) to push.relay.url, with a JSON body.",
			Does:     "Posts envelopes that are written otherwise in JSON (RFC 8259): members in another order, white space between them, a character as \\u escape. Wants each accepted.",
			run:      acceptsAnyJSON,
		},
		{
			Name: "accept-unknown-members", Part: SealedRelay, Level: Must, Source: growthRule,
			Sentence: "Unknown members of an envelope and of a plaintext are ignored by their readers, so that v1 can grow.",
			Does:     "Posts an envelope with further members: a string, a number, null, an object that repeats the envelope's names. Wants it accepted.",
			run: acceptsWith(func(e envelope) envelope {
				return e.with("ttl", 600).with("note", "é\u2028").with("trace", nil).
					with("nested", map[string]any{"v": 2, "device": 7, "list": []any{nil, 1.5}})
			}),
		},
		{
			Name: "accept-device-lengths", Part: SealedRelay, Level: Open, Source: hostedRelay,
			Sentence: "Device token it routes: 16 to 512 hex digits.",
			Does:     "Posts envelopes for device tokens of 16, 160 and 512 digits, and one in capitals. Wants each accepted. Only what phones register today, 64 digits in lower case, is a MUST.",
			run:      acceptsDeviceLengths,
		},
	}
}

// acceptsWith makes a check of one envelope.
func acceptsWith(change func(envelope) envelope) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		return s.accepts(ctx, change(newEnvelope()).encode())
	}
}

func acceptsAnyJSON(ctx context.Context, s *session) error {
	var spaced bytes.Buffer
	if err := json.Indent(&spaced, newEnvelope().encode(), "\t", "  "); err != nil {
		panic("conformance: " + err.Error()) // unreachable: the suite's own JSON
	}
	e := newEnvelope()
	reordered := envelope{e[5], e[3], e[1], e[4], e[2], e[0]}
	escaped := bytes.Replace(newEnvelope().encode(), []byte(`"collapseId"`), []byte(`"collapse\u0049d"`), 1)
	for _, v := range []variant{
		{"white space", append([]byte("\r\n "), spaced.Bytes()...)},
		{"another order", reordered.encode()},
		{"an escape", escaped},
	} {
		if err := s.accepts(ctx, v.body); err != nil {
			return fmt.Errorf("%s: %w", v.label, err)
		}
	}
	return nil
}

func acceptsDeviceLengths(ctx context.Context, s *session) error {
	for _, token := range []string{randomHex(16), randomHex(160), randomHex(512), strings.ToUpper(randomHex(64))} {
		if err := s.accepts(ctx, newEnvelope().with("device", token).encode()); err != nil {
			return fmt.Errorf("a device token of %d digits: %w", len(token), err)
		}
	}
	return nil
}

func sizeChecks() []Check {
	const atMost = "ciphertext: the sealed alert, base64. At most 3000 characters, so the relay's final APNs JSON stays under the 4096-byte APNs cap."
	return []Check{
		{
			Name: "size-2996", Part: SealedRelay, Level: Must, Source: relayProtocol, Sentence: atMost,
			Does: "Posts a ciphertext of 2996 characters, in each of the three forms that padding takes. Wants it accepted. It is the last length before the limit: padded base64 comes in multiples of four characters, so none has 2997 to 2999.",
			run:  acceptsCiphertexts(2245, 2246, 2247),
		},
		{
			Name: "size-3000", Part: SealedRelay, Level: Must, Source: relayProtocol, Sentence: atMost,
			Does: "Posts a ciphertext of 3000 characters, in each of the three forms that padding takes. Wants it accepted.",
			run:  acceptsCiphertexts(2248, 2249, 2250),
		},
		{
			Name: "size-2999-unpadded", Part: SealedRelay, Level: Open, Source: strictReading,
			Sentence: "ciphertext is standard base64, with its padding.",
			Does:     "Posts a ciphertext of 2999 characters, which is one of 3000 without its \"=\". Wants 4xx. Open, because the contract only says base64. Daemons send the padding.",
			run: refusesAll(func() []variant {
				return []variant{{"2999 characters without padding", newEnvelope().with("ciphertext", strings.TrimRight(ciphertextOf(2249), "=")).encode()}}
			}),
		},
		{
			Name: "size-3800", Part: SealedRelay, Level: Open, Source: liveProtocol,
			Sentence: "At most 3800 characters of ciphertext.",
			Does:     "Posts ciphertexts of 3800 characters, under the suites x25519 and xwing. Wants both accepted. Open, because 3000 characters are all that every relay takes.",
			run:      acceptsAll(longestCiphertexts),
		},
		{
			Name: "size-3804", Part: SealedRelay, Level: Open, Source: liveProtocol,
			Sentence: "400 with an error that names ciphertext (the word, in that case, within the first 512 characters of the body).",
			Does:     "Posts a ciphertext of 3804 characters, which does not fit the 4096 bytes that Apple takes. Wants 400 and that word: on such an answer, a daemon that sends more than 3000 characters shortens the alert to 3000. Open, because a daemon need not send more.",
			run: expectsOfAll(func() []variant {
				return []variant{{"3804 characters", newEnvelope().with("ciphertext", ciphertextOf(2853)).encode()}}
			}, namesMember("ciphertext")),
		},
		{
			Name: "size-body-8192", Part: SealedRelay, Level: Open, Source: hostedRelay,
			Sentence: "413 for a body over 8192 bytes.",
			Does:     "Posts an envelope that an unknown member makes 8192 bytes long. Wants it accepted, so that v1 can grow. The largest envelope of today has some 4500 bytes.",
			run: func(ctx context.Context, s *session) error {
				return s.accepts(ctx, newEnvelope().paddedTo(maxBody))
			},
		},
	}
}

func longestCiphertexts() []variant {
	return []variant{
		{"x25519", newEnvelope().with("suite", "x25519").with("ciphertext", ciphertextOf(2850)).encode()},
		{"xwing", newEnvelope().with("suite", "xwing").with("ciphertext", ciphertextOf(2850)).encode()},
	}
}

// maxBody is the largest request body of the hosted relay, in bytes.
const maxBody = 8192

func acceptsCiphertexts(boxSizes ...int) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		for _, size := range boxSizes {
			ciphertext := ciphertextOf(size)
			if err := s.accepts(ctx, newEnvelope().with("ciphertext", ciphertext).encode()); err != nil {
				return fmt.Errorf("%d characters, %d of them padding: %w",
					len(ciphertext), strings.Count(ciphertext, "="), err)
			}
		}
		return nil
	}
}
