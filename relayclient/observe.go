package relayclient

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/sealpush/sealpush/payload"
)

// An Observation is what became of an alert for one device, for metrics and traces. It holds no secret and no text that
// anybody else wrote, and no name unless [WithObservedNames] asks for them.
type Observation struct {
	// Result is one of a fixed set of words, fit for a metric's label. Of an alert that the relay accepted it is the
	// [RelayOutcome], or "accepted" when the relay did not say. Of any other:
	//
	//	rate_limited     429
	//	device_gone      410: the phone has to be paired again
	//	refused          any other answer below 500
	//	relay_failed     an answer from 500 up
	//	timeout          no answer in time
	//	no_answer        the connection broke, or the transport failed
	//	unreachable      no connection in time: the relay has seen nothing
	//	held_back        by the storm guard, for all devices: see ErrHeldBack
	//	not_attempted    the context had ended
	//	unusable_device  the phone's key or push token cannot be used
	//	invalid_alert    it cannot be sent to anybody
	//	closed           the client or the notifier is closed
	Result string
	// Status is the relay's HTTP status, or 0 when there was no answer.
	Status int
	// Relay is the relay's scheme, host and port.
	Relay string
	// Kind is the alert's; empty for one that was stored sealed, or has a kind that there is not.
	Kind payload.Kind
	// Start is when the device's turn came, and Duration the time from then until the relay's answer had been read,
	// with the wait for a connection. Sealing is not in it.
	Start    time.Time
	Duration time.Duration
	// Bytes is the size of the envelope that was posted, or 0 when not a byte of it was written. Of two, because the relay
	// takes no more than 3000 characters of ciphertext, it is the first.
	Bytes int

	// The names are empty without WithObservedNames. DeviceID is the id in the registry.
	Name, RunID, DeviceID string
}

// WithObserver calls observe with each alert's [Observation] for each device, right after its log line; for an alert
// that is held back, once. The context is the one that was given to Send, Notify or Post. Calls come from several
// goroutines at once, and the next envelope waits for them, so observe has to be quick. A panic of it is dropped.
func WithObserver(observe func(ctx context.Context, o Observation)) Option {
	return func(c *config) error {
		if observe == nil {
			return errors.New("relayclient: WithObserver: the function is nil")
		}
		c.observer = observe
		return nil
	}
}

// WithObservedNames gives the observer of [WithObserver] the alert's name and run id, and the device's id.
func WithObservedNames() Option {
	return func(c *config) error {
		c.observeNames = true
		return nil
	}
}

// observedNow is the time if there is an observer.
func (c *Client) observedNow() (now time.Time) {
	if c.observer != nil {
		now = time.Now()
	}
	return now
}

// observe tells the observer, if there is one, what became of an alert for a device, whose turn came at start.
func (c *Client) observe(ctx context.Context, alert payload.Alert, outcome Outcome, start time.Time, envelope int) {
	if c.observer == nil {
		return
	}
	o := Observation{
		Result: resultOf(outcome),
		Status: outcome.Status,
		Relay:  c.relay.display,
		Start:  start,
	}
	switch alert.Kind {
	case payload.KindSuccess, payload.KindFailure, payload.KindSLA, payload.KindEvent, payload.KindTest:
		o.Kind = alert.Kind
	}
	if !start.IsZero() {
		o.Duration = time.Since(start)
	} else {
		o.Start = time.Now()
	}
	switch o.Result {
	case "unreachable", "held_back", "not_attempted", "unusable_device", "invalid_alert", "closed":
	default:
		o.Bytes = envelope
	}
	if c.observeNames {
		o.Name, o.RunID, o.DeviceID = alert.Name, cmp.Or(alert.RunID, alert.RunKey), outcome.DeviceID
	}
	defer func() { recover() }()
	c.observer(ctx, o)
}

func resultOf(outcome Outcome) string {
	err := outcome.Err
	if err == nil {
		return cmp.Or(string(outcome.Relay), "accepted")
	}
	lost, noAnswer := errors.AsType[*TransportError](err)
	switch {
	case outcome.Status >= 500:
		return "relay_failed"
	case errors.Is(err, ErrRateLimited):
		return "rate_limited"
	case errors.Is(err, ErrDeviceGone):
		return "device_gone"
	case outcome.Status != 0:
		return "refused"
	case noAnswer && lost.Unsent:
		return "unreachable"
	case noAnswer && errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, ErrHeldBack):
		return "held_back"
	case errors.Is(err, ErrNotAttempted):
		return "not_attempted"
	case errors.Is(err, ErrUnusableDevice):
		return "unusable_device"
	case errors.Is(err, ErrInvalidAlert):
		return "invalid_alert"
	case errors.Is(err, ErrClosed):
		return "closed"
	}
	return "no_answer"
}
