package pairing

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// Device is one paired phone.
type Device struct {
	ID        string         // 16 lower-case hex digits, chosen when the phone was first paired
	Name      string         // what its owner calls it, at most 64 characters
	Platform  string         // such as "ios", at most 32 characters
	PushToken secret.Text    // what the push service knows the phone by, in any form, at most 512 characters
	Suite     seal.Suite     // the suite of its key, which this version need not know
	PublicKey seal.PublicKey // what alerts to this phone are sealed to; no two devices share one
	StoredKey string         // the key as it is stored, where PublicKey is zero because it cannot be read
	CreatedAt time.Time      // when the phone was first paired, in UTC and whole seconds
	CreatedBy string         // the label of the caller who first paired it; "" when unknown
	UpdatedAt time.Time      // when it was last paired, in UTC and whole seconds; zero when unknown
	UpdatedBy string         // the label of the caller who last paired it; "" when unknown
	Unusable  error          // why no alert is sealed to it on this node; nil for a phone that can be paged
}

// ReadKey is for a [Store] that reads a device: it sets Suite, PublicKey, StoredKey and Unusable from the suite and the
// public key as they are stored. A suite that is empty is [seal.X25519]. Call it when ID and PushToken are set: a
// device without them is unusable too.
func (d *Device) ReadKey(suite, publicKey string) {
	d.Suite = cmp.Or(seal.Suite(suite), seal.X25519)
	d.PublicKey, d.StoredKey = seal.PublicKey{}, ""
	var errs []error
	key, err := d.Suite.ParsePublicKey(publicKey)
	if err != nil {
		d.StoredKey = publicKey
		errs = append(errs, fmt.Errorf("publicKey: %w", err))
	}
	d.PublicKey = key
	if d.ID == "" {
		errs = append(errs, errors.New("id is empty"))
	}
	if d.PushToken.IsZero() {
		errs = append(errs, errors.New("pushToken is empty"))
	}
	d.Unusable = errors.Join(errs...)
}

// key is the public key as text, also where this version cannot read it.
func (d Device) key() string {
	if d.PublicKey.IsZero() {
		return strings.TrimSpace(d.StoredKey)
	}
	return d.PublicKey.String()
}

// fingerprint is that of the key, and "" where the stored key is not base64.
func (d Device) fingerprint() string {
	if !d.PublicKey.IsZero() {
		return d.PublicKey.Fingerprint()
	}
	raw, err := base64.StdEncoding.DecodeString(d.key())
	if err != nil {
		return ""
	}
	return seal.Fingerprint(raw)
}

// updated is when the phone was last paired, as far as the record says.
func (d Device) updated() time.Time {
	if d.UpdatedAt.IsZero() {
		return d.CreatedAt
	}
	return d.UpdatedAt
}

// phone identifies the phone by its push token: two devices with the same push token are the same phone. The case of
// hex digits, as in the tokens of Apple's service, does not matter.
func (d Device) phone() string {
	token := d.PushToken.Reveal()
	if strings.Trim(token, "0123456789abcdefABCDEF") == "" {
		return strings.ToLower(token)
	}
	return token
}

// deviceView is a Device as [Handler] shows it: with its fingerprint, and with its push token cut.
type deviceView struct {
	ID           string     `json:"id"`
	Name         string     `json:"name"`
	Platform     string     `json:"platform"`
	Suite        seal.Suite `json:"suite"`
	SealableHere bool       `json:"sealableHere"`
	PublicKey    string     `json:"publicKey"`
	Fingerprint  *string    `json:"fingerprint"`
	PushToken    string     `json:"pushToken"`
	CreatedAt    string     `json:"createdAt"`
	CreatedBy    *string    `json:"createdBy"`
	UpdatedAt    *string    `json:"updatedAt"`
	UpdatedBy    *string    `json:"updatedBy"`
}

func (d Device) view() deviceView {
	return deviceView{
		ID:           d.ID,
		Name:         d.Name,
		Platform:     d.Platform,
		Suite:        d.Suite,
		SealableHere: d.Unusable == nil,
		PublicKey:    d.key(),
		Fingerprint:  nullable(d.fingerprint()),
		PushToken:    cutToken(d.PushToken),
		CreatedAt:    formatTime(d.CreatedAt),
		CreatedBy:    nullable(d.CreatedBy),
		UpdatedAt:    nullableTime(d.UpdatedAt),
		UpdatedBy:    nullable(d.UpdatedBy),
	}
}

// String describes the device on one line of printable characters, with its push token cut to its last six.
func (d Device) String() string {
	return fmt.Sprintf("device %s %q (%s, %s key %s, token %s)", printable(d.ID), d.Name, printable(d.Platform),
		printable(string(d.Suite)), cmp.Or(d.fingerprint(), "unreadable"), printable(cutToken(d.PushToken)))
}

// printable puts U+FFFD in the place of characters that a terminal would act on, and of all others that do not print.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return utf8.RuneError
	}, s)
}

// cutToken keeps the last six characters of a push token, enough to tell two phones apart. Of a token so short that six
// characters are most of it, nothing is shown.
func cutToken(token secret.Text) string {
	const shown = 6
	runes := []rune(token.Reveal())
	if len(runes) < 2*shown {
		return "…"
	}
	return "…" + string(runes[len(runes)-shown:])
}

// timeLayout is how the deployed daemon writes createdAt, and we updatedAt: RFC 3339 in UTC, the offset spelt +00:00.
const timeLayout = "2006-01-02T15:04:05-07:00"

func formatTime(t time.Time) string { return t.UTC().Format(timeLayout) }

// parseTime returns the zero time for what is not RFC 3339: a phone with an unreadable date is still paged.
func parseTime(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func nullableTime(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return nullable(formatTime(t))
}

// randomHex returns n random bytes as 2n lower-case hex digits.
func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// newSalt returns a collapse salt as package payload makes one.
func newSalt() secret.Text { return secret.New(randomHex(16)) }

// sortDevices orders devices as they are listed: the first paired first.
func sortDevices(devices []Device) {
	slices.SortStableFunc(devices, func(a, b Device) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
	})
}
