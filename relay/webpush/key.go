package webpush

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/sealpush/sealpush/secret"
)

// ErrInvalidKey is returned for a text that is no VAPID key.
var ErrInvalidKey = errors.New("webpush: a VAPID key is a private key of P-256: 32 bytes in base64url without padding")

// A Key identifies a relay to push services (VAPID, RFC 8292). A browser subscribes for one key, and the push service
// takes messages that are signed with it alone: a relay that loses its key loses every phone. It prints, logs and
// encodes to JSON without its secret. It does not change and is safe for concurrent use.
type Key struct {
	private secret.Text // base64url
	public  string
}

// GenerateKey makes a key.
func GenerateKey() *Key {
	private, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // unreachable: crypto/rand does not fail
	}
	return newKey(private)
}

// ParseKey reads a key as [Key.Private] has it. The error is [ErrInvalidKey].
func ParseKey(text secret.Text) (*Key, error) {
	raw, err := decode(text.Reveal(), 32)
	if err != nil {
		return nil, ErrInvalidKey
	}
	private, err := ecdh.P256().NewPrivateKey(raw)
	if err != nil {
		return nil, ErrInvalidKey
	}
	return newKey(private), nil
}

func newKey(private *ecdh.PrivateKey) *Key {
	return &Key{
		private: secret.New(base64.RawURLEncoding.EncodeToString(private.Bytes())),
		public:  base64.RawURLEncoding.EncodeToString(private.PublicKey().Bytes()),
	}
}

// Private returns the key as a text to keep: 32 bytes in base64url without padding.
func (k *Key) Private() secret.Text { return k.private }

// PublicKey returns what a page gives to pushManager.subscribe as applicationServerKey: 65 bytes in base64url without
// padding.
func (k *Key) PublicKey() string { return k.public }

// String names the key by its public half.
func (k *Key) String() string { return "VAPID key " + k.public }

// Format prints what [Key.String] says, for every verb.
func (k *Key) Format(s fmt.State, _ rune) { io.WriteString(s, k.String()) }

// LogValue logs what [Key.String] says.
func (k *Key) LogValue() slog.Value { return slog.StringValue(k.String()) }
