package relaytest_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sealpush/sealpush/relayclient/relaytest"
)

func TestMessage(t *testing.T) {
	tests := []struct{ priority, apnsPriority, sound string }{
		{"time-sensitive", "10", "default"},
		{"passive", "5", ""},
	}
	stub := map[string]any{"title": "New alert", "body": "Open the app to read it."} // whatever the alert
	for _, tt := range tests {
		t.Run(tt.priority, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				relay := relaytest.NewRelay(relaytest.InMemory())
				defer relay.Close()
				longest := strings.Repeat("A", 3000)
				post(t, relay, envelope(t, "ciphertext", longest, "priority", tt.priority))
				m := relay.Inbox(device)[0]

				headers := map[string]string{
					"apns-push-type":   "alert",
					"apns-priority":    tt.apnsPriority,
					"apns-collapse-id": collapseID,
					"apns-expiration":  "946685400", // the bubble starts at 946684800
				}
				for name, want := range headers {
					if got := m.Header.Get(name); got != want {
						t.Errorf("%s: %q, want %q", name, got, want)
					}
				}
				if len(m.Header) != len(headers) {
					t.Errorf("headers %v", m.Header)
				}
				if len(m.Payload) >= 4096 {
					t.Errorf("payload of %d bytes", len(m.Payload))
				}
				var payload map[string]any
				if err := json.Unmarshal(m.Payload, &payload); err != nil {
					t.Fatal(err)
				}
				want := map[string]any{
					"aps":        map[string]any{"alert": stub, "mutable-content": 1.0, "interruption-level": tt.priority},
					"v":          1.0,
					"ciphertext": longest,
				}
				if tt.sound != "" {
					want["aps"].(map[string]any)["sound"] = tt.sound
				}
				if !reflect.DeepEqual(payload, want) {
					t.Errorf("payload %v", payload)
				}
			})
		})
	}
}
