package main

// #cgo pkg-config: libsodium
// #include <sodium.h>
import "C"

import (
	"errors"

	"github.com/sealpush/sealpush/seal"
)

func sodiumInit() error {
	if C.sodium_init() < 0 {
		return errors.New("libsodium does not start")
	}
	return nil
}

func sodiumVersion() string { return C.GoString(C.sodium_version_string()) }

// sodiumSeal is crypto_box_seal. The box must have the message's length and
// seal.Overhead.
func sodiumSeal(box, message []byte, public *[seal.KeySize]byte) bool {
	return C.crypto_box_seal(first(box), first(message), C.ulonglong(len(message)), first(public[:])) == 0
}

// sodiumOpen is crypto_box_seal_open.
func sodiumOpen(box []byte, public, private *[seal.KeySize]byte) (message []byte, ok bool) {
	if len(box) < seal.Overhead {
		return nil, false
	}
	message = make([]byte, len(box)-seal.Overhead)
	ok = C.crypto_box_seal_open(first(message), first(box), C.ulonglong(len(box)), first(public[:]), first(private[:])) == 0
	return message, ok
}

func first(b []byte) *C.uchar {
	if len(b) == 0 {
		return nil
	}
	return (*C.uchar)(&b[0])
}
