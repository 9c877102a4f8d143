package bridge

import (
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/sealpush/sealpush/secret"
)

// PairingResponse is what a bridge answers when an app scans its QR code. The app takes the presence of pushRelayUrl as
// the sign that push is configured: then it asks for permission and sends bridge/registerPushToken.
//
// AuthToken is a secret that the app must get: encoding/json carries it, while fmt verbs and slog do not.
type PairingResponse struct {
	URL             string      `json:"url"`      // of the bridge's WebSocket: "wss://192.168.1.100:3001"
	Protocol        string      `json:"protocol"` // "acp"
	Version         string      `json:"version"`  // "1.0.0"
	AuthToken       secret.Text `json:"authToken"`
	CertFingerprint string      `json:"certFingerprint,omitempty"` // "SHA256:…"; empty when there is no certificate to pin
	PushRelayURL    string      `json:"pushRelayUrl,omitempty"`    // set it with WithPushRelay
}

// WithPushRelay returns the response with PushRelayURL set when push is enabled in the configuration, and empty when it
// is not.
func (p PairingResponse) WithPushRelay(config Config) PairingResponse {
	p.PushRelayURL = ""
	if clean, err := config.cleaned(); err == nil && clean.Enabled() {
		p.PushRelayURL = clean.URL
	}
	return p
}

// MarshalJSON encodes the response for the app, with the AuthToken.
func (p PairingResponse) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		URL             string `json:"url"`
		Protocol        string `json:"protocol"`
		Version         string `json:"version"`
		AuthToken       string `json:"authToken"`
		CertFingerprint string `json:"certFingerprint,omitempty"`
		PushRelayURL    string `json:"pushRelayUrl,omitempty"`
	}{p.URL, p.Protocol, p.Version, p.AuthToken.Reveal(), p.CertFingerprint, p.PushRelayURL})
}

// LogValue keeps a JSON log from what MarshalJSON shows.
func (p PairingResponse) LogValue() slog.Value {
	type plain PairingResponse // which has no methods
	return slog.StringValue(fmt.Sprintf("%+v", plain(p)))
}
