package relaytest

import (
	"fmt"
	"io"
	"log/slog"
)

// BridgeDevice is a phone that a bridge has registered. It prints, logs and
// encodes to JSON without its device token. It is a plain value.
type BridgeDevice struct {
	Token    string `json:"-"` // APNs or FCM device token
	Platform string // "ios" or "android"
	BundleID string // "" if the bridge gave none
}

func (d BridgeDevice) sameToken(other BridgeDevice) bool { return d.Token == other.Token }

// Format prints what [BridgeDevice.String] says, whatever the verb.
func (d BridgeDevice) Format(s fmt.State, _ rune) { io.WriteString(s, d.String()) }

// String describes the device without its token.
func (d BridgeDevice) String() string {
	if d.BundleID == "" {
		return printable(d.Platform + " device")
	}
	return printable(d.Platform + " device of " + d.BundleID)
}

// LogValue logs what [BridgeDevice.String] says.
func (d BridgeDevice) LogValue() slog.Value { return slog.StringValue(d.String()) }
