package bridge_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

func TestObservations(t *testing.T) {
	push := func(c *bridge.Client) { c.Notify(context.Background(), notification) }
	register := func(c *bridge.Client) { c.Register(context.Background(), phone) }
	tests := []struct {
		operation, want string
		status          int
		endpoint        relaytest.BridgeEndpoint
		answer          relaytest.Answer
		before, do      func(*bridge.Client)
		took            time.Duration
		devices, lost   int
		unsent          bool
	}{
		{operation: "register", want: "ok", status: 200, do: register},
		{operation: "unregister", want: "ok", status: 200, do: func(c *bridge.Client) { c.Unregister(context.Background(), phone.Token) }},
		{operation: "push", want: "ok", status: 200, before: register, do: push, devices: 1},
		{operation: "push", want: "debounced", before: push, do: push, unsent: true},
		{operation: "push", want: "not_delivered", status: 200, before: func(c *bridge.Client) {
			c.Register(context.Background(), bridge.Device{Token: secret.New("dead"), Platform: "ios"})
		}, do: push, devices: 1, lost: 1},
		{operation: "push", want: "unauthorized", status: 401, endpoint: relaytest.EndpointPush, answer: relaytest.Answer{Status: 401}, do: push},
		{operation: "push", want: "refused", status: 400, endpoint: relaytest.EndpointPush, answer: relaytest.Answer{Status: 400}, do: push},
		{operation: "push", want: "relay_failed", status: 500, endpoint: relaytest.EndpointPush, answer: relaytest.Answer{Status: 500}, do: push},
		{operation: "push", want: "token_failed", endpoint: relaytest.EndpointToken, answer: relaytest.Answer{Status: 401}, do: push, unsent: true},
		{operation: "push", want: "no_answer", endpoint: relaytest.EndpointPush, answer: relaytest.Answer{Drop: true}, do: push},
		{operation: "push", want: "timeout", endpoint: relaytest.EndpointPush, answer: relaytest.Answer{Delay: time.Minute}, do: push, took: 20 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.operation+" "+tt.want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var seen []bridge.Observation
				service, client := newClient(t, bridge.WithObserver(func(_ context.Context, o bridge.Observation) { seen = append(seen, o) }))
				if tt.before != nil {
					tt.before(client)
				}
				service.KillDevice("dead")
				if tt.endpoint != "" {
					service.Script(tt.endpoint, relaytest.Always, tt.answer)
				}
				seen = nil
				start := time.Now()
				tt.do(client)
				if len(seen) != 1 {
					t.Fatalf("observed %+v", seen)
				}
				o := seen[0]
				if o.Operation != tt.operation || o.Result != tt.want || o.Status != tt.status || o.Devices != tt.devices || o.Lost != tt.lost ||
					!o.Start.Equal(start) || o.Duration != tt.took || (o.Bytes == 0) != tt.unsent || !strings.HasPrefix(service.RelayURL, o.Relay) || o.Relay == "" {
					t.Errorf("observed %+v", o)
				}
				if text := fmt.Sprintf("%+v", o); strings.Contains(text, "hunter2") {
					t.Errorf("a secret is in %s", text)
				}
			})
		})
	}
}

func TestAnObserverMayPanic(t *testing.T) {
	_, client := newClient(t, bridge.WithObserver(func(context.Context, bridge.Observation) { panic("observer") }))
	wantStatus(t, client, bridge.StatusSent)
	if _, err := bridge.New(bridge.Config{}, bridge.WithObserver(nil)); err == nil {
		t.Error("a nil observer was accepted")
	}
}

// An observer that allocates nothing costs no allocation (TestHotPathsAllocateNothing has none at all).
func TestObservingAllocatesNothing(t *testing.T) {
	debounced := 0
	_, client := newClient(t, bridge.WithObserver(func(_ context.Context, o bridge.Observation) {
		if o.Result == "debounced" {
			debounced++
		}
	}))
	wantStatus(t, client, bridge.StatusSent)
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() { client.Notify(ctx, notification) }); n != 0 || debounced < 1000 {
		t.Errorf("%v allocations, %d observed", n, debounced)
	}
}
