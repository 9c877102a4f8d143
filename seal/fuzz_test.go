package seal_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"golang.org/x/crypto/nacl/box"

	"github.com/sealpush/sealpush/seal"
)

func FuzzParsePublicKey(f *testing.F) {
	for _, c := range loadKeys(f) {
		f.Add(c.Input)
	}
	f.Fuzz(func(t *testing.T, text string) { fuzzKey(t, seal.X25519, text) })
}

func FuzzParseXWingPublicKey(f *testing.F) {
	for _, c := range loadXWing(f) {
		f.Add(c.PublicKey)
		f.Add(" " + c.PublicKey[:1576] + strings.Repeat("A", 46) + "==")
		f.Add("////" + c.PublicKey[4:])
		f.Add(c.PublicKey[4:])
	}
	for _, c := range loadKeys(f) {
		f.Add(c.Input)
	}
	f.Fuzz(func(t *testing.T, text string) { fuzzKey(t, seal.XWing, text) })
}

// fuzzKey holds ParsePublicKey to its promises: what is refused is refused with the
// one error, what is taken reads the same again and can be sealed to.
func fuzzKey(t *testing.T, suite seal.Suite, text string) {
	key, err := suite.ParsePublicKey(text)
	if err != nil {
		if !errors.Is(err, seal.ErrInvalidKey) || !key.IsZero() {
			t.Fatalf("ParsePublicKey(%q) = %v, %v", text, key, err)
		}
		return
	}
	if again, err := suite.ParsePublicKey(key.String()); err != nil || again != key {
		t.Fatalf("canonical form %v reads as %v, %v", key, again, err)
	}
	if key.Suite() != suite || len(key.Bytes()) != suite.KeySize() {
		t.Fatalf("a key of %s has suite %s and %d bytes", suite, key.Suite(), len(key.Bytes()))
	}
	if _, err := seal.Seal(key, nil); err != nil {
		t.Fatalf("a parsed key cannot be sealed to: %v", err)
	}
}

// FuzzOpenXWing: what is opened is what the standard library's HPKE opens it to.
func FuzzOpenXWing(f *testing.F) {
	for _, c := range loadXWing(f) {
		f.Add(c.Seed, c.Ciphertext)
		f.Add(c.Seed, c.Ciphertext[:1516])
		f.Add(c.Seed, c.Ciphertext[4:])
	}
	f.Fuzz(func(t *testing.T, seed []byte, text string) {
		private, err := seal.XWing.NewPrivateKey(seed)
		if err != nil {
			if !errors.Is(err, seal.ErrInvalidKey) {
				t.Fatal(err)
			}
			return
		}
		plaintext, err := seal.Open(private, text)
		if err != nil {
			if !errors.Is(err, seal.ErrOpen) || plaintext != nil {
				t.Fatalf("Open = %q, %v", plaintext, err)
			}
			return
		}
		if theirs := openWithHPKE(t, seed, text); string(theirs) != string(plaintext) {
			t.Fatalf("crypto/hpke opens it to %q, we to %q", theirs, plaintext)
		}
	})
}

func FuzzOpen(f *testing.F) {
	v := loadBoxes(f)
	for _, c := range v.Open {
		f.Add(c.PrivateKey, c.Ciphertext)
	}
	for _, c := range v.Refuse {
		f.Add(c.PrivateKey, c.Ciphertext)
	}
	f.Fuzz(func(t *testing.T, raw []byte, text string) {
		private, err := seal.NewPrivateKey(raw)
		if err != nil {
			if !errors.Is(err, seal.ErrInvalidKey) {
				t.Fatal(err)
			}
			return
		}
		plaintext, err := seal.Open(private, text)
		if err != nil {
			if !errors.Is(err, seal.ErrOpen) || plaintext != nil {
				t.Fatalf("Open = %q, %v", plaintext, err)
			}
			return
		}
		// What we open, another implementation opens to the same.
		sealed, err := base64.StdEncoding.DecodeString(text)
		if err != nil || base64.StdEncoding.EncodeToString(sealed) != text {
			t.Fatalf("opened text that is not canonical base64: %q", text)
		}
		public, secret := [32]byte(private.Public().Bytes()), [32]byte(raw)
		if theirs, ok := box.OpenAnonymous(nil, sealed, &public, &secret); !ok || string(theirs) != string(plaintext) {
			t.Fatalf("nacl/box opens it to %q, %v; we to %q", theirs, ok, plaintext)
		}
	})
}
