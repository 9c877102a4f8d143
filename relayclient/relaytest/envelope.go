package relaytest

import (
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/sealpush/sealpush/seal"
)

// Bounds of an envelope (relay protocol, "Inbound request").
const (
	maxBody         = 8192 // bytes
	minDeviceDigits = 16
	maxDeviceDigits = 512
	collapseDigits  = 32
)

// The two priorities of an envelope.
const (
	timeSensitive = "time-sensitive"
	passive       = "passive"
)

// An Envelope is one alert for one device as a daemon posts it, read by the
// relay's own understanding of the protocol ("Inbound request", v1).
//
// It prints, logs and encodes to JSON without its device token. It is a plain
// value.
type Envelope struct {
	Device     string `json:"-"`          // push token: 16 to 512 hex digits
	Ciphertext string `json:"ciphertext"` // at most 3000 characters of padded standard base64
	CollapseID string `json:"collapseId"` // 32 lower-case hex digits
	Priority   string `json:"priority"`   // "time-sensitive" or "passive"
	Event      bool   `json:"event"`      // whether the alert is a daemon event
}

// Format prints the envelope without its device token, for every verb.
func (e Envelope) Format(s fmt.State, _ rune) { io.WriteString(s, e.String()) }

// String describes the envelope without its device token.
func (e Envelope) String() string {
	return printable(fmt.Sprintf("envelope of %d characters, collapse id %s, %s, event %t",
		len(e.Ciphertext), e.CollapseID, e.Priority, e.Event))
}

// LogValue logs what [Envelope.String] says.
func (e Envelope) LogValue() slog.Value { return slog.StringValue(e.String()) }

// errOversize refuses a body for its size alone.
var errOversize = fmt.Errorf("body is larger than %d bytes", maxBody)

// A fieldError says what is wrong with which member of an envelope, or with
// its body. It quotes nothing of either.
type fieldError struct{ field, problem string }

func (e *fieldError) Error() string { return e.field + " " + e.problem }

// parseEnvelope reads a request body. Its error is errOversize or a *fieldError
// about the first member, in the protocol's order, that is wrong.
//
// Member names are compared exactly and a member that occurs twice is refused:
// two readers that disagree on which one counts would disagree on who is
// paged. Members the protocol does not know are ignored, whatever they hold,
// so that v1 can grow.
func parseEnvelope(body []byte) (Envelope, error) {
	if len(body) > maxBody {
		return Envelope{}, errOversize
	}
	m := splitMembers(body, "v", "device", "ciphertext", "collapseId", "priority", "event")
	m.one("v")
	e := Envelope{
		Device:     m.text("device", checkDevice),
		Ciphertext: m.text("ciphertext", checkCiphertext),
		CollapseID: m.text("collapseId", checkCollapseID),
		Priority:   m.text("priority", checkPriority),
		Event:      m.boolean("event"),
	}
	if m.err != nil {
		return Envelope{}, m.err
	}
	return e, nil
}

// The checks return what is wrong with a member's value, or "".

func checkDevice(s string) string {
	if len(s) < minDeviceDigits || len(s) > maxDeviceDigits || !onlyOf(s, "0123456789abcdefABCDEF") {
		return fmt.Sprintf("must be %d to %d hex digits", minDeviceDigits, maxDeviceDigits)
	}
	return ""
}

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
	if s != timeSensitive && s != passive {
		return "must be " + timeSensitive + " or " + passive
	}
	return ""
}

// onlyOf reports whether s consists of characters of set alone.
func onlyOf(s, set string) bool { return strings.Trim(s, set) == "" }
