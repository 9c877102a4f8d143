// Package seal encrypts an alert so that only one phone can read it.
//
// A phone generates a key pair and hands its public key over at pairing. From then on anyone who holds that public key
// can [Seal] a message to the phone, and only the phone can [Open] it:
//
//	key, err := seal.ParsePublicKey(text) // what the phone sent when it paired
//	if err != nil {
//		return err // says what is wrong with the text; errors.Is(err, seal.ErrInvalidKey)
//	}
//	ciphertext, err := seal.Seal(key, plaintext)
//
// A box is anonymous: it proves nothing about its sender, and the sender keeps no secret that would open it again.
//
// # Suites
//
// A key belongs to a [Suite], which names how messages to it are sealed. ParsePublicKey, NewPublicKey, GenerateKey and
// NewPrivateKey make keys of suite [X25519]; the methods of the same names make keys of any suite:
//
//	key, err := seal.Suite(record.Suite).ParsePublicKey(record.PublicKey)
//
// Nothing infers a suite from the length of a key or box: it is recorded and sent beside them.
//
//   - [X25519] is libsodium's sealed box (crypto_box_seal), byte for byte: a fresh ephemeral X25519 key per message,
//     XSalsa20-Poly1305 under the shared secret, and a nonce that is BLAKE2b-192 of the two public keys.
//   - [XWing] is single-shot HPKE in base mode (RFC 9180) without additional data: KEM X-Wing (0x647a), which combines
//     ML-KEM-768 and X25519, HKDF-SHA256, AES-256-GCM, info "cronstable-push-xwing". A box is the encapsulated key and
//     the sealed plaintext. The message stays secret as long as one of ML-KEM-768 and X25519 is unbroken, but its box
//     is 1088 bytes longer.
//
// # Text
//
// Keys and boxes travel as standard base64 with padding (RFC 4648, section 4). Public keys are accepted with white
// space around them, as people paste them, but with none inside.
//
// # Refused keys
//
// A handful of X25519 public keys make every shared secret all zero, so that anybody could open what is sealed to them
// (RFC 7748, section 6.1). They are refused when a key is parsed, in every encoding, alone and as a half of an XWing
// key. An ML-KEM key with a coefficient out of range is refused too (FIPS 203, section 7.2). So a [PublicKey] can
// always be sealed to.
//
// # Sizes
//
// The relay limits the length of a ciphertext; every relay takes at least 3000 characters (relay protocol, "Inbound
// request"). [Suite.MaxPlaintext] says how many bytes of plaintext that leaves: 2202 for X25519, 1114 for XWing.
// Package payload fits an alert into them.
//
// # Concurrency
//
// Keys are immutable values. Everything in this package is safe for concurrent use.
package seal
