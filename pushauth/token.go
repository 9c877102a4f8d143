package pushauth

import (
	"fmt"
	"io"
	"log/slog"
	"time"
)

// Token is a bearer token as the token service issued it.
//
// A Token prints redacted with every fmt verb, in slog, JSON and text; read Value to use it. It is plain data: safe
// for concurrent reads.
type Token struct {
	Value  string    // what follows "Bearer " in the Authorization header
	Expiry time.Time // when it ends, by this machine's clock; zero when neither the service nor the token says
}

// String says when the token ends and nothing else.
func (t Token) String() string {
	if t.Expiry.IsZero() {
		return "pushauth.Token{[redacted]}"
	}
	return "pushauth.Token{[redacted], expires " + t.Expiry.Format(time.RFC3339) + "}"
}

// Format implements [fmt.Formatter]: every verb prints what String returns.
func (t Token) Format(f fmt.State, _ rune) { io.WriteString(f, t.String()) }

// LogValue implements [slog.LogValuer].
func (t Token) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText implements [encoding.TextMarshaler], redacted; JSON uses it too. There is no way back.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
