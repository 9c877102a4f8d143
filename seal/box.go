package seal

import (
	"encoding/base64"
	"errors"
	"fmt"
)

// ErrOpen is wrapped by [Open]'s error for a box that is not base64, is truncated, was changed, or was sealed to
// another key. The error does not say which of these it was, as in libsodium.
var ErrOpen = errors.New("seal: cannot open the sealed box")

// Seal encrypts plaintext to the key, by the scheme of the key's suite, and returns the box as standard base64. Each
// call uses a fresh ephemeral key, so sealing the same plaintext twice gives two unrelated boxes.
//
// The plaintext may have any length and is not changed. A caller that must limit the ciphertext limits the plaintext to
// [Suite.MaxPlaintext]. The zero PublicKey fails with [ErrInvalidKey].
func Seal(to PublicKey, plaintext []byte) (ciphertext string, err error) {
	var text [4096]byte // a longer one goes to the heap
	sealed, err := AppendSeal(text[:0], to, plaintext)
	return string(sealed), err
}

// AppendSeal appends what [Seal] returns to dst and returns the extended slice, so that a message around the ciphertext
// is built without copying it. With an error it returns nil, and dst is as it was.
func AppendSeal(dst []byte, to PublicKey, plaintext []byte) ([]byte, error) {
	var room [3072]byte
	box, err := to.suite.sealBox(room[:0], to.raw, plaintext)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidKey, err)
	}
	return base64.StdEncoding.AppendEncode(dst, box), nil
}

// Open decrypts what [Seal], or another implementation of the key's suite, sealed to the key's public half. It is the
// phone's side: an app's notification extension does this with what the push service delivered.
//
// Ciphertext is standard base64 with padding and without white space, of any length. The error wraps [ErrOpen], or
// [ErrInvalidKey] for the zero PrivateKey.
func Open(with PrivateKey, ciphertext string) ([]byte, error) {
	if with.pair == nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidKey, errZeroKey())
	}
	box, err := decodeBase64(base64.StdEncoding.Strict(), ciphertext)
	if err != nil {
		return nil, fmt.Errorf("%w: not standard base64: %w", ErrOpen, err)
	}
	if overhead := with.pair.public.suite.Overhead(); len(box) < overhead {
		return nil, fmt.Errorf("%w: %d bytes, a box of suite %s has at least %d", ErrOpen, len(box), with.pair.public.suite, overhead)
	}
	plaintext, ok := with.pair.private.open(box)
	if !ok {
		return nil, ErrOpen
	}
	return plaintext, nil
}
