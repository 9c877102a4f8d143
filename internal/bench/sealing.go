package main

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"runtime"
	"testing"

	"golang.org/x/crypto/nacl/box"

	"github.com/sealpush/sealpush/seal"
)

// sealing compares Seal, which returns base64, with crypto_box_seal, which
// returns bytes. The goal is set against crypto_box_seal alone; what a caller of
// libsodium has to do before posting is crypto_box_seal and base64.
func sealing() ([]row, error) {
	key := seal.GenerateKey().Public()
	public := [32]byte(key.Bytes())
	message := make([]byte, seal.X25519.MaxPlaintext(3000))
	sealed := make([]byte, len(message)+overhead)

	ours := func() { must(seal.Seal(key, message)) }
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
		repeat(400, ours), repeat(400, sodium), repeat(400, sodiumBase64), repeat(400, anonymous))
	ratio := costs[0].over(costs[1]).median()
	allocs := testing.AllocsPerRun(100, ours)
	return []row{{
		what:     "`Seal` of 2202 bytes over libsodium's `crypto_box_seal`",
		goal:     "≤ 0.60, ≤ 2 allocations",
		measured: fmt.Sprintf("%.2f, %v allocations", ratio, allocs),
		met:      ratio <= 0.60 && allocs <= 2,
		detail: fmt.Sprintf("%v with base64, over %v without; %.2f of `crypto_box_seal` and base64 (%v), %.2f of `box.SealAnonymous` (%v)",
			costs[0], costs[1], costs[0].over(costs[2]).median(), costs[2], costs[0].over(costs[3]).median(), costs[3]),
	}}, nil
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
