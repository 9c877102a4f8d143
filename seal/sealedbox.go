package seal

import (
	"crypto/ecdh"
	"crypto/fips140"
	"crypto/rand"
	"errors"

	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/nacl/box"

	// nacl/box applies HSalsa20 too, but only together with an agreement that takes low-order keys.
	"golang.org/x/crypto/salsa20/salsa" //lint:ignore SA1019 crypto_box_beforenm is this low-level operation
)

// x25519Size is the size of both halves of an X25519 key, in bytes.
const x25519Size = 32

// sealedBox is the scheme of X25519: libsodium's crypto_box_seal. A box is the ephemeral public key and what crypto_box
// makes of the plaintext. The two multiplications, generate and agree, are in x25519_amd64.go and x25519_portable.go.
type sealedBox struct{}

func (sealedBox) keySize() int  { return x25519Size }
func (sealedBox) overhead() int { return x25519Size + box.Overhead } // crypto_box_SEALBYTES

func (sealedBox) checkKey(public []byte) error {
	if isLowOrder((*[x25519Size]byte)(public)) {
		return errLowOrder
	}
	return nil
}

var errLowOrder = errors.New("low-order point: anybody could open what is sealed to it; pair the phone again with a new key")

// isLowOrder reports whether agreeing with public gives all zeros. Any private key shows it: a clamped scalar is a
// multiple of 8, the largest small order, and never one of the large prime order.
//
// FIPS-only mode forbids X25519 by itself. Here it keeps no secret, and as a half of X-Wing it is allowed.
func isLowOrder(public *[x25519Size]byte) (low bool) {
	fips140.WithoutEnforcement(func() {
		var anyKey, shared [x25519Size]byte
		low = !agree(&shared, &anyKey, public)
	})
	return low
}

func (sealedBox) generateKey() opener {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		panic("seal: " + err.Error()) // crypto/rand does not fail; it ends the program first
	}
	return x25519Opener{key}
}

func (sealedBox) newKey(private *[privateKeySize]byte) (opener, error) {
	key, err := ecdh.X25519().NewPrivateKey(private[:])
	if err != nil {
		return nil, err
	}
	return x25519Opener{key}, nil
}

func (sealedBox) seal(room []byte, to string, plaintext []byte) ([]byte, error) {
	var ephemeral, shared, recipient [x25519Size]byte
	copy(recipient[:], to)
	ephemeralPublic := generate(&ephemeral)
	if !agree(&shared, &ephemeral, &recipient) {
		return nil, errLowOrder
	}
	return sealShared(room, &ephemeralPublic, &shared, &recipient, plaintext), nil
}

// sealShared seals the plaintext under the shared secret of the ephemeral and the recipient's key.
func sealShared(room []byte, ephemeral, shared, recipient *[x25519Size]byte, plaintext []byte) []byte {
	boxKey := deriveBoxKey(shared)
	nonce := boxNonce(ephemeral, recipient)
	return box.SealAfterPrecomputation(append(room, ephemeral[:]...), plaintext, &nonce, &boxKey)
}

type x25519Opener struct{ key *ecdh.PrivateKey }

func (o x25519Opener) private() []byte { return o.key.Bytes() }
func (o x25519Opener) public() []byte  { return o.key.PublicKey().Bytes() }

func (o x25519Opener) open(sealed []byte) ([]byte, bool) {
	ephemeral := [x25519Size]byte(sealed)
	private, public := [x25519Size]byte(o.private()), [x25519Size]byte(o.public())
	var shared [x25519Size]byte
	if !agree(&shared, &private, &ephemeral) {
		return nil, false
	}
	boxKey := deriveBoxKey(&shared)
	nonce := boxNonce(&ephemeral, &public)
	return box.OpenAfterPrecomputation(nil, sealed[x25519Size:], &nonce, &boxKey)
}

// deriveBoxKey makes the key of the box from the shared secret, as crypto_box_beforenm does.
func deriveBoxKey(shared *[x25519Size]byte) (key [32]byte) {
	var zeros [16]byte
	salsa.HSalsa20(&key, &zeros, shared, &salsa.Sigma)
	return key
}

// boxNonce is crypto_box_seal's nonce: BLAKE2b-192 of both public keys.
func boxNonce(ephemeral, recipient *[x25519Size]byte) (nonce [24]byte) {
	h, err := blake2b.New(len(nonce), nil)
	if err != nil {
		panic("seal: " + err.Error()) // only for sizes outside 1..64
	}
	h.Write(ephemeral[:])
	h.Write(recipient[:])
	h.Sum(nonce[:0])
	return nonce
}
