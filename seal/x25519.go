package seal

import (
	"crypto/ecdh"
	"crypto/rand"

	"golang.org/x/crypto/salsa20/salsa"
)

// generate fills private with a fresh X25519 key and returns its public half.
func generate(private *[KeySize]byte) (public [KeySize]byte) {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		panic("seal: " + err.Error()) // crypto/rand does not fail; it ends the program first
	}
	copy(private[:], key.Bytes())
	return [KeySize]byte(key.PublicKey().Bytes())
}

// agree computes X25519(private, public) in constant time. It reports false
// when the result is all zero, which happens exactly for low-order public keys.
func agree(shared, private, public *[KeySize]byte) bool {
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

// isLowOrder reports whether agreeing with public gives all zeros. Any private
// key shows it: a clamped scalar is a multiple of 8, the largest small order,
// and never one of the large prime order.
func isLowOrder(public *[KeySize]byte) bool {
	var anyKey, shared [KeySize]byte
	return !agree(&shared, &anyKey, public)
}

// deriveBoxKey is what crypto_box_beforenm does to the agreement.
func deriveBoxKey(shared *[KeySize]byte) (key [KeySize]byte) {
	var zeros [16]byte
	salsa.HSalsa20(&key, &zeros, shared, &salsa.Sigma)
	return key
}
