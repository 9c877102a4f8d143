package seal

import (
	"crypto/fips140"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// A Suite is the name of an encryption scheme, as it stands in pairing requests, registries and envelopes. A key
// belongs to one suite, and the suite decides how long keys and boxes are. [Suites] lists those that can be used. The
// methods of any other Suite return zero values, and [ErrUnknownSuite] where they return an error.
type Suite string

const (
	// X25519 is libsodium's sealed box. It is the suite of a device without a recorded one.
	X25519 Suite = "x25519"
	// XWing is HPKE in base mode with the X-Wing KEM, which is ML-KEM-768 combined with X25519. It keeps recorded
	// messages secret from a later quantum computer.
	XWing Suite = "xwing"
)

// Suites returns the suites that can be used, sorted by name, in a slice of the caller's own: those that this package
// implements, but without [X25519] in Go's FIPS-only mode (GODEBUG=fips140=only), where [XWing] is allowed.
func Suites() []Suite {
	if fips140.Enforced() {
		return []Suite{XWing}
	}
	return []Suite{X25519, XWing}
}

var (
	// ErrUnknownSuite is wrapped by the error of a [Suite] that is none of [Suites].
	ErrUnknownSuite = errors.New("seal: unknown suite")
	// ErrFIPSOnly is the error of [X25519] in Go's FIPS-only mode. It wraps [ErrUnknownSuite].
	ErrFIPSOnly = fmt.Errorf("%w: x25519 is not allowed in FIPS-only mode; pair phones with suite xwing, or set GODEBUG=fips140=on", ErrUnknownSuite)
)

// A scheme does the work of a suite. Each has a file of its own.
type scheme interface {
	keySize() int  // bytes of a public key
	overhead() int // bytes that a box is longer than its plaintext
	// checkKey says what is wrong with keySize bytes as a public key.
	checkKey(public []byte) error
	generateKey() opener
	newKey(private *[privateKeySize]byte) (opener, error)
}

// An opener is a private key that is ready for use.
type opener interface {
	private() []byte // in a slice of the caller's own
	public() []byte
	open(box []byte) (plaintext []byte, ok bool)
}

func (s Suite) scheme() scheme {
	switch {
	case s == X25519 && !fips140.Enforced():
		return sealedBox{}
	case s == XWing:
		return xwing{}
	}
	return nil
}

// sealBox returns the box, in room if it fits there. It is not a method of scheme, because the arguments of an
// interface's method are moved to the heap.
func (s Suite) sealBox(room []byte, to string, plaintext []byte) ([]byte, error) {
	switch s {
	case X25519:
		return sealedBox{}.seal(room, to, plaintext)
	case XWing:
		return xwing{}.seal(to, plaintext)
	}
	return nil, errZeroKey()
}

func (s Suite) errUnknown() error {
	if s == X25519 {
		return ErrFIPSOnly
	}
	return fmt.Errorf("%w: %.32q is none of %v", ErrUnknownSuite, string(s), Suites())
}

// KeySize is the size of a public key, in bytes: 32 for [X25519], 1216 for [XWing].
func (s Suite) KeySize() int {
	if scheme := s.scheme(); scheme != nil {
		return scheme.keySize()
	}
	return 0
}

// Overhead is how many bytes a box is longer than its plaintext, before base64: 48 for [X25519], 1136 for [XWing].
func (s Suite) Overhead() int {
	if scheme := s.scheme(); scheme != nil {
		return scheme.overhead()
	}
	return 0
}

// MaxPlaintext returns how many bytes of plaintext fit into a ciphertext of at most maxCiphertext characters of base64.
// It is negative where not even an empty plaintext fits, and 0 for an unknown suite.
func (s Suite) MaxPlaintext(maxCiphertext int) int {
	if s.scheme() == nil {
		return 0
	}
	return maxCiphertext/4*3 - s.Overhead()
}

// ParsePublicKey reads a public key from standard base64 with padding: 44 characters for [X25519], 1624 for [XWing].
// White space around the text is ignored; inside it is refused.
//
// The error wraps [ErrInvalidKey] and says what the text looks like instead, such as hex or URL-safe base64. It never
// quotes the text, in case a private key was pasted by mistake.
func (s Suite) ParsePublicKey(text string) (PublicKey, error) {
	scheme := s.scheme()
	if scheme == nil {
		return PublicKey{}, s.errUnknown()
	}
	text = strings.TrimSpace(text)
	raw, err := decodeBase64(base64.StdEncoding, text)
	if err != nil || len(raw) != scheme.keySize() {
		return PublicKey{}, fmt.Errorf("%w: %s", ErrInvalidKey, s.describeKeyText(text, raw, err))
	}
	return s.NewPublicKey(raw)
}

// NewPublicKey makes a public key of its [Suite.KeySize] raw bytes. The error wraps [ErrInvalidKey].
//
// For [X25519] they are what crypto_box_keypair of libsodium returns; for [XWing] the ML-KEM-768 encapsulation key,
// 1184 bytes, and an X25519 public key.
func (s Suite) NewPublicKey(raw []byte) (PublicKey, error) {
	scheme := s.scheme()
	if scheme == nil {
		return PublicKey{}, s.errUnknown()
	}
	if len(raw) != scheme.keySize() {
		return PublicKey{}, fmt.Errorf("%w: %s", ErrInvalidKey, s.describeKeySize(len(raw)))
	}
	if err := scheme.checkKey(raw); err != nil {
		return PublicKey{}, fmt.Errorf("%w: %w", ErrInvalidKey, err)
	}
	return PublicKey{suite: s, raw: string(raw)}, nil
}

// GenerateKey makes a new private key from the system's secure random source. For an unknown suite it returns the zero
// PrivateKey.
func (s Suite) GenerateKey() PrivateKey {
	scheme := s.scheme()
	if scheme == nil {
		return PrivateKey{}
	}
	return s.newPrivateKey(scheme.generateKey())
}

// NewPrivateKey makes a private key of 32 raw bytes, as [PrivateKey.Bytes] returns them: the scalar of an [X25519] key,
// the seed of an [XWing] key. The error wraps [ErrInvalidKey] and does not quote the bytes.
func (s Suite) NewPrivateKey(raw []byte) (PrivateKey, error) {
	scheme := s.scheme()
	if scheme == nil {
		return PrivateKey{}, s.errUnknown()
	}
	if len(raw) != privateKeySize {
		return PrivateKey{}, fmt.Errorf("%w: a private key has %d bytes, this one has %d", ErrInvalidKey, privateKeySize, len(raw))
	}
	key, err := scheme.newKey((*[privateKeySize]byte)(raw))
	if err != nil {
		return PrivateKey{}, fmt.Errorf("%w: %w", ErrInvalidKey, err)
	}
	return s.newPrivateKey(key), nil
}

func (s Suite) newPrivateKey(key opener) PrivateKey {
	return PrivateKey{pair: &keyPair{key, PublicKey{suite: s, raw: string(key.public())}}}
}

// ParsePublicKey is [Suite.ParsePublicKey] of [X25519].
func ParsePublicKey(text string) (PublicKey, error) { return X25519.ParsePublicKey(text) }

// NewPublicKey is [Suite.NewPublicKey] of [X25519].
func NewPublicKey(raw []byte) (PublicKey, error) { return X25519.NewPublicKey(raw) }

// GenerateKey is [Suite.GenerateKey] of [X25519].
func GenerateKey() PrivateKey { return X25519.GenerateKey() }

// NewPrivateKey is [Suite.NewPrivateKey] of [X25519].
func NewPrivateKey(raw []byte) (PrivateKey, error) { return X25519.NewPrivateKey(raw) }
