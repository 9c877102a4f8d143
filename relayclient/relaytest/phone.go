package relaytest

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relay/apns"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// A Phone is a paired phone: it holds a private key and a push token, and reads what a [Relay] delivered as the app's
// notification extension would.
//
// It prints, logs and encodes to JSON without either secret. A Phone does not change and is safe for concurrent use.
type Phone struct {
	// Behind a function, because fmt calls no methods on unexported fields of a caller's struct, but looks through a
	// pointer.
	secrets func() phoneConfig
}

type phoneConfig struct {
	key   seal.PrivateKey
	token string
}

// A PhoneOption sets up a [Phone].
type PhoneOption func(*phoneConfig) error

// WithPrivateKey gives the phone a key of either suite instead of a fresh one of x25519: seal.XWing.GenerateKey(), or
// one that was made before, to read what was sealed to it in an earlier run. The zero key is refused.
func WithPrivateKey(key seal.PrivateKey) PhoneOption {
	return func(s *phoneConfig) error {
		if key.Public().IsZero() {
			return errors.New("WithPrivateKey: the zero key")
		}
		s.key = key
		return nil
	}
}

// WithPushToken gives the phone a push token: 16 to 512 hex digits. Anything else is refused.
func WithPushToken(token string) PhoneOption {
	return func(s *phoneConfig) error {
		if _, err := apns.DeviceName(token); err != nil {
			return fmt.Errorf("WithPushToken: the token %w", err)
		}
		s.token = token
		return nil
	}
}

// NewPhone makes a phone, with a fresh key and a push token of 64 hex digits unless options say otherwise. It panics on
// an option that is nil or has a bad value.
func NewPhone(opts ...PhoneOption) *Phone {
	var raw [32]byte
	rand.Read(raw[:])
	secrets := phoneConfig{key: seal.GenerateKey(), token: hex.EncodeToString(raw[:])}
	for _, opt := range opts {
		if opt == nil {
			must(errNilOption)
		}
		must(opt(&secrets))
	}
	return &Phone{func() phoneConfig { return secrets }}
}

// PublicKey is what the phone hands over at pairing, for alerts to be sealed to.
func (p *Phone) PublicKey() seal.PublicKey { return p.secrets().key.Public() }

// PushToken is where the phone is reached, in hex. It is a secret between the phone, its daemon and the relay.
func (p *Phone) PushToken() string { return p.secrets().token }

// A Notification is what the app would show.
type Notification struct {
	Alert payload.Alert // zero in a digest
	// Digest marks the notification that a relay sends instead of the alerts over a device's quota. It says nothing
	// about them.
	Digest bool
	// Stale marks an alert built more than [payload.FreshFor] ago, which may be an old one that somebody delivers
	// again: it must not be shown as a live page (relay protocol, "Replay protection").
	Stale bool
}

// Open reads one message. The error is about a message for another phone, one that would not wake the app's extension,
// one under another suite than the phone's key, a box that this phone cannot open ([seal.ErrOpen]), or a plaintext that
// is no alert (as of [payload.Parse]).
func (p *Phone) Open(m apns.Message) (Notification, error) {
	if !sameDevice(m.Device.Reveal(), p.secrets().token) {
		return Notification{}, errors.New("relaytest: the message is for another phone")
	}
	if len(m.Payload) > apns.MaxPayload {
		return Notification{}, fmt.Errorf("relaytest: a payload of %d bytes is not delivered, %d are", len(m.Payload), apns.MaxPayload)
	}
	var received struct {
		APS struct {
			MutableContent int `json:"mutable-content"`
		} `json:"aps"`
		V          int        `json:"v"`
		Kind       string     `json:"kind"`
		Suite      seal.Suite `json:"suite"`
		Ciphertext string     `json:"ciphertext"`
	}
	if err := json.Unmarshal(m.Payload, &received); err != nil {
		return Notification{}, fmt.Errorf("relaytest: payload: %w", err)
	}
	if received.Kind == "digest" && received.Ciphertext == "" {
		return Notification{Digest: true}, nil
	}
	if received.APS.MutableContent != 1 {
		return Notification{}, errors.New("relaytest: without mutable-content the app's extension is not woken")
	}
	if received.V != 1 {
		return Notification{}, fmt.Errorf("relaytest: payload has v %d, want 1", received.V)
	}
	if received.Suite == "" {
		received.Suite = seal.X25519
	}
	if suite := p.PublicKey().Suite(); received.Suite != suite {
		return Notification{}, fmt.Errorf("relaytest: the message is sealed under %q, the phone's key is of %q", received.Suite, suite)
	}
	plaintext, err := seal.Open(p.secrets().key, received.Ciphertext)
	if err != nil {
		return Notification{}, fmt.Errorf("relaytest: %w", err)
	}
	alert, err := payload.Parse(plaintext)
	if err != nil {
		return Notification{}, fmt.Errorf("relaytest: %w", err)
	}
	return Notification{Alert: alert, Stale: alert.Stale(time.Now())}, nil
}

// sameDevice compares two device tokens in hex.
func sameDevice(a, b string) bool {
	return secret.New(strings.ToLower(a)).Equal(secret.New(strings.ToLower(b)))
}

// Received opens what is in the relay's inbox for this phone, oldest first. The error joins those of the messages that
// do not open; the others are returned all the same.
func (p *Phone) Received(relay *Relay) ([]Notification, error) {
	var shown []Notification
	var failed []error
	for _, m := range relay.Inbox(p.secrets().token) {
		n, err := p.Open(m)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		shown = append(shown, n)
	}
	return shown, errors.Join(failed...)
}

// Format prints the phone as [Phone.String] says, for every verb.
func (p Phone) Format(s fmt.State, _ rune) { io.WriteString(s, p.String()) }

// String names the phone by the fingerprint of its public key.
func (p Phone) String() string {
	if p.secrets == nil {
		return "phone without a key"
	}
	return "phone " + p.PublicKey().Fingerprint()
}

// LogValue logs what [Phone.String] says.
func (p Phone) LogValue() slog.Value { return slog.StringValue(p.String()) }
