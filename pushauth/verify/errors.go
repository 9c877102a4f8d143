package verify

import (
	"errors"
	"fmt"

	"github.com/golang-jwt/jwt/v5"
)

// The three ways in which [Verifier.Verify] fails; see [StatusCode] for how a relay answers each. An error of Verify
// also wraps that of package github.com/golang-jwt/jwt/v5: [jwt.ErrTokenExpired] for an expired token,
// [jwt.ErrTokenInvalidAudience] for a token for another audience, and so on.
var (
	ErrInvalidToken      = errors.New("verify: invalid token")
	ErrInsufficientScope = errors.New("verify: insufficient scope")
	ErrKeysUnavailable   = errors.New("verify: keys unavailable")
)

var (
	errCriticalHeader = errors.New("critical header not understood")
	errNoKeyID        = errors.New("no key id")
	errUnknownKey     = errors.New("signed with an unknown key")
)

// reasons are the errors that may be shown. What the jwt package puts around them can quote the token, whose text
// anybody may have chosen until it is verified.
var reasons = [...]error{
	errCriticalHeader, errNoKeyID, errUnknownKey,
	jwt.ErrTokenMalformed, jwt.ErrTokenUnverifiable, jwt.ErrTokenSignatureInvalid,
	jwt.ErrTokenExpired, jwt.ErrTokenNotValidYet, jwt.ErrTokenUsedBeforeIssued,
	jwt.ErrTokenInvalidIssuer, jwt.ErrTokenInvalidAudience, jwt.ErrTokenRequiredClaimMissing,
}

// classify turns an error of the parser into one of Verify.
func classify(err error) error {
	if unavailable, ok := errors.AsType[*keysError](err); ok {
		return unavailable
	}
	for _, reason := range reasons {
		if errors.Is(err, reason) {
			return fmt.Errorf("%w: %w", ErrInvalidToken, reason)
		}
	}
	return ErrInvalidToken
}

// keysError is ErrKeysUnavailable with its cause.
type keysError struct{ cause error }

func (e *keysError) Error() string   { return ErrKeysUnavailable.Error() + ": " + e.cause.Error() }
func (e *keysError) Unwrap() []error { return []error{ErrKeysUnavailable, e.cause} }
