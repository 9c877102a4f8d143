package relay

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// Bounds of an envelope (relay protocol, "Inbound request" and "Size budget").
const (
	maxBody        = 8192 // bytes
	collapseDigits = 32
	maxSuite       = 16 // characters

	// The cap on a ciphertext, in characters: the floor that every relay takes, and what fits Apple's 4096 bytes with
	// the longest suite.
	minCap = 3000
	maxCap = 3800
)

// minCiphertext is the length of the shortest ciphertext that is taken, in characters: that of an empty JSON object. A
// suite that this process does not know, or may not use, has that of x25519.
func minCiphertext(suite seal.Suite) int {
	const x25519 = 68
	return max(x25519, base64.StdEncoding.EncodedLen(suite.Overhead()+len("{}")))
}

// The two priorities of an envelope.
const (
	TimeSensitive = "time-sensitive"
	Passive       = "passive"
)

// An Envelope is one alert for one device as a daemon posts it (relay protocol, "Inbound request", v1).
type Envelope struct {
	Device     secret.Text // push token, as the daemon wrote it; it prints as a placeholder
	Suite      seal.Suite  // of the ciphertext; x25519 where the envelope names none
	Ciphertext string      // at most 3800 characters of padded standard base64
	CollapseID string      // 32 lower-case hex digits
	Priority   string      // [TimeSensitive] or [Passive]
	Event      bool        // whether the alert is a daemon event
}

// String describes the envelope by its size and how it is routed.
func (e Envelope) String() string {
	return fmt.Sprintf("envelope of %d characters under %q, collapse id %q, priority %q, event %t",
		len(e.Ciphertext), e.Suite, e.CollapseID, e.Priority, e.Event)
}

// errOversize refuses a body for its size alone.
var errOversize = fmt.Errorf("body is larger than %d bytes", maxBody)

// A fieldError says what is wrong with which member of an envelope, or with its body. It quotes nothing of either.
type fieldError struct{ field, problem string }

func (e *fieldError) Error() string { return e.field + " " + e.problem }

// ParseEnvelope reads a request body, as a relay does that takes any device token and 3800 characters of ciphertext.
// The error says which member is wrong and how, and quotes nothing.
func ParseEnvelope(body []byte) (Envelope, error) {
	e, _, err := parseEnvelope(body, maxCap, func(token string) (string, error) { return token, nil })
	if err != nil {
		return Envelope{}, fmt.Errorf("relay: %w", err)
	}
	return e, nil
}

// parseEnvelope reads a request body, of which the ciphertext may have so many characters. Its error is errOversize or
// a *fieldError about the first member, in the protocol's order, that is wrong. The name is what the device function
// makes of the token.
//
// Member names are compared exactly; of two members of one name the last counts, as at the hosted relay. Members the
// protocol does not know are ignored, whatever they hold, so that v1 can grow.
func parseEnvelope(body []byte, maxCiphertext int, device func(token string) (string, error)) (e Envelope, name string, err error) {
	if len(body) > maxBody {
		return Envelope{}, "", errOversize
	}
	m := splitMembers(body)
	m.one("v")
	e.Device = secret.New(m.text("device", func(token string) string {
		var err error
		if name, err = device(token); err != nil {
			return err.Error()
		}
		return ""
	}))
	e.Suite = seal.X25519
	if m.has("suite") {
		e.Suite = seal.Suite(m.text("suite", checkSuite))
	}
	e.Ciphertext = m.text("ciphertext", func(s string) string { return checkCiphertext(s, minCiphertext(e.Suite), maxCiphertext) })
	e.CollapseID = m.text("collapseId", checkCollapseID)
	e.Priority = m.text("priority", checkPriority)
	e.Event = m.boolean("event")
	if m.err != nil {
		return Envelope{}, "", m.err
	}
	return e, name, nil
}

// The checks return what is wrong with a member's value, or "".

func checkSuite(s string) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	if s == "" || len(s) > maxSuite || s[0] == '-' || !onlyOf(s, letters+"-") {
		return fmt.Sprintf("must be 1 to %d of a to z, 0 to 9 and '-', and not begin with '-'", maxSuite)
	}
	return ""
}

func checkCiphertext(s string, shortest, longest int) string {
	if len(s) > longest {
		return fmt.Sprintf("must be at most %d characters", longest)
	}
	// The decoder would skip line breaks.
	if _, err := base64.StdEncoding.DecodeString(s); err != nil || strings.ContainsAny(s, "\r\n") {
		return "must be standard base64 with padding"
	}
	if len(s) < shortest {
		return fmt.Sprintf("must be at least %d characters", shortest)
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
