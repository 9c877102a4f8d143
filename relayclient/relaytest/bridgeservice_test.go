package relaytest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

// bridgeCall is a request to one of a BridgeService's halves.
type bridgeCall struct {
	method, url, bearer, body string
}

// bridgeAnswer is what both halves' bodies can hold.
type bridgeAnswer struct {
	Status int         `json:"-"`
	Header http.Header `json:"-"`

	OK      bool                     `json:"ok"`
	Message string                   `json:"message"`
	Error   string                   `json:"error"`
	Results []relay.BridgePushResult `json:"results"`

	AccessToken string `json:"access_token"`
	TokenType   string `json:"token_type"`
	ExpiresIn   int    `json:"expires_in"`

	ClientSecret string `json:"client_secret"`
}

func do(t *testing.T, client *http.Client, call bridgeCall) bridgeAnswer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), call.method, call.url, strings.NewReader(call.body))
	if err != nil {
		t.Fatal(err)
	}
	if call.bearer != "" {
		req.Header.Set("Authorization", "Bearer "+call.bearer)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	answer := bridgeAnswer{Status: resp.StatusCode, Header: resp.Header}
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("%s %s answered %d %q, which is not JSON", call.method, call.url, resp.StatusCode, body)
	}
	return answer
}

// fetchToken is POST /token.
func fetchToken(t *testing.T, s *relaytest.BridgeService, id, secret string) string {
	t.Helper()
	credentials, err := json.Marshal(map[string]string{"client_id": id, "client_secret": secret})
	if err != nil {
		t.Fatal(err)
	}
	answer := do(t, s.Client(), bridgeCall{"POST", s.TokenURL + "/token", "", string(credentials)})
	if answer.Status != http.StatusOK {
		t.Fatalf("POST /token answered %d %q", answer.Status, answer.Error)
	}
	return answer.AccessToken
}

func TestBridgeServiceFromTokenToPush(t *testing.T) {
	tests := []struct {
		name string
		opts []relaytest.BridgeOption
	}{
		{"loopback", nil},
		{"loopback with TLS", []relaytest.BridgeOption{relaytest.WithTLS()}},
		{"in memory", []relaytest.BridgeOption{relaytest.InMemory()}},
		{"in memory with TLS", []relaytest.BridgeOption{relaytest.InMemory(), relaytest.WithTLS()}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := relaytest.NewBridgeService(tt.opts...)
			defer s.Close()
			token := fetchToken(t, s, "bridge-home-office", s.AddClient("bridge-home-office").Reveal())

			push := bridgeCall{"POST", s.RelayURL + "/push", token, `{"title":"Agent","body":"New activity","data":{"thread":"7"}}`}
			nobody := do(t, s.Client(), push)
			if !nobody.OK || len(nobody.Results) != 0 || nobody.Results == nil || nobody.Message != "No devices registered" {
				t.Errorf("without devices: %+v", nobody)
			}

			register := bridgeCall{"POST", s.RelayURL + "/register", token, `{"device_token":"aaa","platform":"ios","bundle_id":"com.aptove.ios"}`}
			if got := do(t, s.Client(), register); got.Status != 200 || !got.OK {
				t.Errorf("register: %+v", got)
			}
			want := []relay.BridgeDevice{{Token: secret.New("aaa"), Platform: "ios", BundleID: "com.aptove.ios"}}
			if diff := cmp.Diff(want, s.Devices("bridge-home-office")); diff != "" {
				t.Error(diff)
			}

			sent := []relay.BridgePushResult{{Platform: "ios", Status: "sent"}}
			if diff := cmp.Diff(sent, do(t, s.Client(), push).Results); diff != "" {
				t.Error(diff)
			}
			pushes := s.Pushes("bridge-home-office")
			if len(pushes) != 2 {
				t.Fatalf("%d pushes arrived, want 2", len(pushes))
			}
			got := pushes[1]
			got.Time = time.Time{}
			wantPush := relay.BridgePush{ClientID: "bridge-home-office", Title: "Agent", Body: "New activity", Results: sent} // as deployed, without the data
			if diff := cmp.Diff(wantPush, got); diff != "" {
				t.Error(diff)
			}

			unregister := bridgeCall{"DELETE", s.RelayURL + "/register", token, `{"device_token":"aaa"}`}
			if got := do(t, s.Client(), unregister); got.Status != 200 || !got.OK {
				t.Errorf("unregister: %+v", got)
			}
			if left := s.Devices("bridge-home-office"); len(left) != 0 {
				t.Errorf("devices left: %v", left)
			}
		})
	}
}

func TestBridgeServiceInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := relaytest.NewBridgeService(relaytest.InMemory(), relaytest.WithTokenLifetime(time.Minute))
		defer s.Close()
		token := fetchToken(t, s, "a", s.AddClient("a").Reveal())
		push := bridgeCall{"POST", s.RelayURL + "/push", token, `{"title":"t","body":"b"}`}
		advance(time.Minute - time.Nanosecond)
		if got := do(t, s.Client(), push).Status; got != 200 {
			t.Errorf("answered %d just before the token expires", got)
		}
		advance(time.Nanosecond)
		if got := do(t, s.Client(), push); got.Status != 401 || got.Error != "invalid_token" {
			t.Errorf("answered %+v as the token expires", got)
		}
	})
}
