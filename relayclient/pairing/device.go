package pairing

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/sealpush/sealpush/seal"
)

// Device is one paired phone. It is a plain value, safe to copy and to read from many goroutines.
//
// However a Device is printed (every fmt verb, slog, encoding/json), its push token is cut to "…" and its last six
// characters ("…" alone when it has fewer than twelve), so that a log line cannot be used to page the phone. A Store therefore writes the fields one by one:
// json.Marshal of a Device does not round-trip.
type Device struct {
	ID        string         // 16 lower-case hex digits, chosen when the phone was first paired
	Name      string         // what its owner calls it, at most 64 characters
	Platform  string         // such as "ios", at most 32 characters
	PushToken string         // the platform's push token, opaque to us, at most 512 characters; a secret
	PublicKey seal.PublicKey // what alerts to this phone are sealed to; no two devices share one
	CreatedAt time.Time      // when the phone was first paired, in UTC and whole seconds
	CreatedBy string         // the label of the caller who first paired it; "" when unknown
}

// deviceView is a Device as people and programs outside the store may see it.
type deviceView struct {
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	Platform    string  `json:"platform"`
	PublicKey   string  `json:"publicKey"`
	Fingerprint string  `json:"fingerprint"`
	PushToken   string  `json:"pushToken"`
	CreatedAt   string  `json:"createdAt"`
	CreatedBy   *string `json:"createdBy"`
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
	}
}

// String describes the device on one line, with its push token cut.
func (d Device) String() string {
	return fmt.Sprintf("device %s %q (%s, key %s, token %s)",
		d.ID, d.Name, d.Platform, d.PublicKey.Fingerprint(), cutToken(d.PushToken))
}

// Format writes [Device.String] whatever the verb, so that no verb prints the push token.
func (d Device) Format(f fmt.State, _ rune) { fmt.Fprint(f, d.String()) }

// LogValue is the device as slog shows it, with its push token cut.
func (d Device) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("device", d.ID),
		slog.String("name", d.Name),
		slog.String("platform", d.Platform),
		slog.String("fingerprint", d.PublicKey.Fingerprint()),
		slog.String("push_token", cutToken(d.PushToken)),
	)
}

// MarshalJSON is the device as [Handler] shows it: with its fingerprint, and with its push token cut.
func (d Device) MarshalJSON() ([]byte, error) { return json.Marshal(d.view()) }

// cutToken keeps the last six characters of a push token, enough to tell two phones apart. Of a token so short that
// six characters are most of it, nothing is shown.
func cutToken(token string) string {
	const shown = 6
	runes := []rune(token)
	if len(runes) < 2*shown {
		return "…"
	}
	return "…" + string(runes[len(runes)-shown:])
}

// timeLayout is how the deployed daemon writes createdAt: RFC 3339 in UTC, the offset spelt +00:00.
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

// randomHex returns n random bytes as 2n lower-case hex digits.
func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return hex.EncodeToString(b)
}

// sortDevices orders devices as they are listed: the first paired first.
func sortDevices(devices []Device) {
	slices.SortStableFunc(devices, func(a, b Device) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
	})
}
