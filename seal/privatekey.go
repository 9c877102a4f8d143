package seal

import (
	"fmt"
	"io"
	"log/slog"
)

// privateKeySize is the size of a private key of every suite, in bytes.
const privateKeySize = 32

// PrivateKey is a phone's private key, of one [Suite]. A daemon never holds one.
//
// It prints as a placeholder in fmt and log/slog, and encoding/json refuses it; only [PrivateKey.Bytes] returns the
// secret. The zero value is no key: opening with it fails with [ErrInvalidKey].
type PrivateKey struct {
	// Behind a pointer, because fmt calls no methods on unexported fields of a caller's struct: it would print an array
	// held here by value.
	pair *keyPair
	_    [0]func() // not comparable: == would compare pointers
}

type keyPair struct {
	private opener
	public  PublicKey
}

// Public returns the public half, which is the zero [PublicKey] for the zero PrivateKey.
func (k PrivateKey) Public() PublicKey {
	if k.pair == nil {
		return PublicKey{}
	}
	return k.pair.public
}

// Bytes returns the 32 secret bytes, for the phone's key store, in a slice of the caller's own. It is nil for the zero
// PrivateKey.
func (k PrivateKey) Bytes() []byte {
	if k.pair == nil {
		return nil
	}
	return k.pair.private.private()
}

const redacted = "seal.PrivateKey(REDACTED)"

// String returns a placeholder, never the key.
func (k PrivateKey) String() string { return redacted }

// Format prints the placeholder for every verb.
func (k PrivateKey) Format(s fmt.State, _ rune) { io.WriteString(s, redacted) }

// LogValue logs the placeholder.
func (k PrivateKey) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText always fails, so that no encoder writes the key out by accident. Store [PrivateKey.Bytes] where the
// platform keeps secrets.
func (k PrivateKey) MarshalText() ([]byte, error) {
	return nil, fmt.Errorf("seal: a PrivateKey is not encoded implicitly; store PrivateKey.Bytes in a key store")
}
