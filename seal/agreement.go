package seal

// nacl/box applies HSalsa20 too, but only together with an agreement that takes
// low-order keys.
import "golang.org/x/crypto/salsa20/salsa" //lint:ignore SA1019 crypto_box_beforenm is this low-level operation

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
