package apns

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

// ErrInvalidKey is wrapped by every error about a key that cannot be used.
var ErrInvalidKey = errors.New("apns: invalid key")

// A Key signs provider tokens for a team's apps. It prints, logs and encodes to JSON without its secret. It does not
// change and is safe for concurrent use.
type Key struct {
	id, team string
	// Behind a function, so that no verb of fmt finds it.
	private func() *ecdsa.PrivateKey
}

// ParseKey reads the contents of a .p8 file: a P-256 private key in PKCS #8, PEM. The key id and the team id are of 10
// characters and stand beside the key on Apple's developer pages. The error wraps [ErrInvalidKey] and quotes nothing of
// the key.
func ParseKey(p8 []byte, keyID, teamID string) (*Key, error) {
	switch {
	case !isID(keyID):
		return nil, fmt.Errorf("%w: the key id must be 10 upper-case letters and digits", ErrInvalidKey)
	case !isID(teamID):
		return nil, fmt.Errorf("%w: the team id must be 10 upper-case letters and digits", ErrInvalidKey)
	}
	private, err := jwt.ParseECPrivateKeyFromPEM(p8)
	if err != nil {
		return nil, fmt.Errorf("%w: want the .p8 file as Apple issued it: %w", ErrInvalidKey, err)
	}
	if private.Curve != elliptic.P256() {
		return nil, fmt.Errorf("%w: its curve is %s, Apple's keys are on P-256", ErrInvalidKey, private.Curve.Params().Name)
	}
	return &Key{id: keyID, team: teamID, private: func() *ecdsa.PrivateKey { return private }}, nil
}

// LoadKey reads a .p8 file under the name that Apple gave it, which holds the key id: AuthKey_ABC123DEFG.p8. Under
// another name, use [ParseKey].
func LoadKey(path, teamID string) (*Key, error) {
	name := filepath.Base(path)
	keyID, prefixed := strings.CutPrefix(name, "AuthKey_")
	keyID, suffixed := strings.CutSuffix(keyID, ".p8")
	if !prefixed || !suffixed {
		return nil, fmt.Errorf("%w: the file is called %q, not AuthKey_…….p8, so its key id is not known", ErrInvalidKey, name)
	}
	p8, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("apns: %w", err)
	}
	return ParseKey(p8, keyID, teamID)
}

func isID(s string) bool {
	return len(s) == 10 && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}

// ID is the key id.
func (k *Key) ID() string { return k.id }

// Format prints what [Key.String] says, for every verb.
func (k *Key) Format(s fmt.State, _ rune) { io.WriteString(s, k.String()) }

// String names the key by its id.
func (k *Key) String() string { return "APNs key " + k.id }

// LogValue logs what [Key.String] says.
func (k *Key) LogValue() slog.Value { return slog.StringValue(k.String()) }
