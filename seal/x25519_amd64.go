//go:build !purego

package seal

import (
	"crypto/rand"

	"github.com/cloudflare/circl/dh/x25519"
)

// On amd64 CIRCL computes both multiplications in constant-time assembly, in about half the time of crypto/ecdh;
// elsewhere it has no such advantage.

// generate fills private with a fresh X25519 key and returns its public half.
func generate(private *[x25519Size]byte) (public [x25519Size]byte) {
	rand.Read(private[:])
	x25519.KeyGen((*x25519.Key)(&public), (*x25519.Key)(private))
	return public
}

// agree computes X25519(private, public) in constant time. It reports false when the result is all zero, which happens
// exactly for low-order public keys.
func agree(shared, private, public *[x25519Size]byte) bool {
	return x25519.Shared((*x25519.Key)(shared), (*x25519.Key)(private), (*x25519.Key)(public))
}
