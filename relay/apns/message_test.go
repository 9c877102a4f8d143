package apns_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relay/apns"
	"github.com/sealpush/sealpush/secret"
)

func TestMessage(t *testing.T) {
	const collapseID = "93bc5d02dc2a24b5365347573b6f5115"
	longest := strings.Repeat("A", 3800)
	stub := map[string]any{"title": "New alert", "body": "Open the app to read it."} // whatever the alert
	tests := []struct{ priority, apnsPriority, sound string }{
		{"time-sensitive", "10", "default"},
		{"passive", "5", ""},
	}
	for _, tt := range tests {
		t.Run(tt.priority, func(t *testing.T) {
			m := apns.NewMessage(relay.Envelope{
				Device: secret.New("8F3A1B5577990024"), Suite: "sixteen-letters0", Ciphertext: longest, CollapseID: collapseID, Priority: tt.priority,
			}, time.Unix(946684800, 999))
			if got := m.Device.Reveal(); got != "8f3a1b5577990024" {
				t.Errorf("Apple is given %s", got)
			}
			headers := map[string]string{
				"apns-push-type":   "alert",
				"apns-priority":    tt.apnsPriority,
				"apns-collapse-id": collapseID,
				"apns-expiration":  "946685400",
			}
			for name, want := range headers {
				if got := m.Header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			if len(m.Header) != len(headers) {
				t.Errorf("headers %v", m.Header)
			}
			if len(m.Payload) > 4096 {
				t.Errorf("payload of %d bytes", len(m.Payload))
			}
			var payload map[string]any
			if err := json.Unmarshal(m.Payload, &payload); err != nil {
				t.Fatal(err)
			}
			aps := map[string]any{"alert": stub, "mutable-content": 1.0, "interruption-level": tt.priority}
			if tt.sound != "" {
				aps["sound"] = tt.sound
			}
			if diff := cmp.Diff(map[string]any{"aps": aps, "v": 1.0, "suite": "sixteen-letters0", "ciphertext": longest}, payload); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDigest(t *testing.T) {
	m := apns.NewDigest(secret.New("8F3A1B5577990024"), time.Unix(946684800, 0))
	if got := m.Device.Reveal(); got != "8f3a1b5577990024" {
		t.Errorf("Apple is given %s", got)
	}
	headers := http.Header{}
	for name, value := range map[string]string{
		"apns-push-type": "alert", "apns-priority": "5", "apns-collapse-id": "digest", "apns-expiration": "946685400",
	} {
		headers.Set(name, value)
	}
	if diff := cmp.Diff(headers, m.Header); diff != "" {
		t.Error(diff)
	}
	var payload map[string]any
	if err := json.Unmarshal(m.Payload, &payload); err != nil {
		t.Fatal(err)
	}
	stub, _ := payload["aps"].(map[string]any)
	if alert, _ := stub["alert"].(map[string]any); alert["title"] == "" || alert["body"] == "" {
		t.Errorf("alert %v", stub)
	}
	delete(stub, "alert")
	want := map[string]any{"aps": map[string]any{"interruption-level": "passive"}, "v": 1.0, "kind": "digest"}
	if diff := cmp.Diff(want, payload); diff != "" {
		t.Error(diff)
	}
}
