package main

// #cgo pkg-config: libsodium
// #include <sodium.h>
import "C"

import "errors"

func sodiumInit() error {
	if C.sodium_init() < 0 {
		return errors.New("libsodium does not start")
	}
	return nil
}

func sodiumVersion() string { return C.GoString(C.sodium_version_string()) }

const overhead = C.crypto_box_SEALBYTES

// sodiumSeal is crypto_box_seal. The box must have the message's length and overhead.
func sodiumSeal(box, message []byte, public *[32]byte) bool {
	return C.crypto_box_seal(first(box), first(message), C.ulonglong(len(message)), first(public[:])) == 0
}

// sodiumOpen is crypto_box_seal_open.
func sodiumOpen(box []byte, public, private *[32]byte) (message []byte, ok bool) {
	if len(box) < overhead {
		return nil, false
	}
	message = make([]byte, len(box)-overhead)
	ok = C.crypto_box_seal_open(first(message), first(box), C.ulonglong(len(box)), first(public[:]), first(private[:])) == 0
	return message, ok
}

func first(b []byte) *C.uchar {
	if len(b) == 0 {
		return nil
	}
	return (*C.uchar)(&b[0])
}
