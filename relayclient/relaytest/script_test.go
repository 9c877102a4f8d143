package relaytest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relayclient/relaytest"
)

func TestScript(t *testing.T) {
	relay := start(t)
	other := device + "ff"
	down := relaytest.Answer{
		Status: 503,
		Header: http.Header{"Retry-After": {"7"}},
		Body:   `{"v":1,"error":"down"}`,
	}
	relay.Script(2, down)
	relay.Script(1, relaytest.Answer{Status: 429, Body: `{}`})
	relay.ScriptDevice(strings.ToUpper(other), 1, relaytest.Answer{Status: 410, Body: `{"v":1}`})

	statuses := func(token string, n int) string {
		var got []int
		for range n {
			got = append(got, post(t, relay, envelope(t, "device", token)).status)
		}
		return fmt.Sprint(got)
	}
	if got := statuses(other, 1); got != "[410]" {
		t.Errorf("its own script: %s", got)
	}
	first := post(t, relay, envelope(t))
	if first.status != 503 || first.body["error"] != "down" || first.header.Get("Retry-After") != "7" {
		t.Errorf("answered %+v", first)
	}
	if got := statuses(device, 4); got != "[503 429 202 202]" {
		t.Errorf("the script for any: %s", got)
	}

	relay.ScriptDevice(device, relaytest.Always, down)
	if got := statuses(device, 3); got != "[503 503 503]" {
		t.Errorf("always: %s", got)
	}
	if got := statuses(other, 1); got != "[202]" {
		t.Errorf("another device: %s", got)
	}
	relay.ClearScript()
	if got := statuses(device, 1); got != "[202]" {
		t.Errorf("cleared: %s", got)
	}
	if got := relay.Stats().Requests; got != 11 {
		t.Errorf("%d requests counted, scripted ones included", got)
	}
}

func TestScriptDropsTheConnection(t *testing.T) {
	for name, opts := range map[string][]relaytest.RelayOption{"HTTP/1.1": nil, "HTTP/2": {relaytest.WithTLS()}} {
		t.Run(name, func(t *testing.T) {
			relay := start(t, opts...)
			relay.Script(1, relaytest.Answer{Drop: true})
			if resp, err := relay.Client().Post(relay.URL, "", strings.NewReader(envelope(t))); err == nil {
				resp.Body.Close()
				t.Errorf("answered %s", resp.Status)
			}
			if got := post(t, relay, envelope(t)); got.status != 202 {
				t.Errorf("then answered %d", got.status)
			}
		})
	}
}

func TestScriptDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewRelay(relaytest.InMemory())
		defer relay.Close()
		relay.Script(1, relaytest.Answer{Delay: 3 * time.Second})
		start := time.Now()
		if got := post(t, relay, envelope(t)); got.status != 202 {
			t.Errorf("answered %d", got.status)
		}
		if waited := time.Since(start); waited != 3*time.Second {
			t.Errorf("answered after %v", waited)
		}

		// A delay ends with the request that suffers it.
		relay.Script(1, relaytest.Answer{Delay: time.Hour})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "POST", relay.URL, strings.NewReader(envelope(t)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := relay.Client().Do(req); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if got := relay.Stats().InFlight; got != 0 {
			t.Errorf("%d still in flight", got)
		}
	})
}

func TestScriptHoldsUntilAllAreInFlight(t *testing.T) {
	const n = 100
	relay := start(t)
	all := make(chan struct{})
	relay.Script(n, relaytest.Answer{Hold: all})
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			if got := post(t, relay, envelope(t, "device", fmt.Sprintf("%016x", i))); got.status != 202 {
				t.Errorf("answered %d %v", got.status, got.body)
			}
		})
	}
	if err := relay.WaitInFlight(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	close(all)
	group.Wait()
	if got := relay.Stats(); got.MaxInFlight != n || got.InFlight != 0 {
		t.Errorf("stats %+v", got)
	}
}

func TestCloseEndsWhatIsHeld(t *testing.T) {
	relay := relaytest.NewRelay()
	relay.Script(1, relaytest.Answer{Hold: make(chan struct{})})
	failed := make(chan error)
	go func() {
		_, err := relay.Client().Post(relay.URL, "", strings.NewReader(envelope(t)))
		failed <- err
	}()
	if err := relay.WaitInFlight(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	relay.Close()
	if err := <-failed; err == nil {
		t.Error("a held request was answered by Close")
	}
	relay.Close()
}

func TestWaitsEndWithTheirContext(t *testing.T) {
	relay := start(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	if err := relay.WaitInFlight(ctx, 1); !errors.Is(err, cause) {
		t.Errorf("WaitInFlight: %v", err)
	}
	post(t, relay, envelope(t))
	messages, err := relay.WaitInbox(ctx, device, 2)
	if !errors.Is(err, cause) || len(messages) != 1 {
		t.Errorf("WaitInbox: %v, %v", messages, err)
	}
}

func TestScriptRefusesWhatIsNoStatus(t *testing.T) {
	relay := start(t)
	for _, status := range []int{1, 100, 600} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("status %d was scripted", status)
				}
			}()
			relay.Script(1, relaytest.Answer{Status: status})
		}()
	}
}
