package webpush

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	webpush "github.com/SherClockHolmes/webpush-go"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/seal"
)

// MaxPayload is the size of the largest message that every push service takes, in bytes: the 4096 of RFC 8291, section
// 4, less header, delimiter and tag.
const MaxPayload = 3993

// timeToLive is how long the push service keeps a message for a phone that is off.
const timeToLive = 600 * time.Second

// tokenDigits is the length of a device token.
const tokenDigits = 64

// A message is what a browser gets for one envelope, or as a digest.
type message struct {
	payload []byte
	urgency webpush.Urgency
	topic   string // a message takes the place of an older one of its topic
}

// The shape of a payload.
type payload struct {
	V          int        `json:"v"`
	Suite      seal.Suite `json:"suite,omitempty"`
	Ciphertext string     `json:"ciphertext,omitempty"`
	CollapseID string     `json:"collapseId,omitempty"`
	Priority   string     `json:"priority,omitempty"`
	Kind       string     `json:"kind,omitempty"` // of a digest
}

// newMessage makes the message for an envelope. Those that a relay takes have room.
func newMessage(e relay.Envelope) (message, error) {
	urgency := webpush.UrgencyNormal
	if e.Priority == relay.TimeSensitive {
		urgency = webpush.UrgencyHigh
	}
	return encode(payload{V: 1, Suite: e.Suite, Ciphertext: e.Ciphertext, CollapseID: e.CollapseID, Priority: e.Priority}, urgency)
}

// newDigest makes the message that a phone gets instead of the alerts over its quota.
func newDigest() (message, error) {
	return encode(payload{V: 1, CollapseID: "digest", Priority: relay.Passive, Kind: "digest"}, webpush.UrgencyNormal)
}

func encode(p payload, urgency webpush.Urgency) (message, error) {
	body, err := json.Marshal(p)
	if err != nil {
		return message{}, err
	}
	if len(body) > MaxPayload {
		return message{}, fmt.Errorf("webpush: the message has %d bytes, and a push service takes %d", len(body), MaxPayload)
	}
	return message{payload: body, urgency: urgency, topic: topicOf(p.CollapseID)}, nil
}

// topicOf derives a topic, which has at most 32 characters of base64url (RFC 8030, section 5.4), from a collapse id.
func topicOf(collapseID string) string {
	sum := sha256.Sum256([]byte(collapseID))
	return base64.RawURLEncoding.EncodeToString(sum[:24])
}

// deviceName returns a device token in lower case, or says what it must be.
func deviceName(token string) (string, error) {
	if len(token) != tokenDigits || strings.Trim(token, "0123456789abcdefABCDEF") != "" {
		return "", errors.New("must be 64 hex digits")
	}
	return strings.ToLower(token), nil
}
