package relay

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// Bounds of an envelope (relay protocol, "Inbound request").
const (
	maxBody        = 8192 // bytes
	collapseDigits = 32
)

// The two priorities of an envelope.
const (
	TimeSensitive = "time-sensitive"
	Passive       = "passive"
)

// An Envelope is one alert for one device as a daemon posts it (relay protocol,
// "Inbound request", v1).
type Envelope struct {
	Device     secret.Text // push token, as the daemon wrote it; it prints as a placeholder
	Ciphertext string      // at most 3000 characters of padded standard base64
	CollapseID string      // 32 lower-case hex digits
	Priority   string      // [TimeSensitive] or [Passive]
	Event      bool        // whether the alert is a daemon event
}

// String describes the envelope by its size and how it is routed.
func (e Envelope) String() string {
	return fmt.Sprintf("envelope of %d characters, collapse id %q, priority %q, event %t",
		len(e.Ciphertext), e.CollapseID, e.Priority, e.Event)
}

// errOversize refuses a body for its size alone.
var errOversize = fmt.Errorf("body is larger than %d bytes", maxBody)

// A fieldError says what is wrong with which member of an envelope, or with
// its body. It quotes nothing of either.
type fieldError struct{ field, problem string }

func (e *fieldError) Error() string { return e.field + " " + e.problem }

// ParseEnvelope reads a request body, as a relay does that takes any device
// token. The error says which member is wrong and how, and quotes nothing.
func ParseEnvelope(body []byte) (Envelope, error) {
	e, _, err := parseEnvelope(body, func(token string) (string, error) { return token, nil })
	if err != nil {
		return Envelope{}, fmt.Errorf("relay: %w", err)
	}
	return e, nil
}

// parseEnvelope reads a request body. Its error is errOversize or a *fieldError
// about the first member, in the protocol's order, that is wrong. The name is
// what the device function makes of the token.
//
// Member names are compared exactly and a member that occurs twice is refused:
// two readers that disagree on which one counts would disagree on who is
// paged. Members the protocol does not know are ignored, whatever they hold,
// so that v1 can grow.
func parseEnvelope(body []byte, device func(token string) (string, error)) (e Envelope, name string, err error) {
	if len(body) > maxBody {
		return Envelope{}, "", errOversize
	}
	m := splitMembers(body, "v", "device", "ciphertext", "collapseId", "priority", "event")
	m.one("v")
	e.Device = secret.New(m.text("device", func(token string) string {
		var err error
		if name, err = device(token); err != nil {
			return err.Error()
		}
		return ""
	}))
	e.Ciphertext = m.text("ciphertext", checkCiphertext)
	e.CollapseID = m.text("collapseId", checkCollapseID)
	e.Priority = m.text("priority", checkPriority)
	e.Event = m.boolean("event")
	if m.err != nil {
		return Envelope{}, "", m.err
	}
	return e, name, nil
}

// The checks return what is wrong with a member's value, or "".

// maxCiphertext is the longest ciphertext that is taken, in characters.
const maxCiphertext = 3000

func checkCiphertext(s string) string {
	if len(s) > maxCiphertext {
		return fmt.Sprintf("must be at most %d characters", maxCiphertext)
	}
	// Strict refuses stray bits at the end; line breaks it would skip.
	raw, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil || strings.ContainsAny(s, "\r\n") {
		return "must be standard base64 with padding"
	}
	if len(raw) < seal.X25519.Overhead() {
		return fmt.Sprintf("must be a sealed box, which has at least %d bytes", seal.X25519.Overhead())
	}
	return ""
}

func checkCollapseID(s string) string {
	if len(s) != collapseDigits || !onlyOf(s, "0123456789abcdef") {
		return fmt.Sprintf("must be %d lower-case hex digits", collapseDigits)
	}
	return ""
}

func checkPriority(s string) string {
	if s != TimeSensitive && s != Passive {
		return "must be " + TimeSensitive + " or " + Passive
	}
	return ""
}

// onlyOf reports whether s consists of characters of set alone.
func onlyOf(s, set string) bool { return strings.Trim(s, set) == "" }
