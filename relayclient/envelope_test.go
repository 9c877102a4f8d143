package relayclient_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// The envelope is JSON whatever the push token holds, its members in the
// protocol's order.
func TestEnvelopeBytes(t *testing.T) {
	var body []byte
	relay := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
	}))
	defer relay.Close()
	client, _ := newClientAt(t, relay.URL)
	id := payload.NewCollapseID()
	event := payload.NewEvent("node-a", "etl", payload.EventQuorumLoss)

	for _, tt := range []struct {
		name, token string
		push        relayclient.Push
		priority    string
		event       bool
	}{
		{"plain", "a1b2c3", relayclient.Push{Alert: failure(), CollapseID: id}, "time-sensitive", false},
		{"event", "a1b2c3", relayclient.Push{Alert: event, CollapseID: id}, "time-sensitive", true},
		{"passive", "a1b2c3", relayclient.Push{Alert: failure(), CollapseID: id, Priority: relayclient.Passive}, "passive", false},
		{"quotes and control characters", "\"},\\\n\x00</é\u2028😀", relayclient.Push{Alert: failure(), CollapseID: id}, "time-sensitive", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			phone := seal.GenerateKey()
			devices := sharedKeyDevices(1)
			devices[0].PushToken, devices[0].PublicKey = secret.New(tt.token), phone.Public()
			wantAllDelivered(t, client.Send(t.Context(), tt.push, devices), devices)

			type envelope struct {
				V          int    `json:"v"`
				Device     string `json:"device"`
				Suite      string `json:"suite"`
				Ciphertext string `json:"ciphertext"`
				CollapseID string `json:"collapseId"`
				Priority   string `json:"priority"`
				Event      bool   `json:"event"`
			}
			var got envelope
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatalf("%s: %v", body, err)
			}
			if _, err := seal.Open(phone, got.Ciphertext); err != nil {
				t.Error(err)
			}
			want := envelope{1, tt.token, "x25519", got.Ciphertext, id, tt.priority, tt.event}
			text, err := json.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(text), string(body)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
