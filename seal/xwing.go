package seal

import (
	"crypto/hpke"
	"crypto/mlkem"
	"fmt"
)

// xwing is the scheme of XWing: single-shot HPKE in base mode (RFC 9180) with the KEM X-Wing (0x647a), HKDF-SHA256,
// AES-256-GCM and no additional data. A box is the encapsulated key, which is the ML-KEM ciphertext and an ephemeral
// X25519 key, and the sealed plaintext with its tag.
type xwing struct{}

const (
	xwingInfo = "cronstable-push-xwing"
	gcmTag    = 16
)

func (xwing) keySize() int  { return mlkem.EncapsulationKeySize768 + x25519Size }
func (xwing) overhead() int { return mlkem.CiphertextSize768 + x25519Size + gcmTag }

func (xwing) checkKey(public []byte) error {
	if _, err := hpke.MLKEM768X25519().NewPublicKey(public); err != nil {
		return fmt.Errorf("the ML-KEM half is not valid; pair the phone again with a new key: %w", err)
	}
	if half := public[mlkem.EncapsulationKeySize768:]; isLowOrder((*[x25519Size]byte)(half)) {
		return fmt.Errorf("the X25519 half: %w", errLowOrder)
	}
	return nil
}

func (xwing) generateKey() opener {
	key, err := hpke.MLKEM768X25519().GenerateKey()
	if err != nil {
		panic("seal: " + err.Error()) // crypto/rand does not fail; it ends the program first
	}
	return xwingOpener{key}
}

func (xwing) newKey(private *[privateKeySize]byte) (opener, error) {
	key, err := hpke.MLKEM768X25519().NewPrivateKey(private[:])
	if err != nil {
		return nil, err
	}
	return xwingOpener{key}, nil
}

// seal parses the key each time. A parsed key has several times its size, and could not be compared.
func (xwing) seal(to string, plaintext []byte) ([]byte, error) {
	key, err := hpke.MLKEM768X25519().NewPublicKey([]byte(to))
	if err != nil {
		return nil, err
	}
	return hpke.Seal(key, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte(xwingInfo), plaintext)
}

type xwingOpener struct{ key hpke.PrivateKey }

func (o xwingOpener) private() []byte {
	seed, err := o.key.Bytes()
	if err != nil {
		panic("seal: " + err.Error()) // only for keys that were not made of a seed
	}
	return append([]byte(nil), seed...)
}

func (o xwingOpener) public() []byte { return o.key.PublicKey().Bytes() }

func (o xwingOpener) open(box []byte) ([]byte, bool) {
	plaintext, err := hpke.Open(o.key, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte(xwingInfo), box)
	return plaintext, err == nil
}
