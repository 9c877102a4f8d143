//go:build !purego && !race

package seal_test

import (
	"testing"

	"github.com/sealpush/sealpush/seal"
)

// The result, and what lies between plaintext and base64.
func TestSealAllocatesTwice(t *testing.T) {
	to := seal.GenerateKey().Public()
	plaintext := make([]byte, seal.X25519.MaxPlaintext(floor))
	allocs := testing.AllocsPerRun(50, func() {
		if _, err := seal.Seal(to, plaintext); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 2 {
		t.Errorf("Seal allocates %v times", allocs)
	}
}

// With room in dst, only what lies between plaintext and base64.
func TestAppendSealAllocatesOnce(t *testing.T) {
	to := seal.GenerateKey().Public()
	plaintext := make([]byte, seal.X25519.MaxPlaintext(floor))
	dst := make([]byte, 0, floor)
	allocs := testing.AllocsPerRun(50, func() {
		if _, err := seal.AppendSeal(dst, to, plaintext); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 1 {
		t.Errorf("AppendSeal allocates %v times", allocs)
	}
}
