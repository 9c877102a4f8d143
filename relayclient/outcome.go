package relayclient

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Errors that an [Outcome]'s Err answers to with [errors.Is].
var (
	// ErrRateLimited is a relay's 429. StatusError.RetryAfter has its advice.
	ErrRateLimited = errors.New("relayclient: rate limited by the relay")
	// ErrDeviceGone is a relay's 410: the push service no longer knows the
	// device token. The phone has to be paired again, or its pairing revoked.
	ErrDeviceGone = errors.New("relayclient: device token is no longer valid")
	// ErrNotAttempted is a device whose POST was never sent, because the context
	// ended before its turn came.
	ErrNotAttempted = errors.New("relayclient: not attempted")
	// ErrUnusableDevice is a device that cannot be sent to: its key or its push
	// token is unusable. The phone has to be paired again.
	ErrUnusableDevice = errors.New("relayclient: unusable device")
)

// An Outcome says what became of an alert for one device. It is a plain value.
type Outcome struct {
	// DeviceID is the device's id in the registry, never its push token.
	DeviceID string
	// Status is the relay's HTTP status, or 0 when there was no answer.
	Status int
	// Err is nil when the relay accepted the alert (2xx): it has taken
	// responsibility for forwarding, which is not yet a page on a phone. Any
	// other answer is a *StatusError.
	Err error
}

// A StatusError is an answer of a relay that is not 2xx. It answers to
// [ErrRateLimited] and [ErrDeviceGone] where they apply. It is a plain value.
type StatusError struct {
	// StatusCode is the HTTP status.
	StatusCode int
	// Body is the start of the answer as one line of printable text, at most 512
	// bytes, without secrets.
	Body string
	// RetryAfter is the relay's Retry-After, 0 to 24 hours. Nothing waits for
	// it: an alert is never sent twice.
	RetryAfter time.Duration
}

// Error names the status and quotes the body.
func (e *StatusError) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("relayclient: relay answered %d %s", e.StatusCode, http.StatusText(e.StatusCode)))
	if e.StatusCode/100 == 3 {
		text += " (redirects are not followed: configure the URL it leads to)"
	}
	if e.Body != "" {
		text += ": " + e.Body
	}
	return text
}

// Is makes errors.Is work with ErrRateLimited and ErrDeviceGone.
func (e *StatusError) Is(target error) bool {
	switch target {
	case ErrRateLimited:
		return e.StatusCode == http.StatusTooManyRequests
	case ErrDeviceGone:
		return e.StatusCode == http.StatusGone
	}
	return false
}
