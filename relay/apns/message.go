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
	"github.com/sealpush/sealpush/secret"
)

// MaxPayload is the size of the largest payload that Apple's push service takes,
// in bytes.
const MaxPayload = 4096

// expiresAfter is how long the push service keeps trying a phone that is off.
const expiresAfter = 600 * time.Second

// A Message is what Apple's push service gets for one envelope.
//
// Header holds what the protocol settles: apns-push-type, apns-priority,
// apns-collapse-id and apns-expiration; read it with Get. Payload is the JSON
// body, under 4096 bytes, in which the app's notification extension finds "v"
// and "ciphertext". Copies of a Message share both, so leave them unchanged.
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

// The shape of a payload. The alert's text is a stub: the app's extension puts
// the decrypted alert in its place, and only a phone without the app's key
// ever shows it.
type (
	apnsPayload struct {
		APS        aps    `json:"aps"`
		V          int    `json:"v"`
		Ciphertext string `json:"ciphertext"`
	}
	aps struct {
		Alert             apsAlert `json:"alert"`
		Sound             string   `json:"sound,omitempty"`
		MutableContent    int      `json:"mutable-content"`
		InterruptionLevel string   `json:"interruption-level"`
	}
	apsAlert struct {
		Title string `json:"title"`
		Body  string `json:"body"`
	}
)

// NewMessage makes the message for an envelope that was accepted at now.
func NewMessage(e relay.Envelope, now time.Time) Message {
	payload := apnsPayload{
		APS: aps{
			Alert:             apsAlert{Title: "New alert", Body: "Open the app to read it."},
			MutableContent:    1,
			InterruptionLevel: e.Priority,
		},
		V:          1,
		Ciphertext: e.Ciphertext,
	}
	priority := "5"
	if e.Priority == relay.TimeSensitive {
		payload.APS.Sound = "default"
		priority = "10"
	}
	body, err := json.Marshal(payload)
	if err != nil || len(body) >= MaxPayload {
		// Unreachable: the ciphertext of an envelope is at most 3000 characters.
		panic(fmt.Sprintf("apns: payload of %d bytes: %v", len(body), err))
	}
	header := http.Header{}
	header.Set("apns-push-type", "alert")
	header.Set("apns-priority", priority)
	header.Set("apns-collapse-id", e.CollapseID)
	header.Set("apns-expiration", strconv.FormatInt(now.Add(expiresAfter).Unix(), 10))
	return Message{Device: secret.New(strings.ToLower(e.Device.Reveal())), Header: header, Payload: body}
}

// Device takes device tokens of 16 to 512 hex digits, in either case.
func (f *Forwarder) Device(token string) (string, error) { return DeviceName(token) }

// DeviceName returns a device token in lower case, which is what a relay and
// Apple know the phone by. The error says that a token must be 16 to 512 hex
// digits and quotes nothing of it.
func DeviceName(token string) (string, error) {
	if len(token) < 16 || len(token) > 512 || strings.Trim(token, "0123456789abcdefABCDEF") != "" {
		return "", errors.New("must be 16 to 512 hex digits")
	}
	return strings.ToLower(token), nil
}
