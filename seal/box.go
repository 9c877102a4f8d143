package seal

import (
	"encoding/base64"
	"errors"
	"fmt"

	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/nacl/box"
)

// Sizes of a sealed box. They fit together: MaxPlaintext + Overhead bytes are
// MaxCiphertext characters of base64.
const (
	// Overhead is how many bytes a sealed box is longer than its plaintext: the
	// ephemeral public key and the Poly1305 tag (crypto_box_SEALBYTES).
	Overhead = KeySize + box.Overhead
	// MaxCiphertext is the longest ciphertext that a relay must take, in
	// characters of base64 (relay protocol, "Inbound request").
	MaxCiphertext = 3000
	// MaxPlaintext is the longest plaintext that fits MaxCiphertext, in bytes.
	MaxPlaintext = MaxCiphertext/4*3 - Overhead
)

// Errors of [Seal], [AppendSeal] and [Open].
var (
	// ErrTooLarge is wrapped by Seal's error for a plaintext over MaxPlaintext.
	ErrTooLarge = errors.New("seal: plaintext too large")
	// ErrOpen is wrapped by Open's error for a box that is not base64, is
	// truncated, was changed, or was sealed to another key. Which of them it was
	// stays unsaid on purpose, as in libsodium.
	ErrOpen = errors.New("seal: cannot open the sealed box")
)

// Seal encrypts plaintext to the key as a libsodium sealed box and returns it
// as standard base64, at most [MaxCiphertext] characters. Each call uses a
// fresh ephemeral key, so sealing the same plaintext twice gives two unrelated
// boxes.
//
// A plaintext of more than [MaxPlaintext] bytes fails with [ErrTooLarge]; the
// zero PublicKey fails with [ErrInvalidKey]. The plaintext is only read.
func Seal(to PublicKey, plaintext []byte) (ciphertext string, err error) {
	var text [MaxCiphertext]byte
	sealed, err := AppendSeal(text[:0], to, plaintext)
	return string(sealed), err
}

// AppendSeal appends what [Seal] returns to dst and returns the extended slice,
// so that a message around the ciphertext is built without copying it. With an
// error it returns nil, and dst is as it was.
func AppendSeal(dst []byte, to PublicKey, plaintext []byte) ([]byte, error) {
	if len(plaintext) > MaxPlaintext {
		return nil, fmt.Errorf("%w: %d bytes, at most %d fit; shrink it with payload.Fit", ErrTooLarge, len(plaintext), MaxPlaintext)
	}
	var ephemeral, shared [KeySize]byte
	ephemeralPublic := generate(&ephemeral)
	if !agree(&shared, &ephemeral, &to.raw) {
		return nil, fmt.Errorf("%w: not a key that can be sealed to; use ParsePublicKey or NewPublicKey", ErrInvalidKey)
	}
	return appendShared(dst, &ephemeralPublic, &shared, to, plaintext), nil
}

// appendShared finishes a box whose two keys have agreed on shared.
func appendShared(dst []byte, ephemeralPublic, shared *[KeySize]byte, to PublicKey, plaintext []byte) []byte {
	boxKey := deriveBoxKey(shared)
	nonce := boxNonce(ephemeralPublic, &to.raw)
	var raw [MaxPlaintext + Overhead]byte
	copy(raw[:], ephemeralPublic[:])
	sealed := box.SealAfterPrecomputation(raw[:KeySize], plaintext, &nonce, &boxKey)
	return base64.StdEncoding.AppendEncode(dst, sealed)
}

// Open decrypts what [Seal], or libsodium's crypto_box_seal, sealed to the key's
// public half. It is the phone's side: an app's notification extension does
// this with what the push service delivered.
//
// Ciphertext is standard base64 with padding and without white space. Any
// length is opened, since a relay may carry more than [MaxCiphertext]. The error
// wraps [ErrOpen], or [ErrInvalidKey] for the zero PrivateKey.
func Open(with PrivateKey, ciphertext string) ([]byte, error) {
	if with.pair == nil {
		return nil, fmt.Errorf("%w: the zero PrivateKey is no key", ErrInvalidKey)
	}
	sealed, err := decodeBase64(base64.StdEncoding.Strict(), ciphertext)
	if err != nil {
		return nil, fmt.Errorf("%w: not standard base64: %w", ErrOpen, err)
	}
	if len(sealed) < Overhead {
		return nil, fmt.Errorf("%w: %d bytes, a sealed box has at least %d", ErrOpen, len(sealed), Overhead)
	}
	ephemeralPublic := [KeySize]byte(sealed)
	private := [KeySize]byte(with.pair.private.Bytes())
	var shared [KeySize]byte
	if !agree(&shared, &private, &ephemeralPublic) {
		return nil, ErrOpen
	}
	boxKey := deriveBoxKey(&shared)
	nonce := boxNonce(&ephemeralPublic, &with.pair.public.raw)
	plaintext, ok := box.OpenAfterPrecomputation(nil, sealed[KeySize:], &nonce, &boxKey)
	if !ok {
		return nil, ErrOpen
	}
	return plaintext, nil
}

// boxNonce is crypto_box_seal's nonce: BLAKE2b-192 of both public keys.
func boxNonce(ephemeral, recipient *[KeySize]byte) (nonce [24]byte) {
	h, err := blake2b.New(len(nonce), nil)
	if err != nil {
		panic("seal: " + err.Error()) // only for sizes outside 1..64
	}
	h.Write(ephemeral[:])
	h.Write(recipient[:])
	h.Sum(nonce[:0])
	return nonce
}
