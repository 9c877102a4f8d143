package relaytest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

// forwardTimeout bounds one forward. The daemon's own patience does not: a page
// that the relay has begun to forward is finished, even if the daemon has hung
// up, because the daemon will not post it again.
const forwardTimeout = 30 * time.Second

// A Forwarder is the push service behind a relay. By default it is the relay's
// own inbox in memory; package apns, below this one, has Apple's.
//
// Forward returns nil once the push service has taken the message. An error is
// answered with 502, or as a [*ForwardError] in its chain says. It is called by
// many goroutines at once. The context ends with the relay's Close, and after
// 30 seconds.
type Forwarder interface {
	Forward(ctx context.Context, m Message) error
}

// A ForwardError says why a push service did not take a message. It is a plain
// value and holds no device token.
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
	text := fmt.Sprintf("relaytest: not forwarded (%d)", e.status())
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

// WithForwarder delivers to a push service of your own instead of the inbox in
// memory, which then stays empty.
func WithForwarder(f Forwarder) RelayOption {
	if f == nil {
		panic("relaytest: WithForwarder: nil")
	}
	return relayOption(func(c *relayConfig) { c.forwarder = f })
}

// WithLogger logs forwards that fail, at Warn, instead of to [slog.Default]:
// the collapse id and the error, never the device token.
func WithLogger(logger *slog.Logger) RelayOption {
	return relayOption(func(c *relayConfig) { c.logger = logger })
}

// accept holds an envelope against the policy and forwards it if it passes.
func (r *Relay) accept(e Envelope) *reply {
	if r.gate == nil {
		return r.forward(e)
	}
	now := time.Now()
	device := deviceKey(e.Device)
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
	err := r.config.forwarder.Forward(ctx, newMessage(e, time.Now()))
	if err == nil {
		return took(forwarded)
	}
	logger := r.config.logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.Warn("relay: page not forwarded", "collapse_id", e.CollapseID, "error", err)

	failure, ok := errors.AsType[*ForwardError](err)
	if !ok {
		failure = &ForwardError{}
	}
	refusal := refuse(failure.status(), "the push service did not take the message")
	refusal.Reason = failure.Reason
	refusal.retryAfter = failure.RetryAfter
	return refusal
}
