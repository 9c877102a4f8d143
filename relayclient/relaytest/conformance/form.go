package conformance

import "strings"

// formChecks are about envelopes that a strict reader refuses and a lenient
// one, within the contract, may take.
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
			Does:     "Posts ciphertexts that no daemon makes: 47 bytes, one less than an empty sealed box; the URL-safe alphabet; a line break. Wants each refused with a 4xx. Open, because the relay need not look into what it cannot read.",
			run: refusesAll(func() []variant {
				return []variant{
					{"47 bytes", newEnvelope().with("ciphertext", ciphertextOf(47)).encode()},
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
