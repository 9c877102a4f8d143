package relayclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/sealpush/sealpush/internal/answer"
)

// Errors that an [Outcome]'s Err answers to with [errors.Is].
var (
	// ErrRateLimited is a relay's 429. StatusError.RetryAfter has its advice.
	ErrRateLimited = errors.New("relayclient: rate limited by the relay")
	// ErrDeviceGone is a relay's 410: the push service no longer knows the device token. The phone has to be paired
	// again, or its pairing revoked.
	ErrDeviceGone = errors.New("relayclient: device token is no longer valid")
	// ErrNotAttempted is a device whose POST was never sent, because the context ended before its turn came.
	ErrNotAttempted = errors.New("relayclient: not attempted")
	// ErrUnusableDevice is a device that cannot be sent to: its key or its push token is unusable, and the phone has to
	// be paired again, or this node does not seal to its suite.
	ErrUnusableDevice = errors.New("relayclient: unusable device")
	// ErrInvalidAlert is an alert that cannot be sent to anybody: a *payload.FieldError or a *payload.SizeError says
	// why, or a text what is wrong with the [Push].
	ErrInvalidAlert = errors.New("relayclient: alert cannot be sent")
)

// ErrNobodyPaired is the error of a [Notifier.Notify] with nobody to page: the registry was read, and no phone is
// paired.
var ErrNobodyPaired = errors.New("relayclient: no phone is paired")

// An Outcome says what became of an alert for one device.
type Outcome struct {
	// DeviceID is the device's id in the registry, never its push token.
	DeviceID string
	// Status is the relay's HTTP status, or 0 when there was no answer.
	Status int
	// Relay is what the relay said when it accepted the alert. It is empty for a relay that does not follow the
	// protocol. The phone rings only if it is Forwarded or empty. Nobody can check what the relay says.
	Relay RelayOutcome
	// TrimmedToFloor means that the relay refuses more than 3000 characters of ciphertext, and the alert was cut to fit
	// them: see WithMaxCiphertext.
	TrimmedToFloor bool
	// Err is nil when the relay accepted the alert (2xx): it has taken responsibility for forwarding, which is not yet
	// a page on a phone. Any other answer is a *StatusError.
	Err error
}

// A RelayOutcome is what a relay says of an alert that it accepted (live protocol, "Relay"). It is one of the four
// below, or empty.
type RelayOutcome string

// What becomes of an accepted alert.
const (
	Forwarded  RelayOutcome = "forwarded"  // given to the push service
	Coalesced  RelayOutcome = "coalesced"  // the phone got the same alert less than 75 s ago
	Suppressed RelayOutcome = "suppressed" // it comes too often: the phone is reminded of it every 30 minutes
	Digested   RelayOutcome = "digested"   // the device's quota is used up: the phone is told so once an hour, silently
)

// maxAnswer bounds how much of a relay's 2xx body is read, in bytes.
const maxAnswer = 4 << 10

// readRelayOutcome reads the body of a 2xx. What it cannot read says nothing.
func readRelayOutcome(resp *http.Response) RelayOutcome {
	var said struct {
		Outcome RelayOutcome `json:"outcome"`
	}
	if resp.ContentLength == 0 {
		return ""
	}
	if text, err := answer.Read(resp, maxAnswer); err != nil || json.Unmarshal(text, &said) != nil {
		return ""
	}
	switch said.Outcome {
	case Forwarded, Coalesced, Suppressed, Digested:
		return said.Outcome
	}
	return ""
}

// A StatusError is an answer of a relay that is not 2xx. It answers to [ErrRateLimited] and [ErrDeviceGone] where they
// apply.
type StatusError struct {
	// StatusCode is the HTTP status.
	StatusCode int
	// LeadsTo is the URL that a redirect leads to, without credentials, query and secrets; empty when it does not say
	// so, or leads nowhere.
	LeadsTo string
	// Body is the start of the answer as one line of printable text, at most 512 bytes, without secrets.
	Body string
	// RetryAfter is the relay's Retry-After, 0 to 24 hours. Nothing waits for it: an alert is never sent twice.
	RetryAfter time.Duration

	namesCiphertext bool // a 400 whose body has that word in it, as the relay sent it
}

// Error names the status and quotes the body.
func (e *StatusError) Error() string {
	text := strings.TrimSpace(fmt.Sprintf("relayclient: relay answered %d %s", e.StatusCode, http.StatusText(e.StatusCode)))
	switch {
	case e.StatusCode/100 == 3 && e.LeadsTo != "":
		text += " (redirects are not followed: configure the URL it leads to, " + e.LeadsTo + ")"
	case e.StatusCode/100 == 3:
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
