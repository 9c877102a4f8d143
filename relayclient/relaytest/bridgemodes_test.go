package relaytest_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// The deployed relay pages the phones of one platform, and answers 500 because the other one's push service fails.
func TestFailingPlatform(t *testing.T) {
	s := quick(t)
	token := s.Token("alice")
	register(t, s, token, "iphone")
	if got := do(t, s.Client(), bridgeCall{"POST", s.RelayURL + "/register", token, `{"device_token":"pixel","platform":"android"}`}); got.Status != 200 {
		t.Fatal(got)
	}
	push := bridgeCall{"POST", s.RelayURL + "/push", token, `{"title":"t","body":"b"}`}
	s.FailPlatform("android", "UNAVAILABLE")
	if got := do(t, s.Client(), push); got.Status != 500 || got.OK || got.Error != "UNAVAILABLE" || got.Results != nil {
		t.Errorf("answered %+v", got)
	}
	want := []relay.BridgePushResult{{Platform: "ios", Status: "sent"}, {Platform: "android", Status: "failed", Reason: "UNAVAILABLE"}}
	if diff := cmp.Diff(want, s.Pushes("alice")[0].Results); diff != "" {
		t.Error(diff)
	}
	s.HealPlatform("android")
	if got := do(t, s.Client(), push); got.Status != 200 || len(got.Results) != 2 {
		t.Errorf("healed, answered %+v", got)
	}
}

func TestDeadTokenIsRemovedFromEveryClient(t *testing.T) {
	s := quick(t)
	for _, id := range []string{"alice", "bob", "carol"} {
		register(t, s, s.Token(id), id+"-phone")
		if id != "carol" {
			register(t, s, s.Token(id), "shared")
		}
	}
	s.KillDevice("shared")
	got := do(t, s.Client(), bridgeCall{"POST", s.RelayURL + "/push", s.Token("alice"), `{"title":"t","body":"b"}`})
	if len(got.Results) != 2 || got.Results[1].Status != "removed" {
		t.Errorf("answered %+v", got)
	}
	for _, id := range []string{"alice", "bob", "carol"} {
		if got := s.Devices(id); len(got) != 1 || got[0].Token.Reveal() != id+"-phone" {
			t.Errorf("%s has %d devices, want its own alone", id, len(got))
		}
	}
}

func TestAdminsTokenMayPush(t *testing.T) {
	s := quick(t)
	admin := fetchToken(t, s, adminID(s), adminSecret(s))
	register(t, s, admin, "phone")
	if got := do(t, s.Client(), bridgeCall{"POST", s.RelayURL + "/push", admin, `{"title":"t","body":"b"}`}); got.Status != 200 || len(got.Results) != 1 {
		t.Errorf("answered %+v", got)
	}
}

// A number or an object counts as the text that it is written as.
func TestTextsOfOtherTypes(t *testing.T) {
	s := quick(t)
	token := s.Token("alice")
	for _, call := range []bridgeCall{
		{"POST", s.RelayURL + "/register", token, `{"device_token":17,"platform":"ios","bundle_id":false}`},
		{"POST", s.RelayURL + "/push", token, `{"title":1,"body":{"a": [true]},"data":"x"}`},
	} {
		if got := do(t, s.Client(), call); got.Status != 200 {
			t.Errorf("%s answered %+v", call.body, got)
		}
	}
	if got := s.Devices("alice"); len(got) != 1 || got[0].Token.Reveal() != "17" || got[0].BundleID != "" {
		t.Errorf("registered %v", got)
	}
	if got := s.Pushes("alice"); len(got) != 1 || got[0].Title != "1" || got[0].Body != `{"a": [true]}` {
		t.Errorf("pushed %v", got)
	}
}

func TestPushData(t *testing.T) {
	push := func(s *relaytest.BridgeService, data string) bridgeAnswer {
		return do(t, s.Client(), bridgeCall{"POST", s.RelayURL + "/push", s.Token("alice"), `{"title":"t","body":"b","data":` + data + `}`})
	}
	deployed, with := quick(t), quick(t, relaytest.WithBridge(relay.WithPushData()))
	for s, want := range map[*relaytest.BridgeService]map[string]string{deployed: nil, with: {"thread": "7"}} {
		if got := push(s, `{"thread":"7"}`); got.Status != 200 {
			t.Fatalf("answered %+v", got)
		}
		if diff := cmp.Diff(want, s.Pushes("alice")[0].Data); diff != "" {
			t.Error(diff)
		}
	}
	if got := push(with, `{"n":1}`); got.Status != 400 || !strings.Contains(got.Error, "data") {
		t.Errorf("data of numbers: %+v", got)
	}
}

func TestMaxBody(t *testing.T) {
	push := `{"title":"t","body":"` + strings.Repeat("x", 100<<10) + `"}`
	for name, tt := range map[string]struct {
		opts []relaytest.BridgeOption
		want int
	}{
		"as it is":    {nil, http.StatusRequestEntityTooLarge},
		"as deployed": {[]relaytest.BridgeOption{relaytest.WithBridge(relay.WithMaxBody(1 << 20))}, http.StatusOK},
	} {
		s := quick(t, tt.opts...)
		if got := do(t, s.Client(), bridgeCall{"POST", s.RelayURL + "/push", s.Token("alice"), push}); got.Status != tt.want {
			t.Errorf("%s: answered %d %q, want %d", name, got.Status, got.Error, tt.want)
		}
	}
}

func TestOutageStatus(t *testing.T) {
	for _, tt := range []struct {
		opts []relaytest.BridgeOption
		want int
		says string
	}{
		{nil, 503, "token service unavailable"},
		{[]relaytest.BridgeOption{relaytest.WithBridge(relay.WithOutageStatus(401))}, 401, "invalid_token"},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := quick(t, tt.opts...)
			token := s.Token("alice")
			push := bridgeCall{"POST", s.RelayURL + "/push", token, `{"title":"t","body":"b"}`}
			s.Script(relaytest.EndpointJWKS, 1, relaytest.Answer{Drop: true})
			if got := do(t, s.Client(), push); got.Status != tt.want || got.Error != tt.says {
				t.Errorf("answered %+v", got)
			}
			advance(10 * time.Second)
			if got := do(t, s.Client(), push); got.Status != 200 {
				t.Errorf("the same token, after the outage: %+v", got)
			}
		})
	}
}
