package main

import (
	"crypto/hpke"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"runtime"
	"testing"

	"github.com/cloudflare/circl/dh/x25519"
	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/nacl/box"
	"golang.org/x/crypto/salsa20/salsa" //lint:ignore SA1019 the HSalsa20 of crypto_box_beforenm

	"github.com/sealpush/sealpush/seal"
)

// sealing compares Seal of each suite with the same primitives put together by hand, and for x25519 with libsodium.
// Seal returns base64; crypto_box_seal and hpke.Seal return bytes.
func sealing() ([]row, error) {
	key := seal.GenerateKey().Public()
	public := [32]byte(key.Bytes())
	message := make([]byte, key.Suite().MaxPlaintext(3000))
	sealed := make([]byte, len(message)+overhead)

	ours := func() { must(seal.Seal(key, message)) }
	byHand := func() { runtime.KeepAlive(sealByHand(message, &public)) }
	sodium := func() {
		if !sodiumSeal(sealed, message, &public) {
			panic("crypto_box_seal failed")
		}
	}
	sodiumBase64 := func() {
		sodium()
		runtime.KeepAlive(base64.StdEncoding.EncodeToString(sealed))
	}
	anonymous := func() { must(box.SealAnonymous(nil, message, &public, rand.Reader)) }

	costs := interleave(31,
		repeat(400, ours), repeat(400, byHand), repeat(400, sodium), repeat(400, sodiumBase64), repeat(400, anonymous))
	overHand, overSodium := costs[0].over(costs[1]).median(), costs[0].over(costs[2]).median()
	allocs := testing.AllocsPerRun(100, ours)
	return append([]row{{
		what:     "`Seal` of 2202 bytes, `x25519`, over its primitives put together by hand",
		goal:     "≤ 1.05, ≤ 2 allocations",
		measured: fmt.Sprintf("%.2f, %v allocations", overHand, allocs),
		met:      overHand <= 1.05 && allocs <= 2,
		detail:   fmt.Sprintf("%v over %v", costs[0], costs[1]),
	}, {
		what:     "the same over libsodium's `crypto_box_seal`",
		goal:     "≤ 1",
		measured: fmt.Sprintf("%.2f", overSodium),
		met:      overSodium <= 1,
		detail: fmt.Sprintf("%v with base64, over %v without; %.2f of `crypto_box_seal` and base64 (%v), %.2f of `box.SealAnonymous` (%v)",
			costs[0], costs[2], costs[0].over(costs[3]).median(), costs[3], costs[0].over(costs[4]).median(), costs[4]),
	}}, sealingXWing()), nil
}

// sealByHand is a sealed box in base64 with as little around its primitives as can be: CIRCL's X25519, BLAKE2b for the
// nonce, HSalsa20, XSalsa20-Poly1305.
func sealByHand(message []byte, to *[32]byte) string {
	var private, public, shared x25519.Key
	rand.Read(private[:])
	x25519.KeyGen(&public, &private)
	if !x25519.Shared(&shared, &private, (*x25519.Key)(to)) {
		panic("low-order key")
	}
	var nonce [24]byte
	h := must(blake2b.New(len(nonce), nil))
	h.Write(public[:])
	h.Write(to[:])
	h.Sum(nonce[:0])
	var boxKey [32]byte
	salsa.HSalsa20(&boxKey, new([16]byte), (*[32]byte)(&shared), &salsa.Sigma)
	sealed := append(make([]byte, 0, len(message)+overhead), public[:]...)
	sealed = box.SealAfterPrecomputation(sealed, message, &nonce, &boxKey)
	return base64.StdEncoding.EncodeToString(sealed)
}

func sealingXWing() row {
	key := seal.XWing.GenerateKey().Public()
	message := make([]byte, key.Suite().MaxPlaintext(3000))
	public := key.Bytes()
	costs := interleave(31,
		repeat(200, func() { must(seal.Seal(key, message)) }),
		repeat(200, func() { hpkeSeal(public, message) }))
	ratio := costs[0].over(costs[1]).median()
	return row{
		what:     "`Seal` of 1114 bytes, `xwing`, over `hpke.Seal` and the parsing of its key",
		goal:     "≤ 1.10",
		measured: fmt.Sprintf("%.2f", ratio),
		met:      ratio <= 1.10,
		detail:   fmt.Sprintf("%v with base64, over %v without", costs[0], costs[1]),
	}
}

// hpkeSeal is suite xwing with the standard library alone.
func hpkeSeal(public, message []byte) []byte {
	key := must(hpke.MLKEM768X25519().NewPublicKey(public))
	return must(hpke.Seal(key, hpke.HKDFSHA256(), hpke.AES256GCM(), []byte("cronstable-push-xwing"), message))
}

func repeat(ops int, do func()) task {
	return task{ops, func(ops int) {
		for range ops {
			do()
		}
	}}
}

// check ends the measurement: what fails half-way must not be reported as fast.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}
