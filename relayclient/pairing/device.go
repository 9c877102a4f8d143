package pairing

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// Device is one paired phone. It is a plain value, safe to copy and to read from many goroutines.
type Device struct {
	ID        string         // 16 lower-case hex digits, chosen when the phone was first paired
	Name      string         // what its owner calls it, at most 64 characters
	Platform  string         // such as "ios", at most 32 characters
	PushToken secret.Text    // the platform's push token, opaque to us, at most 512 characters
	PublicKey seal.PublicKey // what alerts to this phone are sealed to; no two devices share one
	CreatedAt time.Time      // when the phone was first paired, in UTC and whole seconds
	CreatedBy string         // the label of the caller who first paired it; "" when unknown
	UpdatedAt time.Time      // when it was last paired, in UTC and whole seconds; zero when unknown
	UpdatedBy string         // the label of the caller who last paired it; "" when unknown
}

// deviceView is a Device as [Handler] shows it: with its fingerprint, and with its push token cut.
type deviceView struct {
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	Platform    string  `json:"platform"`
	PublicKey   string  `json:"publicKey"`
	Fingerprint string  `json:"fingerprint"`
	PushToken   string  `json:"pushToken"`
	CreatedAt   string  `json:"createdAt"`
	CreatedBy   *string `json:"createdBy"`
	UpdatedAt   *string `json:"updatedAt"`
	UpdatedBy   *string `json:"updatedBy"`
}

func (d Device) view() deviceView {
	return deviceView{
		ID:          d.ID,
		Name:        d.Name,
		Platform:    d.Platform,
		PublicKey:   d.PublicKey.String(),
		Fingerprint: d.PublicKey.Fingerprint(),
		PushToken:   cutToken(d.PushToken),
		CreatedAt:   formatTime(d.CreatedAt),
		CreatedBy:   nullable(d.CreatedBy),
		UpdatedAt:   nullableTime(d.UpdatedAt),
		UpdatedBy:   nullable(d.UpdatedBy),
	}
}

// String describes the device on one line, with its push token cut to its last six characters.
func (d Device) String() string {
	return fmt.Sprintf("device %s %q (%s, key %s, token %s)",
		d.ID, d.Name, d.Platform, d.PublicKey.Fingerprint(), cutToken(d.PushToken))
}

// cutToken keeps the last six characters of a push token, enough to tell two phones apart. Of a token so short that
// six characters are most of it, nothing is shown.
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

// parseTime returns the zero time for what is not RFC 3339: a phone does not go unpaged over its date.
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
