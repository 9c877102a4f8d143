package pushauth

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// ErrInvalidClient is what a [TokenError] matches when the token service answered 401: the client id or the client
// secret is wrong, or the client was deleted.
var ErrInvalidClient = errors.New("pushauth: client id or client secret is wrong")

// TokenError says why the token service issued no token.
type TokenError struct {
	StatusCode int           // the answer's status, 0 when there was none
	LeadsTo    string        // where a redirect leads, without credentials, query and secrets; empty for none
	Message    string        // what the service said, printable and at most 512 bytes; often empty
	RetryAfter time.Duration // what the service asked for, 0 when it did not
	Err        error         // what went wrong, nil when the status says it all
}

func (e *TokenError) Error() string {
	text := "pushauth: no answer from the token service"
	if e.StatusCode != 0 {
		text = fmt.Sprintf("pushauth: token service answered %d %s", e.StatusCode, http.StatusText(e.StatusCode))
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	switch {
	case e.StatusCode == http.StatusUnauthorized:
		text += " (check client id and client secret)"
	case e.StatusCode/100 == 3 && e.LeadsTo != "":
		text += " (redirects are not followed; this one leads to " + e.LeadsTo + "; check the token URL)"
	case e.StatusCode/100 == 3:
		text += " (redirects are not followed; check the token URL)"
	case e.StatusCode == http.StatusNotFound:
		text += " (check the token URL)"
	}
	return text
}

// Unwrap returns Err.
func (e *TokenError) Unwrap() error { return e.Err }

// Is makes a 401 match [ErrInvalidClient].
func (e *TokenError) Is(target error) bool {
	return target == ErrInvalidClient && e.StatusCode == http.StatusUnauthorized
}

// BackoffError is returned while a failed fetch is not repeated: no request was made. It wraps the failure, a
// [TokenError].
type BackoffError struct {
	RetryAt time.Time // when the next call asks the token service again
	Err     error     // why the last fetch failed
}

func (e *BackoffError) Error() string {
	return fmt.Sprintf("%v (not asked again before %s)", e.Err, e.RetryAt.Format(time.RFC3339))
}

// Unwrap returns Err.
func (e *BackoffError) Unwrap() error { return e.Err }
