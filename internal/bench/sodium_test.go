package main

import (
	"bytes"
	"encoding/base64"
	"testing"

	"github.com/sealpush/sealpush/seal"
)

// Boxes of ours open with libsodium, and libsodium's with us.
func TestLibsodium(t *testing.T) {
	if err := sodiumInit(); err != nil {
		t.Fatal(err)
	}
	phone := seal.GenerateKey()
	public, private := [32]byte(phone.Public().Bytes()), [32]byte(phone.Bytes())
	for _, size := range []int{0, 1, 63, 64, 65, 1000, 2202} {
		message := bytes.Repeat([]byte{'a'}, size)

		text, err := seal.Seal(phone.Public(), message)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := sodiumOpen(ours, &public, &private); !ok || !bytes.Equal(got, message) {
			t.Errorf("libsodium does not open our box of %d bytes", size)
		}
		ours[len(ours)-1] ^= 1
		if _, ok := sodiumOpen(ours, &public, &private); ok {
			t.Errorf("libsodium opens a changed box of %d bytes", size)
		}

		theirs := make([]byte, size+overhead)
		if !sodiumSeal(theirs, message, &public) {
			t.Fatal("crypto_box_seal failed")
		}
		got, err := seal.Open(phone, base64.StdEncoding.EncodeToString(theirs))
		if err != nil || !bytes.Equal(got, message) {
			t.Errorf("we do not open libsodium's box of %d bytes: %v", size, err)
		}
	}
}
