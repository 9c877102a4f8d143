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
)

// A Target is what the suite is pointed at: a sealed relay, a bridge relay with
// its token service, or both. It prints, logs and encodes to JSON as its URLs
// alone, without the credentials in them. The suite does not change it.
type Target struct {
	// URL is where the sealed relay is posted to, as a daemon is given it. It
	// may carry Basic credentials. Empty leaves the sealed relay out.
	URL string

	// Bridge is the bridge half. The zero value leaves it out.
	Bridge Bridge

	// Client makes the requests; nil stands for one of the suite's own, that
	// opens as many connections as it needs. Redirects are not followed. The
	// checks that send broken requests open connections of their own with the
	// dialer and the TLS configuration of an [http.Transport]; behind any other
	// RoundTripper, and behind a proxy, they come to no verdict.
	Client *http.Client

	// Pace is the least time between two requests, save for the burst, which
	// is the point of one check. Zero is no pause.
	Pace time.Duration

	// MaxWait is how long a check waits, in all, when it is answered 429 and
	// is not about that. Zero stands for 30 s.
	MaxWait time.Duration

	// Timeout is how long the suite waits for one answer. Zero stands for 10 s,
	// in which a daemon's patience ends too.
	Timeout time.Duration
}

// A Bridge is the bridge half of a [Target]. All fields are required. It
// prints, logs and encodes to JSON without the credentials.
//
// The suite registers devices and pushes to them, so the client should be one
// that was created for it: the phones of a client in use would ring. Where a
// first push meets a device, the suite sends no other.
type Bridge struct {
	TokenURL     string // base URL of the token service
	RelayURL     string // base URL of the push relay
	ClientID     string
	ClientSecret string
}

// Format prints the two URLs, for every verb.
func (b Bridge) Format(s fmt.State, _ rune) { io.WriteString(s, b.String()) }

// String names the two URLs.
func (b Bridge) String() string {
	return "push relay " + redactURL(b.RelayURL) + ", token service " + redactURL(b.TokenURL)
}

// MarshalText is what [Bridge.String] says, so that JSON holds no more.
func (b Bridge) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// LogValue logs what [Bridge.String] says.
func (b Bridge) LogValue() slog.Value { return slog.StringValue(b.String()) }

// Format prints the URLs, for every verb.
func (t Target) Format(s fmt.State, _ rune) { io.WriteString(s, t.String()) }

// String names the URLs.
func (t Target) String() string {
	return "sealed relay " + redactURL(t.URL) + ", " + t.Bridge.String()
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
	if t.Bridge != (Bridge{}) {
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
	if b := t.Bridge; b != (Bridge{}) {
		if b.ClientID == "" || b.ClientSecret == "" {
			return t, errors.New("conformance: Bridge needs a ClientID and a ClientSecret: create a client for the suite at the token service")
		}
		if err := errors.Join(checkURL("Bridge.TokenURL", b.TokenURL), checkURL("Bridge.RelayURL", b.RelayURL)); err != nil {
			return t, err
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

// urlSecrets are the parts of a URL that redactURL leaves out.
func urlSecrets(raw string) []string {
	u, err := url.Parse(raw)
	if err != nil {
		return nil
	}
	secrets := []string{u.RawQuery}
	if u.User != nil {
		password, _ := u.User.Password()
		secrets = append(secrets, password, u.User.String())
	}
	return secrets
}

// below is a path below the sealed relay's.
func (s *session) below(name string) string {
	u, err := url.Parse(s.target.URL)
	if err != nil {
		return s.target.URL // unreachable: the URL was looked at
	}
	return u.JoinPath(name).String()
}
