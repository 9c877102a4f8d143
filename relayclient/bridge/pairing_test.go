package bridge_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/secret"
)

var pairing = bridge.PairingResponse{
	URL:             "wss://192.168.1.100:3001",
	Protocol:        "acp",
	Version:         "1.0.0",
	AuthToken:       secret.New("hunter2-auth"),
	CertFingerprint: "SHA256:...",
}

func TestPairingResponse(t *testing.T) {
	partial := config
	partial.ClientSecret = secret.Text{}
	const start = `{"url":"wss://192.168.1.100:3001","protocol":"acp","version":"1.0.0","authToken":"hunter2-auth","certFingerprint":"SHA256:..."`
	tests := []struct {
		name   string
		config bridge.Config
		want   string
	}{
		{"enabled", config, start + `,"pushRelayUrl":"https://push.example"}`},
		{"a field is missing", partial, start + `}`},
		{"disabled", bridge.Config{}, start + `}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stale := pairing
			stale.PushRelayURL = "https://old.example"
			got, err := json.Marshal(stale.WithPushRelay(tt.config))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	_, client := newClient(t)
	values := map[string]any{
		"Config": config, "*Config": &config, "[]Config": []bridge.Config{config},
		"Device": phone, "*Device": &phone,
		"PairingResponse": pairing, "*PairingResponse": &pairing,
		"Client": client, "Result": client.Notify(t.Context(), notification),
	}
	for name, value := range values {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%c", "%U", "%g"} {
				fmt.Fprintf(&out, verb+"\n", value)
			}
			slog.New(slog.NewTextHandler(&out, nil)).Info("text", "value", value)
			slog.New(slog.NewJSONHandler(&out, nil)).Info("json", "value", value)
			if !strings.Contains(name, "Pairing") { // whose JSON is for the app
				if text, err := json.Marshal(value); err == nil {
					out.Write(text)
				}
			}
			if s := strings.ToLower(out.String()); strings.Contains(s, "hunter2") || strings.Contains(s, fmt.Sprintf("%x", "hunter2")) {
				t.Errorf("shows a secret:\n%s", &out)
			}
		})
	}
}
