package bridge

import (
	"fmt"
	"io"
	"log/slog"
)

// PairingResponse is what a bridge answers when an app scans its QR code. The app takes the presence of pushRelayUrl
// as the sign that push is configured: then it asks for permission and sends bridge/registerPushToken.
//
// AuthToken is a secret that the app must get: encoding/json carries it, while fmt verbs and slog print redacted. A
// PairingResponse is plain data: safe for concurrent reads.
type PairingResponse struct {
	URL             string `json:"url"`      // of the bridge's WebSocket: "wss://192.168.1.100:3001"
	Protocol        string `json:"protocol"` // "acp"
	Version         string `json:"version"`  // "1.0.0"
	AuthToken       string `json:"authToken"`
	CertFingerprint string `json:"certFingerprint,omitempty"` // "SHA256:…"; empty when there is no certificate to pin
	PushRelayURL    string `json:"pushRelayUrl,omitempty"`    // set it with WithPushRelay
}

// WithPushRelay returns the response with PushRelayURL set when push is enabled in the configuration, and empty when
// it is not.
func (p PairingResponse) WithPushRelay(config Config) PairingResponse {
	p.PushRelayURL = ""
	if config.Enabled() {
		p.PushRelayURL = config.URL
	}
	return p
}

// String shows what is no secret.
func (p PairingResponse) String() string {
	return fmt.Sprintf("bridge.PairingResponse{URL: %q, AuthToken: [redacted], PushRelayURL: %q}", p.URL, p.PushRelayURL)
}

// Format implements [fmt.Formatter]: every verb prints what String returns.
func (p PairingResponse) Format(f fmt.State, _ rune) { io.WriteString(f, p.String()) }

// LogValue implements [slog.LogValuer].
func (p PairingResponse) LogValue() slog.Value { return slog.StringValue(p.String()) }
