package relay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sealpush/sealpush/pushauth/verify"
	"github.com/sealpush/sealpush/relay"
)

// trusting takes the bearer of a request for the client id.
type trusting struct{}

func (trusting) Authenticate(r *http.Request) (verify.Claims, error) {
	return verify.Claims{Subject: strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")}, nil
}

type bridgeForwarder func(context.Context, relay.BridgeDevice, relay.BridgePush) error

func (f bridgeForwarder) ForwardPush(ctx context.Context, to relay.BridgeDevice, p relay.BridgePush) error {
	return f(ctx, to, p)
}

func newBridge(t testing.TB, forwarder bridgeForwarder, opts ...relay.BridgeOption) *relay.Bridge {
	t.Helper()
	quiet := relay.WithBridgeLogger(slog.New(slog.DiscardHandler))
	bridge, err := relay.NewBridge(append([]relay.BridgeOption{quiet, relay.WithAuthenticator(trusting{}), relay.WithBridgeForwarder(forwarder)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return bridge
}

func sent(context.Context, relay.BridgeDevice, relay.BridgePush) error { return nil }

type bridgeAnswer struct {
	Status  int `json:"-"`
	OK      bool
	Error   string
	Results []relay.BridgePushResult
}

func callBridge(t testing.TB, bridge http.Handler, client, method, path, body string) bridgeAnswer {
	t.Helper()
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+client)
	bridge.ServeHTTP(w, r)
	answer := bridgeAnswer{Status: w.Code}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%s %s answered %q: %v", method, path, w.Body, err)
	}
	return answer
}

func registerIn(t testing.TB, bridge http.Handler, client, token string) bridgeAnswer {
	t.Helper()
	return callBridge(t, bridge, client, "POST", "/register", fmt.Sprintf(`{"device_token":%q,"platform":"ios"}`, token))
}

// 15 000 registrations of one client took 118 MB, and made another client's push take 835 ms.
func TestDevicesOfAClientAreBounded(t *testing.T) {
	bridge := newBridge(t, sent)
	for i := range 1000 {
		want := 200
		if i >= 256 {
			want = 409
		}
		if got := registerIn(t, bridge, "greedy", fmt.Sprint("phone-", i)); got.Status != want || got.OK != (want == 200) {
			t.Fatalf("registration %d answered %+v, want %d", i+1, got, want)
		}
	}
	if got := registerIn(t, bridge, "greedy", "phone-7"); got.Status != 200 {
		t.Errorf("a device that is registered already: %+v", got)
	}
	if got := registerIn(t, bridge, "honest", "phone-7"); got.Status != 200 {
		t.Errorf("another client's registration: %+v", got)
	}
	if got := callBridge(t, bridge, "greedy", "DELETE", "/register", `{"device_token":"phone-7"}`); got.Status != 200 {
		t.Fatal(got)
	}
	if got := registerIn(t, bridge, "greedy", "phone-999"); got.Status != 200 {
		t.Errorf("after one was unregistered: %+v", got)
	}
	if got := len(bridge.Devices("greedy")); got != 256 {
		t.Errorf("%d devices, want 256", got)
	}
	if got := bridge.Devices("honest"); len(got) != 1 {
		t.Errorf("another client has %v", got)
	}

	few := newBridge(t, sent, relay.WithMaxDevices(1))
	registerIn(t, few, "alice", "one")
	if got := registerIn(t, few, "alice", "two"); got.Status != 409 {
		t.Errorf("the second of one device: %+v", got)
	}
}

// One device whose push service hangs holds up neither the client's others nor other clients.
func TestForwardsOfAClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most atomic.Int32
		bridge := newBridge(t, func(ctx context.Context, to relay.BridgeDevice, _ relay.BridgePush) error {
			if n := now.Add(1); n > most.Load() {
				most.Store(n)
			}
			defer now.Add(-1)
			switch token := to.Token.Reveal(); {
			case strings.HasPrefix(token, "hangs"):
				<-ctx.Done()
				return ctx.Err()
			case token == "panics":
				panic("no such thing")
			}
			<-time.After(time.Second)
			return nil
		})
		for _, token := range []string{"hangs", "panics", "a", "b", "c"} {
			registerIn(t, bridge, "alice", token)
		}
		registerIn(t, bridge, "bob", "d")
		start := time.Now()
		answered := make(chan bridgeAnswer)
		go func() { answered <- callBridge(t, bridge, "alice", "POST", "/push", `{"title":"t","body":"b"}`) }()
		synctest.Wait()
		if got := callBridge(t, bridge, "bob", "POST", "/push", `{"title":"t","body":"b"}`); got.Results[0].Status != "sent" || time.Since(start) != time.Second {
			t.Errorf("another client's push: %+v after %v", got, time.Since(start))
		}
		got, took := <-answered, time.Since(start)
		status := make([]string, 0, len(got.Results))
		for _, result := range got.Results {
			status = append(status, result.Status)
		}
		if diff := cmp.Diff([]string{"failed", "failed", "sent", "sent", "sent"}, status); diff != "" || took != 30*time.Second {
			t.Errorf("after %v: %s", took, diff)
		}

		most.Store(0)
		for i := range 100 {
			registerIn(t, bridge, "many", fmt.Sprint("phone-", i))
		}
		start = time.Now()
		if got := callBridge(t, bridge, "many", "POST", "/push", `{"title":"t","body":"b"}`); len(got.Results) != 100 || slices.ContainsFunc(got.Results, failed) {
			t.Errorf("100 devices: %+v", got)
		}
		if got := most.Load(); got != 16 {
			t.Errorf("%d forwards of one client at a time, want 16", got)
		}
		if took := time.Since(start); took != 7*time.Second {
			t.Errorf("took %v", took)
		}

		for i := range 20 {
			registerIn(t, bridge, "stuck", fmt.Sprint("hangs-", i))
		}
		if got := callBridge(t, bridge, "stuck", "POST", "/push", `{"title":"t","body":"b"}`); len(got.Results) != 20 || got.Results[19].Status != "failed" || got.Results[19].Reason == "" {
			t.Errorf("what had no turn within 30 s: %+v", got)
		}
	})
}

// A client that forgets its devices while their forwards hang gets no new turns by it.
func TestForwardsAreBoundedOverRegistrations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now atomic.Int32
		bridge := newBridge(t, func(ctx context.Context, _ relay.BridgeDevice, _ relay.BridgePush) error {
			now.Add(1)
			defer now.Add(-1)
			<-ctx.Done()
			return ctx.Err()
		})
		for range 3 {
			for i := range 16 {
				registerIn(t, bridge, "alice", fmt.Sprint("phone-", i))
			}
			push := httptest.NewRequest("POST", "/push", strings.NewReader(`{"title":"t","body":"b"}`))
			push.Header.Set("Authorization", "Bearer alice")
			go bridge.ServeHTTP(httptest.NewRecorder(), push)
			synctest.Wait()
			for i := range 16 {
				callBridge(t, bridge, "alice", "DELETE", "/register", fmt.Sprintf(`{"device_token":"phone-%d"}`, i))
			}
		}
		if got := now.Load(); got != 16 {
			t.Errorf("%d forwards of one client at a time, want 16", got)
		}
		advance(time.Minute) // until all have ended
	})
}

func failed(r relay.BridgePushResult) bool { return r.Status != "sent" }

func TestFailedPushIsLoggedWithoutTheToken(t *testing.T) {
	var logged bytes.Buffer
	bridge := newBridge(t, func(context.Context, relay.BridgeDevice, relay.BridgePush) error {
		return &relay.ForwardError{Reason: "TooManyRequests"}
	}, relay.WithBridgeLogger(slog.New(slog.NewTextHandler(&logged, nil))))
	registerIn(t, bridge, "alice", "s3cret-token")
	callBridge(t, bridge, "alice", "POST", "/push", `{"title":"t","body":"b"}`)
	line := logged.String()
	for _, want := range []string{"level=WARN", `msg="relay: push not forwarded"`, "client_id=alice", "platform=ios", "TooManyRequests"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q is missing from %s", want, line)
		}
	}
	if strings.Contains(line, "s3cret") || strings.Count(line, "\n") != 1 {
		t.Errorf("logged %s", line)
	}
}

func TestNewBridgeRefuses(t *testing.T) {
	forwarder, authenticator := relay.WithBridgeForwarder(bridgeForwarder(sent)), relay.WithAuthenticator(trusting{})
	for name, opts := range map[string][]relay.BridgeOption{
		"WithAuthenticator":    {forwarder},
		"WithBridgeForwarder":  {authenticator},
		"the forwarder is nil": {authenticator, relay.WithBridgeForwarder(nil)},
		"authenticator is nil": {forwarder, relay.WithAuthenticator(nil)},
		"option is nil":        {forwarder, authenticator, nil},
		"WithMaxDevices":       {forwarder, authenticator, relay.WithMaxDevices(0)},
		"WithMaxBody":          {forwarder, authenticator, relay.WithMaxBody(100)},
		"1 MiB":                {forwarder, authenticator, relay.WithMaxBody(1<<20 + 1)},
		"WithOutageStatus":     {forwarder, authenticator, relay.WithOutageStatus(500)},
	} {
		if bridge, err := relay.NewBridge(opts...); err == nil || bridge != nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
