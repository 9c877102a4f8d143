package seal

import (
	"crypto/fips140"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
)

// ErrInvalidKey is wrapped by every error about a key that cannot be used: text or bytes that are no key of the suite,
// a public key to which nothing can be sealed safely, or the zero value of [PublicKey] or [PrivateKey].
var ErrInvalidKey = errors.New("seal: invalid key")

// errZeroKey is the error for the zero value of a key. In FIPS-only mode it names the likely cause: keys of X25519
// cannot be made.
func errZeroKey() error {
	if fips140.Enforced() {
		return fmt.Errorf("the zero value is no key: %w", ErrFIPSOnly)
	}
	return errors.New("the zero value is no key")
}

// PublicKey is a phone's public key, of one [Suite].
//
// Every PublicKey but the zero value has been checked and can be sealed to. The zero value is no key: sealing to it
// fails with [ErrInvalidKey]. Two keys are equal by == when suite and bytes are the same, so a PublicKey can be a map
// key.
type PublicKey struct {
	suite Suite
	raw   string
}

// Suite returns the suite of the key, which is empty for the zero PublicKey.
func (k PublicKey) Suite() Suite { return k.suite }

// Bytes returns the raw bytes of the key, as many as its [Suite.KeySize] says, in a slice of the caller's own. It is
// nil for the zero PublicKey.
func (k PublicKey) Bytes() []byte {
	if k.IsZero() {
		return nil
	}
	return []byte(k.raw)
}

// IsZero reports whether k is the zero value, which is no key.
func (k PublicKey) IsZero() bool { return k == PublicKey{} }

// String returns the key as canonical standard base64, without its suite: 44 characters for [X25519], 1624 for [XWing],
// none for the zero PublicKey.
func (k PublicKey) String() string { return base64.StdEncoding.EncodeToString([]byte(k.raw)) }

// Fingerprint returns the first 12 hex digits of SHA-256 over the raw key, in groups of four: 8c2f-91ab-04de. Daemon
// and phone both show it at pairing, so that a person can see that nobody has replaced the key on its way.
func (k PublicKey) Fingerprint() string { return Fingerprint([]byte(k.raw)) }

// Fingerprint is [PublicKey.Fingerprint] of the raw bytes of a public key, also of a suite that this package does not
// know.
func Fingerprint(raw []byte) string {
	sum := sha256.Sum256(raw)
	digits := hex.EncodeToString(sum[:6])
	return digits[:4] + "-" + digits[4:8] + "-" + digits[8:]
}

// MarshalText returns what [PublicKey.String] returns, so that a key is a string in JSON. The suite has to be written
// beside it. The zero value cannot be marshalled.
func (k PublicKey) MarshalText() ([]byte, error) {
	if k.IsZero() {
		return nil, fmt.Errorf("%w: %w", ErrInvalidKey, errZeroKey())
	}
	return base64.StdEncoding.AppendEncode(nil, []byte(k.raw)), nil
}

// UnmarshalText reads an [X25519] key, as [ParsePublicKey] does. A key of another suite is read with
// [Suite.ParsePublicKey]. On error k is unchanged.
func (k *PublicKey) UnmarshalText(text []byte) error {
	key, err := ParsePublicKey(string(text))
	if err != nil {
		return err
	}
	*k = key
	return nil
}
