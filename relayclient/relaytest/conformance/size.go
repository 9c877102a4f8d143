package conformance

import (
	"context"
	"fmt"
	"strings"
)

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
			Does:     "Posts a ciphertext of 2999 characters, which is one of 3000 without its \"=\". Wants 4xx, and it is the relay's own business: the contract says base64 and no more, and no daemon leaves the padding out.",
			run: refusesAll(func() []variant {
				return []variant{{"2999 characters without padding", newEnvelope().with("ciphertext", strings.TrimRight(ciphertextOf(2249), "=")).encode()}}
			}),
		},
		{
			Name: "size-3804", Part: SealedRelay, Level: Open, Source: hostedRelay,
			Sentence: "At most 3800 characters of ciphertext.",
			Does:     "Posts a ciphertext of 3804 characters. Wants 4xx, and it is the relay's own business: what is longer does not fit the 4096 bytes that Apple takes, and no daemon sends it.",
			run: refusesAll(func() []variant {
				return []variant{{"3804 characters", newEnvelope().with("ciphertext", ciphertextOf(2853)).encode()}}
			}),
		},
		{
			Name: "size-body-8192", Part: SealedRelay, Level: Open, Source: hostedRelay,
			Sentence: "413 for a body over 8192 bytes.",
			Does:     "Posts an envelope that an unknown member makes 8192 bytes long. Wants it accepted: it is what v1 has to grow in. The largest envelope of today has some 3700 bytes.",
			run: func(ctx context.Context, s *session) error {
				return s.accepts(ctx, newEnvelope().paddedTo(maxBody))
			},
		},
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
