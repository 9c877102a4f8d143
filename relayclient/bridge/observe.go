package bridge

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/sealpush/sealpush/internal/input"
)

// An Observation is one call to the relay, for metrics and traces, or a notification that was debounced. It holds no
// secret, no name, and no text that anybody else wrote.
type Observation struct {
	// Operation is "push", "register" or "unregister".
	Operation string
	// Result is one of a fixed set of words, fit for a metric's label:
	//
	//	ok             the relay did what it was asked to
	//	debounced      another notification was sent, or failed, a moment ago
	//	not_delivered  the relay answered, and no device was reached
	//	unauthorized   401
	//	refused        any other answer below 500, or one that says that it failed
	//	relay_failed   an answer from 500 up
	//	token_failed   the token service gave no token
	//	timeout        no answer in time
	//	no_answer      the connection broke, or the caller's context ended
	Result string
	// Status is the relay's HTTP status, or 0 when there was no answer.
	Status int
	// Relay is the relay's scheme, host and port.
	Relay string
	// Start is when the call began, and Duration how long it took, with the token, repetitions and the wait for another
	// registration.
	Start    time.Time
	Duration time.Duration
	// Bytes is the size of the call's body, or 0 when there was no token to send it with.
	Bytes int
	// Devices is for how many devices a push has a result, and Lost how many of those were not reached.
	Devices, Lost int
}

// WithObserver calls observe with each [Observation], when the call has ended. The context is the caller's. Calls may
// come from several goroutines at once, and the bridge waits for them, so observe has to be quick: a notification may
// be debounced ten thousand times a second. A panic of it is dropped.
func WithObserver(observe func(ctx context.Context, o Observation)) Option {
	return func(c *clientConfig) error {
		if observe == nil {
			return errors.New("bridge: WithObserver: the function is nil")
		}
		c.observer = observe
		return nil
	}
}

// tell hands the observer what it is there for.
func (c *Client) tell(ctx context.Context, o Observation) {
	o.Relay = c.origin
	defer func() { recover() }()
	c.observer(ctx, o)
}

// observeCall tells of a call that has ended.
func (c *Client) observeCall(ctx context.Context, r call, start time.Time, said reply, err error) {
	o := Observation{Operation: r.operation(), Result: resultOf(err), Status: said.status, Start: start, Duration: time.Since(start)}
	if failed, ok := errors.AsType[*RelayError](err); ok {
		o.Status = failed.StatusCode
	}
	if body, err := encode(r.body); err == nil && o.Result != "token_failed" {
		o.Bytes = len(body)
	}
	for _, device := range said.Results {
		o.Devices++
		if device.Status == DeviceFailed || device.Status == DeviceRemoved {
			o.Lost++
		}
	}
	if err == nil && o.Devices > 0 && o.Lost == o.Devices {
		o.Result = "not_delivered"
	}
	c.tell(ctx, o)
}

// operation is what an [Observation] calls the call.
func (r call) operation() string {
	switch {
	case r.path == "/push":
		return "push"
	case r.method == http.MethodDelete:
		return "unregister"
	}
	return "register"
}

func resultOf(err error) string {
	if err == nil {
		return "ok"
	}
	failed, answered := errors.AsType[*RelayError](err)
	switch {
	case isTokenError(err):
		return "token_failed"
	case errors.Is(err, ErrUnauthorized):
		return "unauthorized"
	case answered && failed.StatusCode >= 500:
		return "relay_failed"
	case answered && failed.StatusCode != 0:
		return "refused"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	}
	return "no_answer"
}

// originOf is the scheme, host and port of a URL, which may hold credentials.
func originOf(base string) string {
	u, err := input.BaseURL(base)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Scheme) + "://" + u.Host
}
