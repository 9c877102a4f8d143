package relaytest

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"
)

// maxPayload is what Apple's push service takes, in bytes.
const maxPayload = 4096

// expiresAfter is how long the push service keeps trying a phone that is off.
const expiresAfter = 600 * time.Second

// A Message is what a relay hands to Apple's push service (APNs) for one
// accepted envelope.
//
// Header holds what the protocol settles: apns-push-type, apns-priority,
// apns-collapse-id and apns-expiration; read it with Get. Payload is the JSON
// body, under 4096 bytes, in which the app's notification extension finds "v"
// and "ciphertext". A Message prints, logs and encodes to JSON without its
// device token. It is a plain value that shares its header and payload with
// its copies, so leave those unchanged.
type Message struct {
	Device  string `json:"-"` // push token in hex
	Header  http.Header
	Payload json.RawMessage
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

// newMessage makes the message for an envelope that was accepted at now.
func newMessage(e Envelope, now time.Time) Message {
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
	if e.Priority == timeSensitive {
		payload.APS.Sound = "default"
		priority = "10"
	}
	body, err := json.Marshal(payload)
	if err != nil || len(body) >= maxPayload {
		// Unreachable: the ciphertext of an envelope is at most 3000 characters.
		panic(fmt.Sprintf("relaytest: payload of %d bytes: %v", len(body), err))
	}
	header := http.Header{}
	header.Set("apns-push-type", "alert")
	header.Set("apns-priority", priority)
	header.Set("apns-collapse-id", e.CollapseID)
	header.Set("apns-expiration", strconv.FormatInt(now.Add(expiresAfter).Unix(), 10))
	return Message{Device: e.Device, Header: header, Payload: body}
}

// Format prints the message without its device token, for every verb.
func (m Message) Format(s fmt.State, _ rune) { io.WriteString(s, m.String()) }

// String describes the message without its device token.
func (m Message) String() string {
	return printable(fmt.Sprintf("message of %d bytes, collapse id %s, priority %s",
		len(m.Payload), m.Header.Get("apns-collapse-id"), m.Header.Get("apns-priority")))
}

// LogValue logs what [Message.String] says.
func (m Message) LogValue() slog.Value { return slog.StringValue(m.String()) }
