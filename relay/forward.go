package relay

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/sealpush/sealpush/secret"
)

// forwardTimeout bounds one forward.
const forwardTimeout = 30 * time.Second

// A Forwarder is the push service behind a relay. Its methods are called by many goroutines at once.
type Forwarder interface {
	// Device returns what a device token is known by, or an error that says what is wrong with the token and does not
	// quote it: the relay answers 400, with "device " and the error's text. Two tokens that reach one phone have one
	// name: where a token is in hex, that is its lower case.
	Device(token string) (name string, err error)

	// Forward hands an alert to the push service and returns nil once that has taken it. An error is answered with 502,
	// or as a [*ForwardError] in its chain says. The context ends with the relay's Close, and after 30 seconds.
	Forward(ctx context.Context, e Envelope) error
}

// A Digester is a [Forwarder] that can send the notification of a [Policy] with a quota: a fixed one, which says that
// there are alerts and has none in it.
type Digester interface {
	Forwarder
	// ForwardDigest is like Forward, for a digest to the device.
	ForwardDigest(ctx context.Context, device secret.Text) error
}

// A Finder is a [Forwarder] that knows which devices exist. A relay with a policy asks it first, so that posts for
// made-up devices cost the relay one look-up each, and leave nothing in its [State].
type Finder interface {
	Forwarder
	// Find returns nil for a device, by its name, that Forward may reach, or where that is not known, and an error as
	// Forward's for one that it does not reach. The context ends after 2 seconds.
	Find(ctx context.Context, name string) error
}

// A ForwardError says why a push service did not take a message. It holds no device token.
type ForwardError struct {
	// Status is what the relay answers: 410 for a device token that is dead, 429 for one that is sent too much, 502 for
	// any other trouble. What is no error status, zero included, means 502.
	Status int
	// Reason is the push service's own word, such as "Unregistered"; the relay passes it on.
	Reason string
	// RetryAfter goes with a 429, in whole seconds; zero leaves it out.
	RetryAfter time.Duration
	// Err is the cause, if there is more to tell. It is logged and goes no further.
	Err error
}

// Error says what the push service answered.
func (e *ForwardError) Error() string {
	text := fmt.Sprintf("relay: not forwarded (%d)", e.status())
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns Err.
func (e *ForwardError) Unwrap() error { return e.Err }

func (e *ForwardError) status() int {
	if e.Status < 400 || e.Status > 599 {
		return http.StatusBadGateway
	}
	return e.Status
}
