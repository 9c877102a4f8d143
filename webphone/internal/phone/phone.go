// Package phone is what the web phone does with keys and boxes. It runs in a browser, as WebAssembly; see
// webphone/wasm.
package phone

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/seal"
)

// Limits of what is read, in bytes. A push message has at most 3993 bytes, and what a mailbox holds at most 8 KiB.
const (
	maxBox  = 8 << 10
	maxText = 8 << 10
)

// A Key is the phone's key as the page shows it.
type Key struct {
	Seed        []byte     // 32 bytes, secret
	Suite       seal.Suite // of the key
	PublicKey   string     // standard base64
	Fingerprint string     // of the public key
}

// Generate makes a new key of a suite.
func Generate(suite string) (Key, error) {
	private := seal.Suite(suite).GenerateKey()
	if private.Public().IsZero() {
		return Key{}, fmt.Errorf("%w: %.32q", seal.ErrUnknownSuite, suite)
	}
	return describe(private), nil
}

// FromSeed returns the key of a seed, for what it shows and to see that it is whole.
func FromSeed(suite string, seed []byte) (Key, error) {
	private, err := seal.Suite(suite).NewPrivateKey(seed)
	if err != nil {
		return Key{}, err
	}
	return describe(private), nil
}

func describe(private seal.PrivateKey) Key {
	public := private.Public()
	return Key{Seed: private.Bytes(), Suite: public.Suite(), PublicKey: public.String(), Fingerprint: public.Fingerprint()}
}

// An Opened is an alert out of its box.
type Opened struct {
	JSON  string // the alert in the protocol's form, without what this version does not know
	At    int64  // when the alert was built, in milliseconds since 1970; 0 where it does not say
	Stale bool   // as of payload.Alert.Stale: never to be shown as a live page
}

// Open opens the box of a push message that names the suite of the box, "" for none, and reads the alert in it at now.
func Open(key string, seed []byte, suite, ciphertext string, now time.Time) (Opened, error) {
	if suite == "" {
		suite = string(seal.X25519)
	}
	if suite != key {
		return Opened{}, fmt.Errorf("it is sealed under suite %.32q, and this phone's key is of %s", suite, key)
	}
	plaintext, err := openBox(key, seed, ciphertext)
	if err != nil {
		return Opened{}, err
	}
	alert, err := payload.Parse(plaintext)
	if err != nil {
		return Opened{}, err
	}
	document, err := alert.MarshalJSON()
	if err != nil {
		return Opened{}, err
	}
	opened := Opened{JSON: string(document), Stale: alert.Stale(now)}
	if !alert.Time.IsZero() {
		opened.At = alert.Time.UnixMilli()
	}
	return opened, nil
}

// OpenText opens a box that holds text, such as a daemon's answer in a mailbox.
func OpenText(key string, seed []byte, ciphertext string) (string, error) {
	plaintext, err := openBox(key, seed, ciphertext)
	if err != nil {
		return "", err
	}
	if !utf8.Valid(plaintext) {
		return "", errors.New("the box holds no text")
	}
	return string(plaintext), nil
}

func openBox(key string, seed []byte, ciphertext string) ([]byte, error) {
	if len(ciphertext) > maxBox {
		return nil, fmt.Errorf("a box of %d characters, at most %d are opened", len(ciphertext), maxBox)
	}
	private, err := seal.Suite(key).NewPrivateKey(seed)
	if err != nil {
		return nil, err
	}
	return seal.Open(private, ciphertext)
}

// Seal seals text to an X25519 key, such as that of a pairing link.
func Seal(publicKey, text string) (string, error) {
	if len(text) > maxText {
		return "", fmt.Errorf("a text of %d bytes, at most %d are sealed", len(text), maxText)
	}
	to, err := seal.ParsePublicKey(publicKey)
	if err != nil {
		return "", err
	}
	return seal.Seal(to, []byte(text))
}

// A Push is a push message as a relay makes it, for the phone's own trial of itself.
type Push struct {
	V          int        `json:"v"`
	Suite      seal.Suite `json:"suite"`
	Ciphertext string     `json:"ciphertext"`
	CollapseID string     `json:"collapseId"`
	Priority   string     `json:"priority"`
}

// Trial seals a test alert to the phone's own key and returns the push message. It goes through all of the phone and
// nothing of a relay.
func Trial(key string, seed []byte, host string) (string, error) {
	private, err := seal.Suite(key).NewPrivateKey(seed)
	if err != nil {
		return "", err
	}
	alert := payload.NewTest(host)
	alert.Message = "This phone opens what is sealed to it, and shows it."
	plaintext, err := alert.MarshalJSON()
	if err != nil {
		return "", err
	}
	box, err := seal.Seal(private.Public(), plaintext)
	if err != nil {
		return "", err
	}
	push, err := json.Marshal(Push{V: 1, Suite: private.Public().Suite(), Ciphertext: box, CollapseID: payload.NewCollapseID(), Priority: "passive"})
	return string(push), err
}
