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

// phones are what a daemon knows of n paired phones. They share a key, since
// sealing takes the same time for any.
func phones(n int) []pairing.Device {
	key := seal.GenerateKey().Public()
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

// sending measures the client's CPU time for a POST.
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
	devices := phones(1000)
	plaintext := must(payload.Fit(push.Alert, seal.X25519.MaxPlaintext(3000))).Plaintext

	send := func(fanOut int) func(int) {
		return func(ops int) {
			for range ops / fanOut {
				check(sendAll(client, push, devices[:fanOut]))
			}
		}
	}
	sealOnly := func(ops int) {
		inParallel(relayclient.MaxInFlight, ops, func(int) { must(seal.Seal(devices[0].PublicKey, plaintext)) })
	}
	const posts = 3000
	costs := interleave(15,
		task{posts, send(100)}, task{posts, barePosts(relay.URL, devices[:100], plaintext)}, task{posts, sealOnly}, task{posts, send(1000)})
	few, bare, sealed, many := costs[0], costs[1], costs[2], costs[3]
	floor := bare.plus(sealed)
	overFloor, growth := few.over(floor).median(), many.over(few).median()
	return []row{{
		what:     "`Send` to 100 phones, CPU per POST over (bare POST + `Seal`)",
		goal:     "≤ 1.20",
		measured: fmt.Sprintf("%.2f", overFloor),
		met:      overFloor <= 1.20,
		detail:   fmt.Sprintf("%v over %v (bare `net/http` POST %v, `Seal` %v)", few, floor, bare, sealed),
	}, {
		what:     "`Send` to 1000 phones over 100, CPU per POST",
		goal:     "0.85 to 1.15",
		measured: fmt.Sprintf("%.2f", growth),
		met:      growth >= 0.85 && growth <= 1.15,
		detail:   fmt.Sprintf("%v over %v", many, few),
	}}, nil
}

// barePosts posts ready-made bodies with nothing but net/http, in fan-outs of
// one to each device and as many goroutines as Send has.
func barePosts(url string, devices []pairing.Device, plaintext []byte) func(ops int) {
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
