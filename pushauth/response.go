package pushauth

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sealpush/sealpush/secret"
)

// maxLifetime bounds what a token service may claim, so that no sum of times overflows.
const maxLifetime = 365 * 24 * time.Hour

// parseToken reads the token service's answer to a request that was sent at start.
//
// The token's Expiry is the earlier of what expires_in and the token's own exp claim say, zero when neither is there.
func parseToken(body []byte, start time.Time) (Token, error) {
	var answer struct {
		AccessToken string          `json:"access_token"`
		TokenType   string          `json:"token_type"`
		ExpiresIn   json.RawMessage `json:"expires_in"`
	}
	// The decoder's own error may quote the answer, and the answer holds the token.
	if json.Unmarshal(body, &answer) != nil {
		return Token{}, errors.New("answer is not the JSON object that a token service sends; is the token URL right?")
	}
	if err := checkBearer(answer.AccessToken); err != nil {
		return Token{}, err
	}
	if answer.TokenType != "" && !strings.EqualFold(answer.TokenType, "bearer") {
		return Token{}, errors.New("token_type is not Bearer")
	}

	token := Token{Value: secret.New(answer.AccessToken)}
	if seconds, ok := number(answer.ExpiresIn); ok {
		token.Expiry = start.Add(clampSeconds(seconds)).Round(0)
	}
	if exp, ok := jwtExpiry(answer.AccessToken); ok && (token.Expiry.IsZero() || exp.Before(token.Expiry)) {
		token.Expiry = exp
	}
	if latest := start.Add(maxLifetime).Round(0); token.Expiry.After(latest) {
		token.Expiry = latest
	}
	return token, nil
}

// checkBearer refuses a token that cannot stand in a header (RFC 6750 section 2.1 allows fewer characters still).
func checkBearer(value string) error {
	if value == "" {
		return errors.New("access_token is missing")
	}
	for i := range len(value) {
		if c := value[i]; c <= ' ' || c > '~' {
			return fmt.Errorf("access_token has byte 0x%02x, which an Authorization header cannot carry", c)
		}
	}
	return nil
}

// jwtExpiry reads the exp claim without checking the signature, which is the relay's task. Somebody who can forge a
// claim here can just as well send another token.
func jwtExpiry(token string) (time.Time, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return time.Time{}, false
	}
	var claims struct {
		Exp json.RawMessage `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil {
		return time.Time{}, false
	}
	seconds, ok := number(claims.Exp)
	if !ok {
		return time.Time{}, false
	}
	const farAway = 1e11 // the year 5138: a NumericDate is in seconds, and one in milliseconds must not overflow
	whole, fraction := math.Modf(min(max(seconds, 0), farAway))
	return time.Unix(int64(whole), int64(fraction*1e9)), true
}

// number reads a JSON number, or a JSON string that holds one. Anything else counts as absent.
func number(raw json.RawMessage) (float64, bool) {
	text := string(bytes.TrimSpace(raw))
	if strings.HasPrefix(text, `"`) {
		if json.Unmarshal(raw, &text) != nil {
			return 0, false
		}
		text = strings.TrimSpace(text)
	}
	// ParseFloat also knows "inf", "nan", hexadecimal and underscores.
	if text == "" || strings.Trim(text, "0123456789+-.eE") != "" {
		return 0, false
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return value, true // out of range is ±Inf, for the caller to clamp
}

func clampSeconds(seconds float64) time.Duration {
	limit := maxLifetime.Seconds()
	return time.Duration(min(max(seconds, -limit), limit) * float64(time.Second))
}
