//go:build !amd64 || purego

package seal

import (
	"crypto/ecdh"
	"crypto/rand"
)

// generate fills private with a fresh X25519 key and returns its public half.
func generate(private *[x25519Size]byte) (public [x25519Size]byte) {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		panic("seal: " + err.Error()) // crypto/rand does not fail; it ends the program first
	}
	copy(private[:], key.Bytes())
	return [x25519Size]byte(key.PublicKey().Bytes())
}

// agree computes X25519(private, public) in constant time. It reports false when the result is all zero, which happens
// exactly for low-order public keys.
func agree(shared, private, public *[x25519Size]byte) bool {
	key, err := ecdh.X25519().NewPrivateKey(private[:])
	if err != nil {
		return false
	}
	peer, err := ecdh.X25519().NewPublicKey(public[:])
	if err != nil {
		return false
	}
	secret, err := key.ECDH(peer)
	if err != nil {
		return false
	}
	copy(shared[:], secret)
	return true
}
