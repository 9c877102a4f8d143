package apns_test

import (
	"encoding/json"
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
	longest := strings.Repeat("A", 3000)
	stub := map[string]any{"title": "New alert", "body": "Open the app to read it."} // whatever the alert
	tests := []struct{ priority, apnsPriority, sound string }{
		{"time-sensitive", "10", "default"},
		{"passive", "5", ""},
	}
	for _, tt := range tests {
		t.Run(tt.priority, func(t *testing.T) {
			m := apns.NewMessage(relay.Envelope{
				Device: secret.New("8F3A1B5577990024"), Ciphertext: longest, CollapseID: collapseID, Priority: tt.priority,
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
			if diff := cmp.Diff(map[string]any{"aps": aps, "v": 1.0, "ciphertext": longest}, payload); diff != "" {
				t.Error(diff)
			}
		})
	}
}
