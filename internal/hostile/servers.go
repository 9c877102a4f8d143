package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"runtime/metrics"
	"time"

	"golang.org/x/net/netutil"

	"github.com/sealpush/sealpush/pushauth/verify"
	"github.com/sealpush/sealpush/relay"
)

// addresses are where the services are, and who may use them.
type addresses struct {
	Sealed, Token, Push string            // base URLs
	Secrets             map[string]string // by client id
}

// The clients of the token service.
const honestBridge = "honest-bridge"

func hostileBridges() []string { return []string{"hostile-bridge-1", "hostile-bridge-2"} }

// servers are the services in a process of their own.
type servers struct {
	*process
	at addresses
}

func startServers() (*servers, error) {
	p, err := start("serve")
	if err != nil {
		return nil, err
	}
	s := &servers{process: p}
	if err := p.read(&s.at); err != nil {
		p.stop()
		return nil, err
	}
	return s, nil
}

// memoryUse is what the servers hold after a collection of garbage.
type memoryUse struct {
	Live       uint64 // bytes of live objects and stacks
	System     uint64 // bytes that the process has from the system
	Goroutines int
}

func (s *servers) memory() (use memoryUse, err error) {
	if _, err := io.WriteString(s.ask, "\n"); err != nil {
		return use, err
	}
	return use, s.read(&use)
}

// serve is the process of the services. It answers each line of in with its memory use.
func serve(in io.Reader, out io.Writer) error {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // the log of an attack is long
	at := addresses{Secrets: map[string]string{}}
	listeners := map[*string]net.Listener{&at.Sealed: nil, &at.Token: nil, &at.Push: nil}
	for base := range listeners {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		listeners[base], *base = listener, "http://"+listener.Addr().String()
	}
	sealed, err := relay.New(relay.WithForwarder(phones{}), relay.WithPolicy(relay.Policy{Burst: 1000, RefillInterval: time.Millisecond}))
	if err != nil {
		return err
	}
	tokens, err := relay.NewTokenService(relay.WithIssuer(at.Token), relay.WithAudience(at.Push))
	if err != nil {
		return err
	}
	for _, id := range append(hostileBridges(), honestBridge) {
		at.Secrets[id] = tokens.AddClient(id).Reveal()
	}
	verifier, err := verify.New(verify.Config{JWKSURL: at.Token + "/.well-known/jwks.json", Issuer: at.Token, Audience: at.Push, Scope: "push:write"})
	if err != nil {
		return err
	}
	push, err := relay.NewBridge(relay.WithAuthenticator(verifier), relay.WithBridgeForwarder(phones{}))
	if err != nil {
		return err
	}
	for base, handler := range map[*string]http.Handler{&at.Sealed: sealed, &at.Token: tokens, &at.Push: push} {
		server := &http.Server{ // as in docs/self-host.md
			Handler:           handler,
			ReadHeaderTimeout: 5 * time.Second,
			ReadTimeout:       40 * time.Second,
			WriteTimeout:      time.Minute,
			IdleTimeout:       2 * time.Minute,
			MaxHeaderBytes:    16 << 10,
			ErrorLog:          log.New(io.Discard, "", 0),
		}
		go server.Serve(netutil.LimitListener(listeners[base], 1000))
	}
	answers := json.NewEncoder(out)
	if err := answers.Encode(at); err != nil {
		return err
	}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if err := answers.Encode(memoryInUse()); err != nil {
			return err
		}
	}
	return nil
}

func memoryInUse() memoryUse {
	runtime.GC()
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/stacks:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	value := func(i int) uint64 { return samples[i].Value.Uint64() }
	return memoryUse{Live: value(0) + value(1), System: value(2) - value(3), Goroutines: runtime.NumGoroutine()}
}

// phones take every message.
type phones struct{}

func (phones) Device(token string) (string, error) {
	if token == "" {
		return "", errors.New("is empty")
	}
	return token, nil
}

func (phones) Forward(context.Context, relay.Envelope) error { return nil }

func (phones) ForwardPush(context.Context, relay.BridgeDevice, relay.BridgePush) error { return nil }
