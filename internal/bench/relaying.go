package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"

	"github.com/sealpush/sealpush/relay"
)

// relaying measures the sealed relay: what its duties cost, and what it remembers.
func relaying() ([]row, error) {
	cpu, err := relayCPU()
	if err != nil {
		return nil, err
	}
	memory, err := relayMemory()
	if err != nil {
		return nil, err
	}
	return []row{cpu, memory}, nil
}

// nowhere is a push service that takes everything.
type nowhere struct{}

func (nowhere) Device(token string) (string, error)           { return strings.ToLower(token), nil }
func (nowhere) Forward(context.Context, relay.Envelope) error { return nil }

// relayCPU compares the relay with a handler that reads the same JSON and checks it, and remembers nothing. Each post
// is a new page to one of 20 000 devices.
func relayCPU() (row, error) {
	sealed, err := relay.New(relay.WithForwarder(nowhere{}), relay.WithPolicy(relay.Policy{Burst: 1_000_000}))
	if err != nil {
		return row{}, err
	}
	defer sealed.Close()
	poster := newPoster(3000)
	post := func(handler http.Handler) func(int) {
		return func(ops int) {
			for range ops {
				poster.post(handler, uint64(poster.posts%20_000), uint64(poster.posts))
			}
		}
	}
	costs := interleave(5, task{20_000, post(sealed)}, task{20_000, post(http.HandlerFunc(bareRelay))})
	ratio := costs[0].over(costs[1]).median()
	return row{
		what:     "the relay's CPU per post, over a bare handler that reads and checks the same JSON",
		goal:     "≤ 1.50",
		measured: fmt.Sprintf("%.2f", ratio),
		met:      ratio <= 1.5,
		detail: fmt.Sprintf("%v over %v, ciphertexts of 3000 characters, without the network; %d answers other than 202",
			costs[0], costs[1], poster.refused),
	}, nil
}

// relayMemory is what the relay keeps of a million devices, each paged once.
func relayMemory() (row, error) {
	const devices = 1_000_000
	state, err := relay.NewMemoryState(devices)
	if err != nil {
		return row{}, err
	}
	sealed, err := relay.New(relay.WithForwarder(nowhere{}), relay.WithState(state))
	if err != nil {
		return row{}, err
	}
	defer sealed.Close()
	poster := newPoster(68)
	before := liveHeap()
	for n := range uint64(devices) {
		poster.post(sealed, n, n)
	}
	megabytes := float64(liveHeap()-before) / 1e6
	runtime.KeepAlive(state)
	return row{
		what:     "memory of a relay that knows 1 000 000 devices",
		goal:     "≤ 400 MB",
		measured: fmt.Sprintf("%.0f MB", megabytes),
		met:      megabytes <= 400,
		detail:   fmt.Sprintf("live heap, each device paged once within the flap window; %d answers other than 202", poster.refused),
	}, nil
}

func liveHeap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// bareRelay is the least that a relay's handler does.
func bareRelay(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 8193))
	var e struct {
		V                                               int
		Device, Suite, Ciphertext, CollapseID, Priority string
		Event                                           bool
	}
	if err != nil || json.Unmarshal(body, &e) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	_, deviceErr := hex.DecodeString(e.Device)
	_, idErr := hex.DecodeString(e.CollapseID)
	_, boxErr := base64.StdEncoding.DecodeString(e.Ciphertext)
	if e.V != 1 || deviceErr != nil || idErr != nil || boxErr != nil || e.Priority != "passive" || e.Suite != "x25519" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusAccepted)
	json.NewEncoder(w).Encode(struct {
		V       int    `json:"v"`
		Outcome string `json:"outcome"`
	}{1, "forwarded"})
}

// A poster hands envelopes to a handler, without a network. It is its own ResponseWriter.
type poster struct {
	body           []byte
	device, id     []byte // parts of body
	root           *url.URL
	posts, refused int
	header         http.Header
}

func newPoster(ciphertext int) *poster {
	p := &poster{root: &url.URL{Path: "/"}, header: http.Header{}}
	device, id := strings.Repeat("d", 64), strings.Repeat("e", 32)
	p.body = fmt.Appendf(nil, `{"v":1,"device":%q,"suite":"x25519","ciphertext":%q,"collapseId":%q,"priority":"passive","event":false}`,
		device, strings.Repeat("A", ciphertext), id)
	part := func(text string) []byte {
		at := bytes.Index(p.body, []byte(text))
		return p.body[at : at+len(text)]
	}
	p.device, p.id = part(device), part(id)
	return p
}

func (p *poster) post(handler http.Handler, device, id uint64) {
	p.posts++
	clear(p.header)
	copy(p.device, fmt.Appendf(nil, "%064x", device))
	copy(p.id, fmt.Appendf(nil, "%032x", id))
	handler.ServeHTTP(p, &http.Request{
		Method: http.MethodPost, URL: p.root, ProtoMajor: 1, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(p.body)),
	})
}

func (p *poster) Header() http.Header         { return p.header }
func (p *poster) Write(b []byte) (int, error) { return len(b), nil }

func (p *poster) WriteHeader(status int) {
	if status != http.StatusAccepted {
		p.refused++
	}
}
