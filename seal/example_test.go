package seal_test

import (
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/sealpush/sealpush/seal"
)

// A daemon seals to the key that the phone showed at pairing; the phone opens.
func Example() {
	phone := seal.GenerateKey() // on the phone, once

	key, err := seal.ParsePublicKey(phone.Public().String()) // in the daemon
	if err != nil {
		fmt.Println(err)
		return
	}
	ciphertext, err := seal.Seal(key, []byte("backup failed"))
	if err != nil {
		fmt.Println(err)
		return
	}

	plaintext, err := seal.Open(phone, ciphertext) // on the phone
	fmt.Println(len(ciphertext), string(plaintext), err)
	// Output: 84 backup failed <nil>
}

// A phone with an X-Wing key. The suite is recorded beside the key.
func ExampleSuite() {
	phone := seal.XWing.GenerateKey()

	key, err := seal.Suite("xwing").ParsePublicKey(phone.Public().String())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(key.Suite(), key.Suite().MaxPlaintext(3000), key.Suite().MaxPlaintext(3800))
	ciphertext, err := seal.Seal(key, []byte("backup failed"))
	if err != nil {
		fmt.Println(err)
		return
	}

	plaintext, err := seal.Open(phone, ciphertext)
	fmt.Println(len(ciphertext), string(plaintext), err)
	// Output:
	// xwing 1114 1714
	// 1532 backup failed <nil>
}

func ExampleParsePublicKey() {
	_, err := seal.ParsePublicKey("hOYEMlzO8Lq2VdNjR9RwCrNUhCQn3VxBPVVwY-nxWHw")
	fmt.Println(errors.Is(err, seal.ErrInvalidKey))
	fmt.Println(err)
	// Output:
	// true
	// seal: invalid key: this looks like URL-safe base64 without padding; expected 44 characters of standard base64 with padding
}

func ExamplePublicKey_Fingerprint() {
	key, err := seal.ParsePublicKey("hOYEMlzO8Lq2VdNjR9RwCrNUhCQn3VxBPVVwY+nxWHw=")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(key.Fingerprint())
	// Output: fb86-2141-465b
}

func ExampleOpen_wrongKey() {
	ciphertext, err := seal.Seal(seal.GenerateKey().Public(), []byte("for somebody else"))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = seal.Open(seal.GenerateKey(), ciphertext)
	fmt.Println(err)
	// Output: seal: cannot open the sealed box
}

func ExampleNewPrivateKey() {
	stored, err := base64.StdEncoding.DecodeString("ZLE4+asx4ptgM2rKlXmxkjFSEuzu9B+xFlbqxLyd0/A=") // from the phone's key store
	if err != nil {
		fmt.Println(err)
		return
	}
	key, err := seal.NewPrivateKey(stored)
	fmt.Println(key, err)
	fmt.Println(key.Public())
	// Output:
	// seal.PrivateKey(REDACTED) <nil>
	// 13HRJnTJzyaoiiZAdD2ulOU4FWKvWTFcSmKhVGA+s3Q=
}
