package seal_test

import (
	"crypto/rand"
	"testing"

	"golang.org/x/crypto/nacl/box"

	"github.com/sealpush/sealpush/seal"
)

func BenchmarkSeal(b *testing.B) {
	to := seal.GenerateKey().Public()
	plaintext := make([]byte, seal.MaxPlaintext)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := seal.Seal(to, plaintext); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSealAnonymous is the yardstick for BenchmarkSeal.
func BenchmarkSealAnonymous(b *testing.B) {
	to := [32]byte(seal.GenerateKey().Public().Bytes())
	plaintext := make([]byte, seal.MaxPlaintext)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := box.SealAnonymous(nil, plaintext, &to, rand.Reader); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	private := seal.GenerateKey()
	text, err := seal.Seal(private.Public(), make([]byte, seal.MaxPlaintext))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := seal.Open(private, text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParsePublicKey(b *testing.B) {
	text := seal.GenerateKey().Public().String()
	for b.Loop() {
		if _, err := seal.ParsePublicKey(text); err != nil {
			b.Fatal(err)
		}
	}
}
