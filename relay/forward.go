package relay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// forwardTimeout bounds one forward. The daemon's own patience does not: a page
// that the relay has begun to forward is finished, even if the daemon has hung
// up, because the daemon will not post it again.
const forwardTimeout = 30 * time.Second

// A Forwarder is the push service behind a relay. Its methods are called by many
// goroutines at once.
type Forwarder interface {
	// Device returns what a device token is known by, or an error that says what
	// is wrong with the token and does not quote it: the relay answers 400, with
	// "device " and the error's text. Two tokens that reach one phone have one
	// name: where a token is in hex, that is its lower case.
	Device(token string) (name string, err error)

	// Forward hands an alert to the push service and returns nil once that has
	// taken it. An error is answered with 502, or as a [*ForwardError] in its
	// chain says. The context ends with the relay's Close, and after 30 seconds.
	Forward(ctx context.Context, e Envelope) error
}

// A ForwardError says why a push service did not take a message. It holds no
// device token.
type ForwardError struct {
	// Status is what the relay answers: 410 for a device token that is dead, 429
	// for one that is sent too much, 502 for any other trouble. What is no error
	// status, zero included, means 502.
	Status int
	// Reason is the push service's own word, such as "Unregistered"; the relay
	// passes it on.
	Reason string
	// RetryAfter goes with a 429, in whole seconds; zero leaves it out.
	RetryAfter time.Duration
	// Err is the cause, if there is more to tell. It is logged and goes no
	// further.
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

// accept holds an envelope against the policy and forwards it if it passes.
func (r *Relay) accept(e Envelope, device string) *reply {
	if r.gate == nil {
		return r.forward(e)
	}
	now := time.Now()
	outcome, wait := r.gate.admit(now, device, e.CollapseID)
	r.sweeper.arm()
	switch outcome {
	case coalesced, suppressed:
		return took(outcome)
	case limited:
		refusal := refuse(http.StatusTooManyRequests, "device is paged too often")
		refusal.retryAfter = max(wait, time.Second)
		return refusal
	case overloaded:
		return refuse(http.StatusServiceUnavailable, "the relay serves as many devices as it can")
	}
	succeeded := false
	defer func() { r.gate.settle(time.Now(), now, device, e.CollapseID, succeeded) }()
	answer := r.forward(e)
	succeeded = answer.status == http.StatusAccepted
	return answer
}

func (r *Relay) forward(e Envelope) *reply {
	ctx, cancel := context.WithTimeout(r.life, forwardTimeout)
	defer cancel()
	err := r.config.forwarder.Forward(ctx, e)
	if err == nil {
		return took(forwarded)
	}
	r.config.log().Warn("relay: page not forwarded", "collapse_id", e.CollapseID, "error", err)

	failure, ok := errors.AsType[*ForwardError](err)
	if !ok {
		failure = &ForwardError{}
	}
	refusal := refuse(failure.status(), "the push service did not take the message")
	refusal.Reason = failure.Reason
	refusal.retryAfter = failure.RetryAfter
	return refusal
}
