package verify

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Authenticate verifies the bearer token of a request: the one Authorization header, which is "Bearer", a space and the
// token. The scheme is taken in that spelling alone, as by the deployed relay, although HTTP leaves its case open. A
// request without a token is [ErrInvalidToken] like the others of [Verifier.Verify].
func (v *Verifier) Authenticate(r *http.Request) (Claims, error) {
	token, err := bearer(r.Header)
	if err != nil {
		return Claims{}, err
	}
	return v.Verify(r.Context(), token)
}

func bearer(header http.Header) (string, error) {
	values := header.Values("Authorization")
	if len(values) != 1 {
		return "", fmt.Errorf("%w: %d Authorization headers, want one", ErrInvalidToken, len(values))
	}
	token, ok := strings.CutPrefix(values[0], "Bearer ")
	if !ok || token == "" {
		return "", fmt.Errorf("%w: the Authorization header holds no bearer token", ErrInvalidToken)
	}
	return token, nil
}

// StatusCode is how a relay answers an error of [Verifier.Verify] or [Verifier.Authenticate]: 401 for an invalid token,
// upon which a bridge fetches a new one and tries once more; 403 for a missing scope, which a new token would not
// change; 503 if the keys could not be had. It is 200 for nil, and 500 for an error of any other origin.
func StatusCode(err error) int {
	switch {
	case err == nil:
		return http.StatusOK
	case errors.Is(err, ErrInvalidToken):
		return http.StatusUnauthorized
	case errors.Is(err, ErrInsufficientScope):
		return http.StatusForbidden
	case errors.Is(err, ErrKeysUnavailable):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
