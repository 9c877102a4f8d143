package apns

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// MaxPayload is the size of the largest payload that Apple's push service takes, in bytes.
const MaxPayload = 4096

// expiresAfter is how long the push service keeps trying a phone that is off.
const expiresAfter = 600 * time.Second

// A Message is what Apple's push service gets for one envelope, or as a digest.
//
// Header holds what the protocol settles: apns-push-type, apns-priority, apns-collapse-id and apns-expiration; read it
// with Get. Payload is the JSON body, at most 4096 bytes, in which the app's notification extension finds "v", "suite"
// and "ciphertext". Copies of a Message share both, so leave them unchanged; then several goroutines may read one.
type Message struct {
	Device  secret.Text `json:"-"` // push token in lower-case hex
	Header  http.Header
	Payload json.RawMessage
}

// String describes the message by its size and how it is routed.
func (m Message) String() string {
	return fmt.Sprintf("message of %d bytes, collapse id %q, priority %q",
		len(m.Payload), m.Header.Get("apns-collapse-id"), m.Header.Get("apns-priority"))
}

// The shape of a payload. The alert's text is a stub: the app's extension puts the decrypted alert in its place, and
// only a phone without the app's key ever shows it.
type (
	apnsPayload struct {
		APS        aps        `json:"aps"`
		V          int        `json:"v"`
		Suite      seal.Suite `json:"suite,omitempty"`
		Ciphertext string     `json:"ciphertext,omitempty"`
		Kind       string     `json:"kind,omitempty"` // of a digest
	}
	aps struct {
		Alert             apsAlert `json:"alert"`
		Sound             string   `json:"sound,omitempty"`
		MutableContent    int      `json:"mutable-content,omitempty"`
		InterruptionLevel string   `json:"interruption-level"`
	}
	apsAlert struct {
		Title string `json:"title"`
		Body  string `json:"body"`
	}
)

// NewMessage makes the message for an envelope that was accepted at now.
func NewMessage(e relay.Envelope, now time.Time) Message {
	content := apnsPayload{
		APS: aps{
			Alert:             apsAlert{Title: "New alert", Body: "Open the app to read it."},
			MutableContent:    1,
			InterruptionLevel: e.Priority,
		},
		V:          1,
		Suite:      e.Suite,
		Ciphertext: e.Ciphertext,
	}
	priority := "5"
	if e.Priority == relay.TimeSensitive {
		content.APS.Sound = "default"
		priority = "10"
	}
	return newMessage(e.Device, content, priority, e.CollapseID, now)
}

// NewDigest makes the message that a phone gets instead of the alerts over its quota ("digested" in the relay
// protocol). It wakes no extension and has nothing to decrypt.
func NewDigest(device secret.Text, now time.Time) Message {
	content := apnsPayload{
		APS: aps{
			Alert:             apsAlert{Title: "More alerts", Body: "This month's alerts are used up. There are more of them at your daemons."},
			InterruptionLevel: relay.Passive,
		},
		V:    1,
		Kind: "digest",
	}
	return newMessage(device, content, "5", "digest", now)
}

func newMessage(device secret.Text, content apnsPayload, priority, collapseID string, now time.Time) Message {
	body, err := json.Marshal(content)
	if err != nil || len(body) > MaxPayload {
		// Unreachable: a relay takes at most 3800 characters of ciphertext.
		panic(fmt.Sprintf("apns: payload of %d bytes: %v", len(body), err))
	}
	header := http.Header{}
	header.Set("apns-push-type", "alert")
	header.Set("apns-priority", priority)
	header.Set("apns-collapse-id", collapseID)
	header.Set("apns-expiration", strconv.FormatInt(now.Add(expiresAfter).Unix(), 10))
	return Message{Device: secret.New(strings.ToLower(device.Reveal())), Header: header, Payload: body}
}

// Device takes device tokens of 16 to 512 hex digits, in either case.
func (f *Forwarder) Device(token string) (string, error) { return DeviceName(token) }

// DeviceName returns a device token in lower case, which is what a relay and Apple know the phone by. The error says
// that a token must be 16 to 512 hex digits and quotes nothing of it.
func DeviceName(token string) (string, error) {
	if len(token) < 16 || len(token) > 512 || strings.Trim(token, "0123456789abcdefABCDEF") != "" {
		return "", errors.New("must be 16 to 512 hex digits")
	}
	return strings.ToLower(token), nil
}
