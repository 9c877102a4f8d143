package seal

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// KeySize is the size of a public or a private key, in bytes.
const KeySize = 32

// ErrInvalidKey is wrapped by every error about a key that cannot be used:
// text that is not 32 bytes of standard base64, a low-order public key, or the
// zero value of [PublicKey] or [PrivateKey].
var ErrInvalidKey = errors.New("seal: invalid key")

// PublicKey is a phone's X25519 public key.
//
// Keys that came from [ParsePublicKey], [NewPublicKey], [PublicKey.UnmarshalText]
// or [PrivateKey.Public] are never of low order. The zero value is no key:
// sealing to it fails with [ErrInvalidKey]. PublicKey is comparable, so it can
// be a map key, and it is safe for concurrent use.
type PublicKey struct {
	raw [KeySize]byte
}

// ParsePublicKey reads a public key from standard base64 with padding, 44
// characters. White space around the text is ignored; inside it is refused.
//
// The error wraps [ErrInvalidKey] and says what the text looks like instead,
// such as hex or URL-safe base64. It never quotes the text, in case a private
// key was pasted by mistake.
func ParsePublicKey(text string) (PublicKey, error) {
	text = strings.TrimSpace(text)
	raw, err := decodeBase64(base64.StdEncoding, text)
	if err != nil || len(raw) != KeySize {
		return PublicKey{}, fmt.Errorf("%w: %s", ErrInvalidKey, describeKeyText(text, raw, err))
	}
	return NewPublicKey(raw)
}

// NewPublicKey makes a public key of [KeySize] raw bytes, as
// crypto_box_keypair returns them. The error wraps [ErrInvalidKey].
func NewPublicKey(raw []byte) (PublicKey, error) {
	if len(raw) != KeySize {
		return PublicKey{}, fmt.Errorf("%w: a public key has %d bytes, this one has %d", ErrInvalidKey, KeySize, len(raw))
	}
	key := PublicKey{raw: [KeySize]byte(raw)}
	if isLowOrder(&key.raw) {
		return PublicKey{}, fmt.Errorf("%w: low-order point: anybody could open what is sealed to it; pair the phone again with a new key", ErrInvalidKey)
	}
	return key, nil
}

// Bytes returns the [KeySize] raw bytes of the key, in a slice of the caller's own.
func (k PublicKey) Bytes() []byte { return k.raw[:] }

// IsZero reports whether k is the zero value, which is no key.
func (k PublicKey) IsZero() bool { return k == PublicKey{} }

// String returns the key as canonical standard base64, 44 characters.
func (k PublicKey) String() string { return base64.StdEncoding.EncodeToString(k.raw[:]) }

// Fingerprint returns the first 12 hex digits of SHA-256 over the raw key, in
// groups of four: 8c2f-91ab-04de. Daemon and phone both show it at pairing, so
// that a person can see that nobody put a key of their own in between.
func (k PublicKey) Fingerprint() string {
	sum := sha256.Sum256(k.raw[:])
	digits := hex.EncodeToString(sum[:6])
	return digits[:4] + "-" + digits[4:8] + "-" + digits[8:]
}

// MarshalText returns what [PublicKey.String] returns, so that a key is a
// string in JSON. The zero value cannot be marshalled.
func (k PublicKey) MarshalText() ([]byte, error) {
	if k.IsZero() {
		return nil, fmt.Errorf("%w: the zero PublicKey is no key", ErrInvalidKey)
	}
	return base64.StdEncoding.AppendEncode(nil, k.raw[:]), nil
}

// UnmarshalText reads a key as [ParsePublicKey] does. On error k is unchanged.
func (k *PublicKey) UnmarshalText(text []byte) error {
	key, err := ParsePublicKey(string(text))
	if err != nil {
		return err
	}
	*k = key
	return nil
}
