package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// phones are what a daemon knows of n paired phones with keys of a suite. They share a key, since sealing takes the
// same time for any.
func phones(n int, suite seal.Suite) []pairing.Device {
	key := suite.GenerateKey().Public()
	devices := make([]pairing.Device, n)
	for i := range devices {
		devices[i] = pairing.Device{ID: rand.Text(), PushToken: secret.New(rand.Text() + rand.Text()), PublicKey: key}
	}
	return devices
}

// sendAll sends one alert and fails unless every POST was accepted.
func sendAll(client *relayclient.Client, push relayclient.Push, devices []pairing.Device) error {
	for _, outcome := range client.Send(context.Background(), push, devices) {
		if outcome.Err != nil {
			return outcome.Err
		}
	}
	return nil
}

// sending measures the client's CPU time for a POST. What it is compared with is a bare POST and the sealing of the
// alert: by Seal, and for xwing by hpke.Seal.
func sending() ([]row, error) {
	relay, err := startRelay(plainHTTP, 0)
	if err != nil {
		return nil, err
	}
	defer relay.stop()
	client, err := relayclient.New(relay.URL)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	push := relayclient.Push{Alert: longFailure(), Salt: payload.NewSalt()}
	fitted := func(suite seal.Suite) []byte {
		return must(payload.Fit(push.Alert, suite.MaxPlaintext(3000))).Plaintext
	}
	send := func(fanOut int, devices []pairing.Device) func(int) {
		return func(ops int) {
			for range ops / fanOut {
				check(sendAll(client, push, devices[:fanOut]))
			}
		}
	}
	parallel := func(do func()) func(int) {
		return func(ops int) { inParallel(relayclient.MaxInFlight, ops, func(int) { do() }) }
	}

	const posts = 3000
	devices, plaintext := phones(1000, seal.X25519), fitted(seal.X25519)
	sealing := func() { must(seal.Seal(devices[0].PublicKey, plaintext)) }
	costs := interleave(15,
		task{posts, send(100, devices)},
		task{posts, barePosts(relay.URL, devices[:100], plaintext, nothing)},
		task{posts, parallel(sealing)},
		task{posts, barePosts(relay.URL, devices[:100], plaintext, sealing)},
		task{posts, send(1000, devices)})
	few, many := costs[0], costs[4]
	growth := many.over(few).median()
	rows := []row{fanOutRow(seal.X25519, "`Seal`", 1.10, costs), {
		what:     "`Send` to 1000 phones over 100, CPU per POST",
		goal:     "0.85 to 1.15",
		measured: fmt.Sprintf("%.2f", growth),
		met:      growth >= 0.85 && growth <= 1.15,
		detail:   fmt.Sprintf("%v over %v", many, few),
	}}

	devices, plaintext = phones(100, seal.XWing), fitted(seal.XWing)
	public := devices[0].PublicKey.Bytes()
	sealing = func() { hpkeSeal(public, plaintext) }
	costs = interleave(15,
		task{posts, send(100, devices)},
		task{posts, barePosts(relay.URL, devices, plaintext, nothing)},
		task{posts, parallel(sealing)},
		task{posts, barePosts(relay.URL, devices, plaintext, sealing)})
	return append(rows, fanOutRow(seal.XWing, "`hpke.Seal` with its key's parsing", 1.15, costs)), nil
}

func nothing() {}

// fanOutRow is about the costs of Send, of a bare POST, of sealing, and of sealing before each bare POST. That costs
// more than the sum of the two: each finds the processor's caches full of the other's code and data, as in Send.
func fanOutRow(suite seal.Suite, sealing string, goal float64, costs []series) row {
	floor := costs[1].plus(costs[2])
	ratio := costs[0].over(floor).median()
	return row{
		what:     fmt.Sprintf("`Send` to 100 phones of suite `%s`, CPU per POST over (bare POST + %s)", suite, sealing),
		goal:     fmt.Sprintf("≤ %.2f", goal),
		measured: fmt.Sprintf("%.2f", ratio),
		met:      ratio <= goal,
		detail: fmt.Sprintf("%v over %v (bare `net/http` POST %v, sealing %v); %.2f of both in turn in one goroutine (%v)",
			costs[0], floor, costs[1], costs[2], costs[0].over(costs[3]).median(), costs[3]),
	}
}

// barePosts posts ready-made bodies with nothing but net/http, in fan-outs of one to each device and as many goroutines
// as Send has, and does something else before each.
func barePosts(url string, devices []pairing.Device, plaintext []byte, before func()) func(ops int) {
	bodies := make([][]byte, len(devices))
	for i, device := range devices {
		bodies[i] = must(json.Marshal(map[string]any{
			"v": 1, "device": device.PushToken, "ciphertext": must(seal.Seal(device.PublicKey, plaintext)),
			"collapseId": payload.NewCollapseID(), "priority": "time-sensitive", "event": false,
		}))
	}
	client := &http.Client{Transport: &http.Transport{
		MaxIdleConns: relayclient.MaxInFlight, MaxIdleConnsPerHost: relayclient.MaxInFlight,
	}}
	post := func(i int) {
		before()
		resp := must(client.Post(url, "application/json", bytes.NewReader(bodies[i])))
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusAccepted {
			panic(resp.Status)
		}
	}
	return func(ops int) {
		for range ops / len(bodies) {
			inParallel(relayclient.MaxInFlight, len(bodies), post)
		}
	}
}
