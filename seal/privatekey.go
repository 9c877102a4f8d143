package seal

import (
	"crypto/ecdh"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
)

// PrivateKey is a phone's X25519 private key. A daemon never holds one.
//
// It prints as a placeholder in fmt and log/slog, and encoding/json refuses it;
// only [PrivateKey.Bytes] gives the secret away. The zero value is no key:
// opening with it fails with [ErrInvalidKey]. PrivateKey is immutable and safe
// for concurrent use.
type PrivateKey struct {
	// Behind a pointer, because fmt calls no methods on unexported fields of a
	// caller's struct: it would print an array held here by value.
	pair *keyPair
	_    [0]func() // not comparable: == would compare pointers
}

type keyPair struct {
	private *ecdh.PrivateKey
	public  PublicKey
}

// GenerateKey makes a new private key from the system's secure random source.
func GenerateKey() PrivateKey {
	private, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		panic("seal: " + err.Error()) // crypto/rand does not fail; it ends the program first
	}
	return newPrivateKey(private)
}

// NewPrivateKey makes a private key of [KeySize] raw bytes, as
// [PrivateKey.Bytes] returns them. The error wraps [ErrInvalidKey] and does not
// quote the bytes.
func NewPrivateKey(raw []byte) (PrivateKey, error) {
	if len(raw) != KeySize {
		return PrivateKey{}, fmt.Errorf("%w: a private key has %d bytes, this one has %d", ErrInvalidKey, KeySize, len(raw))
	}
	private, err := ecdh.X25519().NewPrivateKey(raw)
	if err != nil {
		return PrivateKey{}, fmt.Errorf("%w: %w", ErrInvalidKey, err)
	}
	return newPrivateKey(private), nil
}

func newPrivateKey(private *ecdh.PrivateKey) PrivateKey {
	public := PublicKey{raw: [KeySize]byte(private.PublicKey().Bytes())}
	return PrivateKey{pair: &keyPair{private: private, public: public}}
}

// Public returns the public half, which is the zero [PublicKey] for the zero
// PrivateKey.
func (k PrivateKey) Public() PublicKey {
	if k.pair == nil {
		return PublicKey{}
	}
	return k.pair.public
}

// Bytes returns the [KeySize] secret bytes, for the phone's key store, in a
// slice of the caller's own. It is nil for the zero PrivateKey.
func (k PrivateKey) Bytes() []byte {
	if k.pair == nil {
		return nil
	}
	return k.pair.private.Bytes()
}

const redacted = "seal.PrivateKey(REDACTED)"

// String returns a placeholder, never the key.
func (k PrivateKey) String() string { return redacted }

// Format prints the placeholder for every verb.
func (k PrivateKey) Format(s fmt.State, _ rune) { io.WriteString(s, redacted) }

// LogValue logs the placeholder.
func (k PrivateKey) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText always fails, so that no encoder writes the key out by accident.
// Store [PrivateKey.Bytes] where the platform keeps secrets.
func (k PrivateKey) MarshalText() ([]byte, error) {
	return nil, fmt.Errorf("seal: a PrivateKey is not encoded implicitly; store PrivateKey.Bytes in a key store")
}
