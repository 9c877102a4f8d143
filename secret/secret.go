// Package secret has the type for a text that must not be printed: a client secret, a push token, a collapse salt, a
// bearer token.
//
//	password := secret.New(os.Getenv("PASSWORD"))
//	fmt.Printf("%+v", password)             // [secret]
//	req.SetBasicAuth(user, password.Reveal())
//
// A program that searches its own source for Reveal finds each place where a secret leaves its wrapping.
package secret

import (
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
)

// What a Text prints as.
const (
	placeholder = "[secret]"
	nothing     = "[no secret]"
)

// A Text holds a secret text. With every verb of fmt, with log/slog, and encoded as JSON, TOML or XML it is a
// placeholder, which only says whether there is a secret. In somebody's unexported field, where fmt calls no methods,
// it prints as an address.
//
// The zero value holds the empty text. A Text does not change, can be copied, and is safe for concurrent use;
// UnmarshalText alone replaces it. Two of them are compared with [Text.Equal]: == does not compile.
type Text struct {
	_    [0]func() // makes == fail to compile
	text *string   // nil for the empty text, so that there is one zero value
}

// New returns a Text that holds s.
func New(s string) Text {
	if s == "" {
		return Text{}
	}
	return Text{text: &s}
}

// Reveal returns the secret itself.
func (t Text) Reveal() string {
	if t.text == nil {
		return ""
	}
	return *t.text
}

// Equal reports whether two texts are the same. The time that it takes depends on their lengths and not on their
// content (crypto/subtle).
func (t Text) Equal(other Text) bool {
	return subtle.ConstantTimeCompare([]byte(t.Reveal()), []byte(other.Reveal())) == 1
}

// IsZero reports whether the text is empty. It is what encoding/json's omitzero asks.
func (t Text) IsZero() bool { return t.text == nil }

// String returns the placeholder.
func (t Text) String() string {
	if t.IsZero() {
		return nothing
	}
	return placeholder
}

// Format prints the placeholder, whatever the verb.
func (t Text) Format(s fmt.State, _ rune) { io.WriteString(s, t.String()) }

// LogValue logs the placeholder.
func (t Text) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText encodes the placeholder, never the secret. A program that stores a secret on purpose writes what
// [Text.Reveal] returns.
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText takes text as the secret, for JSON, TOML and flag.TextVar.
func (t *Text) UnmarshalText(text []byte) error {
	*t = New(string(text))
	return nil
}
