package verify

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// Claims is what a verified token says.
type Claims struct {
	Subject   string    // "sub": the client id of the bridge, never empty
	Issuer    string    // "iss"
	Audience  []string  // "aud"
	Scopes    []string  // "scope", split at spaces
	IssuedAt  time.Time // "iat", zero if the token has none
	ExpiresAt time.Time // "exp"
}

// HasScope reports whether scope is among the token's scopes.
func (c Claims) HasScope(scope string) bool { return slices.Contains(c.Scopes, scope) }

// tokenClaims is the JSON of a token's payload.
type tokenClaims struct {
	jwt.RegisteredClaims
	Scope string
}

// UnmarshalJSON reads the claims by their exact names (RFC 7519, section 4): a struct's fields would take "SUB" for
// "sub".
func (c *tokenClaims) UnmarshalJSON(payload []byte) error {
	var claims map[string]json.RawMessage
	if err := json.Unmarshal(payload, &claims); err != nil {
		return err
	}
	for name, text := range map[string]any{"iss": &c.Issuer, "sub": &c.Subject, "aud": &c.Audience, "scope": &c.Scope} {
		if claim, there := claims[name]; there {
			if err := json.Unmarshal(claim, text); err != nil {
				return err
			}
		}
	}
	for name, date := range map[string]**jwt.NumericDate{"exp": &c.ExpiresAt, "nbf": &c.NotBefore, "iat": &c.IssuedAt} {
		if claim, there := claims[name]; there {
			var err error
			if *date, err = numericDate(claim); err != nil {
				return err
			}
		}
	}
	return nil
}

// lastInstant is the end of the year 9999 in seconds since 1970.
const lastInstant = 253402300799

// numericDate reads a NumericDate (RFC 7519, section 2), a JSON number of seconds since 1970. A fraction is cut off. A
// date before 1970 or after the year 9999 is refused: no clock shows it, and far dates overflow where they are
// compared.
func numericDate(claim json.RawMessage) (*jwt.NumericDate, error) {
	var seconds *float64
	if err := json.Unmarshal(claim, &seconds); err != nil {
		return nil, err
	}
	if seconds == nil || *seconds < 0 || *seconds > lastInstant {
		return nil, errors.New("not a date between 1970 and 9999")
	}
	return jwt.NewNumericDate(time.Unix(int64(*seconds), 0)), nil
}
