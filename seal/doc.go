// Package seal encrypts an alert so that only one phone can read it.
//
// A phone generates an X25519 key pair and hands its public key over at
// pairing. From then on anyone who holds that public key can [Seal] a message
// to the phone, and only the phone can [Open] it:
//
//	key, err := seal.ParsePublicKey(text) // what the phone sent when it paired
//	if err != nil {
//		return err // says what is wrong with the text; errors.Is(err, seal.ErrInvalidKey)
//	}
//	ciphertext, err := seal.Seal(key, plaintext)
//
// The construction is libsodium's sealed box (crypto_box_seal), byte for byte:
// a fresh ephemeral X25519 key per message, XSalsa20-Poly1305 under the shared
// secret, and a nonce that is BLAKE2b-192 of the two public keys. Messages
// sealed here open with libsodium, and the other way round. A sealed box is
// anonymous: it proves nothing about its sender, and the sender keeps no secret
// that would open it again.
//
// # Text
//
// Keys and boxes travel as standard base64 with padding (RFC 4648, section 4).
// Public keys are accepted with white space around them, as people paste them,
// but with none inside.
//
// # Low-order keys
//
// A handful of X25519 public keys make every shared secret all zero, so that
// anybody could open what is sealed to them (RFC 7748, section 6.1). They are
// refused when a key is parsed, in every encoding, so a [PublicKey] that was
// parsed is always fit to seal to. Each agreement is checked once more all the
// same.
//
// # Sizes
//
// A push message has room for [MaxCiphertext] characters of base64, which is
// [MaxPlaintext] bytes of plaintext and [Overhead] bytes of sealed box (relay
// protocol, "Size fitting"). Package payload fits an alert into that.
//
// # Concurrency
//
// Keys are immutable values. Everything in this package is safe for concurrent
// use.
package seal
