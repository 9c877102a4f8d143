package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sealpush/sealpush/secret"
)

// A Target is what the suite checks: a sealed relay, a bridge relay with its token service, or both. It prints, logs
// and encodes to JSON as its URLs alone, without the credentials in them. The suite does not change it.
type Target struct {
	// URL is where the sealed relay is posted to, as a daemon is given it. It may carry Basic credentials. Empty leaves
	// the sealed relay out.
	URL string

	// Bridge is the bridge half. The zero value leaves it out.
	Bridge Bridge

	// Client makes the requests. Nil stands for a client of the suite's own, which opens as many connections as it
	// needs. Redirects are not followed. The checks that send incomplete requests need connections of their own. They
	// use the dialer and the TLS configuration of an [http.Transport]. With any other RoundTripper, and behind a proxy,
	// their verdict is [NotStated].
	Client *http.Client

	// Pace is the least time between two requests. The requests that are sent at once, by the checks about that, do not
	// wait. Zero is no pause.
	Pace time.Duration

	// MaxWait is how long one check waits in all because of answers with 429, if the check is not about 429. Zero
	// stands for 30 s.
	MaxWait time.Duration

	// Timeout is how long the suite waits for one answer. Zero stands for 10 s, which is how long a daemon waits.
	Timeout time.Duration
}

// A Bridge is the bridge half of a [Target]. All fields are required.
//
// The suite registers devices and pushes to them. Create a client for it, since the phones of a client in use would
// ring. If the first push meets a device, the suite makes no second one.
type Bridge struct {
	TokenURL     string // base URL of the token service, without credentials
	RelayURL     string // base URL of the push relay, without credentials
	ClientID     string
	ClientSecret secret.Text
}

func (b Bridge) isZero() bool {
	return b.TokenURL == "" && b.RelayURL == "" && b.ClientID == "" && b.ClientSecret.IsZero()
}

// Format prints the URLs, for every verb.
func (t Target) Format(s fmt.State, _ rune) { io.WriteString(s, t.String()) }

// String names the URLs.
func (t Target) String() string {
	return "sealed relay " + redactURL(t.URL) +
		", push relay " + redactURL(t.Bridge.RelayURL) + ", token service " + redactURL(t.Bridge.TokenURL)
}

// MarshalText is what [Target.String] says, so that JSON holds no more.
func (t Target) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// LogValue logs what [Target.String] says.
func (t Target) LogValue() slog.Value { return slog.StringValue(t.String()) }

func (t Target) parts() []Part {
	var parts []Part
	if t.URL != "" {
		parts = append(parts, SealedRelay)
	}
	if !t.Bridge.isZero() {
		parts = append(parts, BridgeRelay)
	}
	return parts
}

func (t Target) withDefaults() (Target, error) {
	if len(t.parts()) == 0 {
		return t, errors.New("conformance: Target names nothing to check: set URL, Bridge or both")
	}
	if t.URL != "" {
		if err := checkURL("Target.URL", t.URL); err != nil {
			return t, err
		}
	}
	if b := t.Bridge; !b.isZero() {
		if b.ClientID == "" || b.ClientSecret.IsZero() {
			return t, errors.New("conformance: Bridge needs a ClientID and a ClientSecret: create a client for the suite at the token service")
		}
		for _, base := range [][2]string{{"Bridge.TokenURL", b.TokenURL}, {"Bridge.RelayURL", b.RelayURL}} {
			if err := checkURL(base[0], base[1]); err != nil {
				return t, err
			}
			if u, _ := url.Parse(base[1]); u.User != nil {
				return t, fmt.Errorf("conformance: %s has credentials in it: a bridge has those of its client alone", base[0])
			}
		}
		t.Bridge.TokenURL = strings.TrimSuffix(b.TokenURL, "/")
		t.Bridge.RelayURL = strings.TrimSuffix(b.RelayURL, "/")
	}
	if t.Pace < 0 || t.MaxWait < 0 || t.Timeout < 0 {
		return t, errors.New("conformance: Target.Pace, MaxWait and Timeout cannot be negative")
	}
	t.MaxWait = cmp.Or(t.MaxWait, 30*time.Second)
	t.Timeout = cmp.Or(t.Timeout, 10*time.Second)
	return t, nil
}

// checkURL does not quote the URL, which may carry credentials.
func checkURL(field, raw string) error {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("conformance: %s is not an absolute http or https URL", field)
	}
	return nil
}

// redactURL leaves scheme, host and path of a URL.
func redactURL(raw string) string {
	if raw == "" {
		return "(none)"
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return "(not a URL)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// below is a path below the sealed relay's.
func (s *session) below(name string) string {
	u, err := url.Parse(s.target.URL)
	if err != nil {
		return s.target.URL // unreachable: the URL was looked at
	}
	return u.JoinPath(name).String()
}
