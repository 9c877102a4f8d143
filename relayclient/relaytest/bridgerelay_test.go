package relaytest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

func TestBridgeRelayRefuses(t *testing.T) {
	s := quick(t)
	token := s.Token("alice")
	tests := []struct {
		name, method, path, body string
		status                   int
		names                    string // in the error
	}{
		{"no device token", "POST", "/register", `{"platform":"ios"}`, 400, "device_token"},
		{"empty device token", "POST", "/register", `{"device_token":"","platform":"ios"}`, 400, "device_token"},
		{"no platform", "POST", "/register", `{"device_token":"a"}`, 400, "platform"},
		{"the app's name for a platform", "POST", "/register", `{"device_token":"a","platform":"apns"}`, 400, "platform"},
		{"platform in capitals", "POST", "/register", `{"device_token":"a","platform":"iOS"}`, 400, "platform"},
		{"device token that is nothing", "POST", "/register", `{"device_token":null,"platform":"ios"}`, 400, "device_token"},
		{"device token in capitals", "POST", "/register", `{"DEVICE_TOKEN":"a","platform":"ios"}`, 400, "device_token"},
		{"device token of 1025 bytes", "POST", "/register", `{"device_token":"` + strings.Repeat("a", 1025) + `","platform":"ios"}`, 400, "device_token"},
		{"bundle id of 257 bytes", "POST", "/register", `{"device_token":"a","platform":"ios","bundle_id":"` + strings.Repeat("a", 257) + `"}`, 400, "bundle_id"},
		{"a list", "POST", "/register", `["a"]`, 400, "JSON"},
		{"null", "POST", "/register", `null`, 400, "JSON"},
		{"no JSON", "POST", "/register", `device_token=a`, 400, "JSON"},
		{"more than JSON", "POST", "/register", `{"device_token":"a","platform":"ios"} x`, 400, "JSON"},
		{"too large", "POST", "/register", `{"device_token":"` + strings.Repeat("a", 8<<10) + `","platform":"ios"}`, 413, "large"},
		{"unregister without device token", "DELETE", "/register", `{}`, 400, "device_token"},
		{"unregister without body", "DELETE", "/register", ``, 400, "JSON"},
		{"push without title", "POST", "/push", `{"body":"b"}`, 400, "title"},
		{"push without body", "POST", "/push", `{"title":"t"}`, 400, "body"},
		{"push with a title of zero", "POST", "/push", `{"title":0.0,"body":"b"}`, 400, "title"},
		{"push in capitals", "POST", "/push", `{"Title":"t","Body":"b"}`, 400, "title"},
		{"push without JSON", "POST", "/push", `t`, 400, "JSON"},
		{"other method", "GET", "/push", ``, 404, "found"},
		{"other method with two", "PUT", "/register", ``, 404, "found"},
		{"two slashes", "POST", "//push", `{"title":"t","body":"b"}`, 404, "found"},
		{"a slash at the end", "POST", "/push/", `{"title":"t","body":"b"}`, 404, "found"},
		{"a step back", "POST", "/x/../push", `{"title":"t","body":"b"}`, 404, "found"},
		{"an encoded letter", "POST", "/%70ush", `{"title":"t","body":"b"}`, 404, "found"},
		{"other path", "POST", "/notify", ``, 404, "found"},
		{"the root", "GET", "/", ``, 404, "found"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := do(t, s.Client(), bridgeCall{tt.method, s.RelayURL + tt.path, token, tt.body})
			if got.Status != tt.status || got.OK || !strings.Contains(got.Error, tt.names) {
				t.Errorf("answered %d %q, want %d and %q in it", got.Status, got.Error, tt.status, tt.names)
			}
			if allow, there := got.Header["Allow"]; there {
				t.Errorf("Allow is %q: the deployed relay sends none", allow)
			}
		})
	}
	if len(s.Devices("alice"))+len(s.Pushes("alice")) != 0 {
		t.Errorf("what was refused left %v and %v", s.Devices("alice"), s.Pushes("alice"))
	}
}

func TestBridgeHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := quick(t)
		for _, url := range []string{s.TokenURL, s.RelayURL} {
			resp, err := s.Client().Get(url + "/health")
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			want := `{"ok":true,"status":"healthy","timestamp":"2000-01-01T00:00:00.000Z"}`
			if got := strings.TrimSpace(string(body)); got != want || resp.StatusCode != 200 {
				t.Errorf("%s: %d %s, want %s", url, resp.StatusCode, got, want)
			}
		}
	})
}

func TestRegisteringTwiceKeepsOneDevice(t *testing.T) {
	s := quick(t)
	token := s.Token("alice")
	for _, body := range []string{
		`{"device_token":"a","platform":"ios","bundle_id":"old"}`,
		`{"device_token":"b","platform":"android"}`,
		`{"device_token":"a","platform":"ios","bundle_id":"new","unknown":true}`,
	} {
		if got := do(t, s.Client(), bridgeCall{"POST", s.RelayURL + "/register", token, body}); got.Status != 200 {
			t.Fatalf("%s: %+v", body, got)
		}
	}
	want := []relay.BridgeDevice{{Token: secret.New("a"), Platform: "ios", BundleID: "new"}, {Token: secret.New("b"), Platform: "android"}}
	if diff := cmp.Diff(want, s.Devices("alice")); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{"Device removed", "Device not found"} {
		got := do(t, s.Client(), bridgeCall{"DELETE", s.RelayURL + "/register", token, `{"device_token":"a"}`})
		if got.Status != 200 || !got.OK || got.Message != want {
			t.Errorf("unregistering answered %d %q, want %q", got.Status, got.Message, want)
		}
	}
	if diff := cmp.Diff(want[1:], s.Devices("alice")); diff != "" {
		t.Error(diff)
	}
}

// Eight registrations at once leave one with the lossy relay, as with the deployed one, and eight with the other.
func TestLossyRegistrations(t *testing.T) {
	for name, tt := range map[string]struct {
		opts []relaytest.BridgeOption
		want int
	}{"lossy": {[]relaytest.BridgeOption{relaytest.WithLossyRegistrations()}, 1}, "default": {nil, 8}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := quick(t, tt.opts...)
				token := s.Token("alice")
				var wg sync.WaitGroup
				for i := range 8 {
					wg.Go(func() {
						body := fmt.Sprintf(`{"device_token":"device-%d","platform":"ios"}`, i)
						if got := do(t, s.Client(), bridgeCall{"POST", s.RelayURL + "/register", token, body}); got.Status != http.StatusOK {
							t.Errorf("answered %d", got.Status)
						}
					})
				}
				wg.Wait()
				if got := len(s.Devices("alice")); got != tt.want {
					t.Errorf("%d devices, want %d", got, tt.want)
				}
				for i := range 8 { // one after the other
					register(t, s, token, fmt.Sprint("device-", i))
				}
				if got := len(s.Devices("alice")); got != 8 {
					t.Errorf("%d devices, registered one after the other, want 8", got)
				}
			})
		})
	}
}

func TestDeviceOutcomes(t *testing.T) {
	s := quick(t)
	token := s.Token("alice")
	register(t, s, token, "well")
	register(t, s, token, "busy")
	register(t, s, token, "dead")
	if got := do(t, s.Client(), bridgeCall{"POST", s.RelayURL + "/register", token, `{"device_token":"dead-too","platform":"android"}`}); got.Status != 200 {
		t.Fatal(got)
	}
	push := func(want ...relay.BridgePushResult) {
		t.Helper()
		got := do(t, s.Client(), bridgeCall{"POST", s.RelayURL + "/push", token, `{"title":"t","body":"b"}`})
		if diff := cmp.Diff(want, got.Results); diff != "" || !got.OK || got.Message != "" {
			t.Errorf("answered %+v: %s", got, diff)
		}
		if pushes := s.Pushes("alice"); !cmp.Equal(pushes[len(pushes)-1].Results, want) {
			t.Errorf("recorded as %v", pushes[len(pushes)-1])
		}
	}
	ios := func(status, reason string) relay.BridgePushResult {
		return relay.BridgePushResult{Platform: "ios", Status: status, Reason: reason}
	}
	s.FailDevice("busy", "TooManyRequests")
	s.KillDevice("dead")
	s.KillDevice("dead-too")
	push(ios("sent", ""), ios("failed", "TooManyRequests"), ios("removed", "Unregistered"),
		relay.BridgePushResult{Platform: "android", Status: "removed", Reason: "UNREGISTERED"})
	push(ios("sent", ""), ios("failed", "TooManyRequests"))
	s.HealDevice("busy")
	push(ios("sent", ""), ios("sent", ""))
	register(t, s, token, "dead")
	push(ios("sent", ""), ios("sent", ""), ios("sent", ""))
	s.KillDevice("dead")
	s.HealDevice("dead")
	push(ios("sent", ""), ios("sent", ""), ios("sent", ""))
}

func TestBridgeScript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := quick(t)
		token := s.Token("alice")
		push := bridgeCall{"POST", s.RelayURL + "/push", token, `{"title":"t","body":"b"}`}

		s.Script(relaytest.EndpointPush, 2, relaytest.Answer{Status: 429, Header: http.Header{"Retry-After": {"7"}}, Body: `{"ok":false,"error":"slow down"}`})
		s.Script(relaytest.EndpointPush, 1, relaytest.Answer{Delay: 3 * time.Second})
		s.Script(relaytest.EndpointPush, 1, relaytest.Answer{Drop: true})
		for range 2 {
			if got := do(t, s.Client(), push); got.Status != 429 || got.Error != "slow down" || got.Header.Get("Retry-After") != "7" {
				t.Errorf("answered %+v", got)
			}
		}
		start := time.Now()
		if got := do(t, s.Client(), push); got.Status != 200 || time.Since(start) != 3*time.Second {
			t.Errorf("answered %+v after %v", got, time.Since(start))
		}
		req, err := http.NewRequestWithContext(t.Context(), push.method, push.url, strings.NewReader(push.body))
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := s.Client().Do(req); err == nil {
			t.Errorf("a dropped request was answered %s", resp.Status)
			resp.Body.Close()
		}
		if got := do(t, s.Client(), push); got.Status != 200 {
			t.Errorf("after the script: %+v", got)
		}
		if got := s.RequestCount(relaytest.EndpointPush); got != 5 {
			t.Errorf("%d requests counted, want 5", got)
		}
		if got := len(s.Pushes("alice")); got != 2 {
			t.Errorf("%d pushes recorded, want the 2 that got through", got)
		}

		s.Script(relaytest.EndpointToken, relaytest.Always, relaytest.Answer{Status: 500, Body: `{}`})
		secret := s.AddClient("alice").Reveal()
		credentials := bridgeCall{"POST", s.TokenURL + "/token", "", `{"client_id":"alice","client_secret":"` + secret + `"}`}
		for range 10 {
			if got := do(t, s.Client(), credentials); got.Status != 500 {
				t.Errorf("answered %d", got.Status)
			}
		}
		s.ClearScript()
		fetchToken(t, s, "alice", secret)
		if got := s.RequestCount(relaytest.EndpointToken); got != 11 {
			t.Errorf("%d requests counted, want 11", got)
		}
	})
}

// A bubble does not end while a goroutine of the service is left.
func TestBridgeServiceCloseLeavesNothing(t *testing.T) {
	for name, opts := range map[string][]relaytest.BridgeOption{
		"plain": nil,
		"TLS":   {relaytest.WithTLS()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := quick(t, opts...)
				register(t, s, s.Token("alice"), "phone")

				// Close ends a delay, and with it the request that waits.
				s.Script(relaytest.EndpointPush, 1, relaytest.Answer{Delay: time.Hour})
				start := time.Now()
				var push sync.WaitGroup
				push.Go(func() {
					resp, err := s.Client().Post(s.RelayURL+"/push", "application/json", strings.NewReader(`{}`))
					if err == nil {
						resp.Body.Close()
					}
				})
				synctest.Wait()
				s.Close()
				push.Wait()
				if waited := time.Since(start); waited >= time.Hour {
					t.Errorf("Close waited %v for a scripted delay", waited)
				}
				if _, err := s.Client().Get(s.RelayURL + "/health"); err == nil {
					t.Error("the relay answers after Close")
				}
				if _, err := s.Client().Get(s.TokenURL + "/health"); err == nil {
					t.Error("the token service answers after Close")
				}
				s.Close()
				if got := s.Devices("alice"); len(got) != 1 {
					t.Errorf("devices after Close: %v", got)
				}
			})
		})
	}
}

func TestManyBridgesAtOnce(t *testing.T) {
	s := quick(t)
	var bridges sync.WaitGroup
	for i := range 8 {
		bridges.Go(func() {
			id := fmt.Sprintf("bridge-%d", i)
			token := fetchToken(t, s, id, s.AddClient(id).Reveal())
			for _, device := range []string{"x", "y"} {
				body := fmt.Sprintf(`{"device_token":%q,"platform":"android"}`, device)
				do(t, s.Client(), bridgeCall{"POST", s.RelayURL + "/register", token, body})
			}
			do(t, s.Client(), bridgeCall{"POST", s.RelayURL + "/push", token, `{"title":"t","body":"b"}`})
		})
	}
	bridges.Wait()
	for i := range 8 {
		pushes := s.Pushes(fmt.Sprintf("bridge-%d", i))
		if len(pushes) != 1 || len(pushes[0].Results) != 2 {
			t.Errorf("bridge %d sent %v", i, pushes)
		}
	}
	if got := s.RequestCount(relaytest.EndpointJWKS); got != 1 {
		t.Errorf("the relay fetched the keys %d times", got)
	}
}

func TestUnstartedBridgeService(t *testing.T) {
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	defer server.Close()
	s := relaytest.NewUnstartedBridgeService(server.URL+"/token-service/", server.URL+"/push-relay",
		relaytest.WithHashRounds(1), relaytest.WithSigningKey(serviceKey()))
	defer s.Close()
	mux.Handle("/token-service/", http.StripPrefix("/token-service", s.TokenHandler()))
	mux.Handle("/push-relay/", http.StripPrefix("/push-relay", s.RelayHandler()))

	if want := server.URL + "/token-service"; s.TokenURL != want {
		t.Errorf("the token URL is %s, want %s", s.TokenURL, want)
	}
	register(t, s, fetchToken(t, s, "alice", s.AddClient("alice").Reveal()), "phone")
	if !cmp.Equal(s.Devices("alice"), []relay.BridgeDevice{{Token: secret.New("phone"), Platform: "ios"}}) {
		t.Errorf("devices: %v", s.Devices("alice"))
	}
}

// Behind a name that it does not reach itself, a service still trusts its own
// tokens.
func TestUnstartedBridgeServiceBehindAnotherName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := relaytest.NewUnstartedBridgeService("https://token.invalid/a", "https://push.invalid", relaytest.WithSigningKey(serviceKey()))
		defer s.Close()
		push := func() int {
			w := httptest.NewRecorder()
			r := httptest.NewRequest("POST", "/push", strings.NewReader(`{"title":"t","body":"b"}`))
			r.Header.Set("Authorization", "Bearer "+s.Token("alice"))
			s.RelayHandler().ServeHTTP(w, r)
			return w.Code
		}
		s.Script(relaytest.EndpointJWKS, 1, relaytest.Answer{Drop: true})
		if got := push(); got != http.StatusServiceUnavailable {
			t.Errorf("answered %d without the keys", got)
		}
		s.RotateKey()
		if got := push(); got != http.StatusOK {
			t.Errorf("answered %d", got)
		}
		if got := s.RequestCount(relaytest.EndpointJWKS); got != 2 {
			t.Errorf("the keys were fetched %d times", got)
		}
	})
}
