package pushauth

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"unicode/utf8"

	"github.com/sealpush/sealpush/internal/baseurl"
)

// Credentials are what the operator of a token service hands out once, when a client is created.
//
// Credentials print redacted with every fmt verb, in slog, JSON and text; read the fields to use them. They are plain
// data: safe for concurrent reads.
type Credentials struct {
	TokenURL     string // base URL of the token service; "/token" is added to it
	ClientID     string
	ClientSecret string
}

// endpoint checks the credentials and returns the URL that issues tokens.
func (c Credentials) endpoint() (*url.URL, error) {
	base, err := baseurl.Parse(c.TokenURL)
	if err != nil {
		return nil, fmt.Errorf("pushauth: token URL %w", err)
	}
	for _, field := range []struct{ name, value string }{
		{"client id", c.ClientID},
		{"client secret", c.ClientSecret},
	} {
		switch {
		case field.value == "":
			return nil, fmt.Errorf("pushauth: %s is empty", field.name)
		case !utf8.ValidString(field.value):
			// JSON would carry U+FFFD in place of the stray bytes, and the service would say 401.
			return nil, errors.New("pushauth: " + field.name + " is not UTF-8")
		}
	}
	return base.JoinPath("token"), nil
}

// String names the client and nothing else.
func (c Credentials) String() string {
	return fmt.Sprintf("pushauth.Credentials{ClientID: %q, ClientSecret: [redacted]}", c.ClientID)
}

// Format implements [fmt.Formatter]: every verb prints what String returns.
func (c Credentials) Format(f fmt.State, _ rune) { io.WriteString(f, c.String()) }

// LogValue implements [slog.LogValuer].
func (c Credentials) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText implements [encoding.TextMarshaler], redacted; JSON uses it too. There is no way back.
func (c Credentials) MarshalText() ([]byte, error) { return []byte(c.String()), nil }
