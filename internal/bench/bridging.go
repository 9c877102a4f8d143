package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sealpush/sealpush/pushauth"
	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/secret"
)

// foreign is 1 KiB that a phone says to an agent, escapes and all.
var foreign = []byte(foreignHead + strings.Repeat(foreignText, 1+1024/len(foreignText))[:1024-len(foreignHead)-len(foreignTail)] + foreignTail)

const (
	foreignHead = `{"jsonrpc":"2.0","id":17,"method":"session/prompt","params":{"sessionId":"sess_9f2c41d07be6","prompt":[{"type":"text","text":"`
	foreignText = `Why does the nightly job fail since Tuesday? The log says:\n\n\tretry 3 of 5: lookup db.internal: no such host\n\nPut a timeout of 30 s around the lookup and tell me whether \"make check\" is green. `
	foreignTail = `"}]}}`
)

// services answers as the token service and the push relay, without a network: what is measured makes no request.
func services(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	if strings.HasSuffix(r.URL.Path, "/token") {
		io.WriteString(w, `{"access_token":"token","token_type":"Bearer","expires_in":3600}`)
	} else {
		io.WriteString(w, `{"ok":true,"results":[{"platform":"ios","status":"sent"}]}`)
	}
	return w.Result(), nil
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func bridging() ([]row, error) {
	ctx := context.Background()
	quiet := slog.New(slog.DiscardHandler)
	httpClient := &http.Client{Transport: roundTripper(services)}
	source, err := pushauth.NewSource(
		pushauth.Credentials{TokenURL: "https://token.example", ClientID: "bench", ClientSecret: secret.New("secret")},
		pushauth.WithHTTPClient(httpClient), pushauth.WithLogger(quiet))
	if err != nil {
		return nil, err
	}
	if _, err := source.Token(ctx); err != nil {
		return nil, err
	}
	client, err := bridge.New(
		bridge.Config{URL: "https://relay.example", TokenURL: "https://token.example", ClientID: "bench", ClientSecret: secret.New("secret")},
		bridge.WithHTTPClient(httpClient), bridge.WithLogger(quiet), bridge.WithCooldown(time.Hour))
	if err != nil {
		return nil, err
	}
	notification := bridge.Notification{Title: "Agent", Body: "New activity"}
	if result := client.Notify(ctx, notification); result.Status != bridge.StatusSent {
		return nil, fmt.Errorf("notification not sent: %w", result.Err)
	}

	token := func() { must(source.Token(ctx)) }
	notify := func() {
		if client.Notify(ctx, notification).Status != bridge.StatusDebounced {
			panic("a notification inside the cooldown was not dropped")
		}
	}
	handle := func() {
		if must(client.HandleMessage(ctx, foreign)) {
			panic("a foreign message was handled")
		}
	}
	const ops = 3_000_000 // a tenth of a second: rusage counts in milliseconds
	clock := func() { runtime.KeepAlive(time.Now()) }
	method := []byte("PushToken")
	contains := func() {
		if bytes.Contains(foreign, method) {
			panic("the foreign message holds a method of ours")
		}
	}
	costs := interleave(11,
		repeat(ops, token), fromTwo(ops, token), repeat(ops, notify), fromTwo(ops, notify), repeat(ops, clock),
		repeat(ops, handle), repeat(ops, contains))
	return []row{
		cachedRow("cached `Token`", costs[0], costs[1], costs[4], testing.AllocsPerRun(1000, token)),
		cachedRow("`Notify` inside the cooldown", costs[2], costs[3], costs[4], testing.AllocsPerRun(1000, notify)),
		handleRow(costs[5], costs[6], testing.AllocsPerRun(1000, handle)),
	}, nil
}

func cachedRow(what string, one, two, clock series, allocs float64) row {
	ratio, slower := one.over(clock).median(), two.over(one).median()
	return row{
		what:     what + " over reading the clock, and the same from 2 goroutines over 1",
		goal:     "≤ 2, 0 allocations, no slower",
		measured: fmt.Sprintf("%.2f, %v allocations, %.2f of it from 2", ratio, allocs, slower),
		met:      ratio <= 2 && allocs == 0 && slower <= 1.1,
		detail:   fmt.Sprintf("%v over %v, %v from 2 goroutines; up to 1.10 counts as no slower", one, clock, two),
	}
}

func handleRow(cost, contains series, allocs float64) row {
	ratio := cost.over(contains).median()
	return row{
		what:     "`HandleMessage` of a 1 KiB foreign message, over one `bytes.Contains`",
		goal:     "≤ 3, 0 allocations",
		measured: fmt.Sprintf("%.2f, %v allocations", ratio, allocs),
		met:      ratio <= 3 && allocs == 0,
		detail:   fmt.Sprintf("%v over %v", cost, contains),
	}
}

// fromTwo splits the operations between two goroutines.
func fromTwo(ops int, do func()) task {
	half := repeat(ops/2, do)
	return task{ops, func(int) {
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { half.run(half.ops) })
		}
		wg.Wait()
	}}
}
