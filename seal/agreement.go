package seal

import "golang.org/x/crypto/salsa20/salsa"

// The two multiplications of a sealed box, generate and agree, are in
// x25519_amd64.go and x25519_portable.go.

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
