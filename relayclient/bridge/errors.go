package bridge

import (
	"errors"
	"fmt"
	"net/http"
)

var (
	// ErrUnauthorized is what a [RelayError] matches when the relay answered 401: it does not take the tokens of this
	// token service, or not for this client.
	ErrUnauthorized = errors.New("bridge: the relay does not take this client's tokens")

	// ErrNotDelivered is in [Result.Err] when the relay answered and no device was reached; Result.Devices says why.
	ErrNotDelivered = errors.New("bridge: no device was reached")
)

// RelayError says why a call to the relay failed.
type RelayError struct {
	Call       string // what was called: "POST /push"
	StatusCode int    // the answer's status, 0 when there was none
	LeadsTo    string // where a redirect leads, without credentials, query and secrets; empty for none
	Message    string // what the relay said, printable and at most 512 bytes; often empty
	Err        error  // what went wrong, nil when the status and Message say it all
}

func (e *RelayError) Error() string {
	text := "bridge: " + e.Call
	if e.StatusCode != 0 {
		text += fmt.Sprintf(": relay answered %d %s", e.StatusCode, http.StatusText(e.StatusCode))
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if e.LeadsTo != "" {
		text += " (redirects are not followed; this one leads to " + e.LeadsTo + "; check url)"
	}
	return text
}

// Unwrap returns Err.
func (e *RelayError) Unwrap() error { return e.Err }

// Is makes a 401 match [ErrUnauthorized].
func (e *RelayError) Is(target error) bool {
	return target == ErrUnauthorized && e.StatusCode == http.StatusUnauthorized
}

// FieldError says which field of a device, a notification or a phone's message is wrong. No request was made. It never
// quotes the value.
type FieldError struct {
	Field  string // as JSON spells it: "deviceToken", "platform", "bundleId", "params", "method", "message" (the whole), "title", "body", "notification" (the whole)
	Reason string // what is wrong, to be read after the field: "is missing"
	Err    error  // the cause; nil when there is none
}

func (e *FieldError) Error() string { return "bridge: " + e.Field + " " + e.Reason }

// Unwrap returns the cause.
func (e *FieldError) Unwrap() error { return e.Err }
