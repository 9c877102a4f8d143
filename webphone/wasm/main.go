//go:build js && wasm

// Wasm is the part of the web phone that is written in Go: keys, boxes and alerts, by packages seal and payload. It is
// built by webphone/build and runs in the page and in the service worker.
package main

import (
	"syscall/js"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/webphone/internal/phone"
)

// main hands the functions to the script that waits for them in sealpushReady, and stays for its calls.
func main() {
	functions := map[string]any{
		"freshFor": payload.FreshFor.Milliseconds(),
		"generate": function(1, func(a []js.Value) (any, error) {
			key, err := phone.Generate(a[0].String())
			return keyObject(key), err
		}),
		"fromSeed": function(2, func(a []js.Value) (any, error) {
			key, err := phone.FromSeed(a[0].String(), bytes(a[1]))
			return keyObject(key), err
		}),
		"open": function(4, func(a []js.Value) (any, error) {
			opened, err := phone.Open(a[0].String(), bytes(a[1]), a[2].String(), a[3].String(), time.Now())
			return map[string]any{"json": opened.JSON, "at": opened.At, "stale": opened.Stale}, err
		}),
		"openText": function(3, func(a []js.Value) (any, error) {
			return phone.OpenText(a[0].String(), bytes(a[1]), a[2].String())
		}),
		"seal": function(2, func(a []js.Value) (any, error) {
			return phone.Seal(a[0].String(), a[1].String())
		}),
		"trial": function(3, func(a []js.Value) (any, error) {
			return phone.Trial(a[0].String(), bytes(a[1]), a[2].String())
		}),
	}
	js.Global().Get("sealpushReady").Invoke(functions)
	select {}
}

// function returns {value} or {error}: a panic or an exception would end the program, or pass through it.
func function(arguments int, f func([]js.Value) (any, error)) js.Func {
	return js.FuncOf(func(_ js.Value, given []js.Value) any {
		if len(given) != arguments {
			return map[string]any{"error": "wrong number of arguments"}
		}
		value, err := f(given)
		if err != nil {
			return map[string]any{"error": err.Error()}
		}
		return map[string]any{"value": value}
	})
}

func bytes(array js.Value) []byte {
	if !array.InstanceOf(js.Global().Get("Uint8Array")) {
		return nil
	}
	content := make([]byte, array.Length())
	js.CopyBytesToGo(content, array)
	return content
}

func keyObject(key phone.Key) map[string]any {
	seed := js.Global().Get("Uint8Array").New(len(key.Seed))
	js.CopyBytesToJS(seed, key.Seed)
	return map[string]any{
		"seed": seed, "suite": string(key.Suite), "publicKey": key.PublicKey, "fingerprint": key.Fingerprint,
	}
}
