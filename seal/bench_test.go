package seal_test

import (
	"crypto/hpke"
	"crypto/rand"
	"testing"

	"golang.org/x/crypto/nacl/box"

	"github.com/sealpush/sealpush/seal"
)

func BenchmarkSeal(b *testing.B) {
	for _, suite := range seal.Suites() {
		b.Run(string(suite), func(b *testing.B) {
			to := suite.GenerateKey().Public()
			plaintext := make([]byte, suite.MaxPlaintext(floor))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := seal.Seal(to, plaintext); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSealAnonymous is what BenchmarkSeal/x25519 is compared with.
func BenchmarkSealAnonymous(b *testing.B) {
	to := [32]byte(seal.GenerateKey().Public().Bytes())
	plaintext := make([]byte, seal.X25519.MaxPlaintext(floor))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := box.SealAnonymous(nil, plaintext, &to, rand.Reader); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHPKESeal is what BenchmarkSeal/xwing is compared with.
func BenchmarkHPKESeal(b *testing.B) {
	raw := seal.XWing.GenerateKey().Public().Bytes()
	plaintext := make([]byte, seal.XWing.MaxPlaintext(floor))
	b.ReportAllocs()
	for b.Loop() {
		key, err := hpke.MLKEM768X25519().NewPublicKey(raw)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := hpke.Seal(key, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte("cronstable-push-xwing"), plaintext); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, suite := range seal.Suites() {
		b.Run(string(suite), func(b *testing.B) {
			private := suite.GenerateKey()
			text, err := seal.Seal(private.Public(), make([]byte, suite.MaxPlaintext(floor)))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := seal.Open(private, text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParsePublicKey(b *testing.B) {
	for _, suite := range seal.Suites() {
		b.Run(string(suite), func(b *testing.B) {
			text := suite.GenerateKey().Public().String()
			for b.Loop() {
				if _, err := suite.ParsePublicKey(text); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
