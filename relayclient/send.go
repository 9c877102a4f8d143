package relayclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sealpush/sealpush/internal/answer"
	"github.com/sealpush/sealpush/relayclient/pairing"
)

// Send seals the push to each device and posts it to the relay, at most
// [MaxInFlight] POSTs at once. It returns when each device has its [Outcome],
// which stand in the devices' order. It never panics and never returns early.
//
// The context bounds the whole: POSTs in flight when it ends are abandoned, and
// devices whose turn had not come are [ErrNotAttempted]. An alert that cannot be
// sent to anybody (it is not valid, too large, or has no salt) gives every
// device the same error. What had to be cut to make it fit is logged at Debug;
// payload.Fit tells a caller.
func (c *Client) Send(ctx context.Context, push Push, devices []pairing.Device) []Outcome {
	return c.send(ctx, push, devices, maxPatience)
}

// send is Send with at most so much patience.
func (c *Client) send(ctx context.Context, push Push, devices []pairing.Device, patience time.Duration) []Outcome {
	outcomes := make([]Outcome, len(devices))
	for i, device := range devices {
		outcomes[i] = Outcome{DeviceID: device.ID, Err: errUnfinished}
	}
	if c == nil || c.relay == nil {
		return failAll(outcomes, errors.New("relayclient: this Client was not made by New"))
	}
	if ctx == nil {
		ctx = context.Background()
	}
	message, err := newMessage(push)
	var sending *sending
	switch {
	case c.closed.Load():
		err = ErrClosed
	case err == nil && c.pool != nil:
		if sending, err = c.pool.begin(c.maxInFlight, min(c.patience, patience)); err == nil {
			defer sending.end()
		}
	}
	if err != nil {
		c.log(ctx, slog.LevelError, "alert not sent to any device", slog.Int("devices", len(devices)), slog.Any("error", err))
		return failAll(outcomes, err)
	}
	if cut := message.trimmed; !cut.IsZero() {
		c.log(ctx, slog.LevelDebug, "alert shortened to fit", slog.Int("log_lines_dropped", cut.LogLines),
			slog.Any("shortened", cut.Shortened), slog.Any("dropped", cut.Dropped))
	}
	c.fanOut(ctx, sending, message, devices, outcomes)
	return outcomes
}

// errUnfinished stands until a worker says otherwise, so that a transport that
// ends its goroutine (runtime.Goexit, as testing.T.Fatal does) looks like no success.
var errUnfinished = errors.New("relayclient: unknown: the transport ended the goroutine that was posting")

func failAll(outcomes []Outcome, err error) []Outcome {
	for i := range outcomes {
		outcomes[i].Err = err
	}
	return outcomes
}

// fanOut fills outcomes. Each worker takes the next device that nobody has
// taken, seals to it and posts; so a slow relay holds up at most its own share.
func (c *Client) fanOut(ctx context.Context, sending *sending, message message, devices []pairing.Device, outcomes []Outcome) {
	var taken atomic.Int64
	var workers sync.WaitGroup
	for range min(c.maxInFlight, len(devices)) {
		workers.Go(func() {
			for i := taken.Add(1) - 1; i < int64(len(devices)); i = taken.Add(1) - 1 {
				outcomes[i].Status, outcomes[i].Err = c.deliver(ctx, sending, message, devices[i])
				c.logFailure(ctx, outcomes[i])
			}
		})
	}
	workers.Wait()
}

// deliver turns even a panic, which can only come from a caller's transport,
// into an error of this device.
func (c *Client) deliver(ctx context.Context, sending *sending, message message, device pairing.Device) (status int, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			status, err = 0, fmt.Errorf("relayclient: panic while posting: %s", c.scrub(fmt.Sprint(cause), device))
		}
	}()
	if ctx.Err() != nil {
		return 0, fmt.Errorf("%w: %w", ErrNotAttempted, context.Cause(ctx))
	}
	body, err := message.envelopeFor(device)
	if err != nil {
		return 0, err
	}
	return c.post(ctx, sending, body, device)
}

// post sends the envelope, on another connection as long as nothing of it was sent on the last.
func (c *Client) post(ctx context.Context, sending *sending, body []byte, device pairing.Device) (int, error) {
	if sending == nil {
		return c.exchange(ctx, c.http.Do, body, device)
	}
	var cause error
	for tries := 1; ; tries++ {
		conn, err := sending.connect(ctx, tries, cause)
		if err != nil {
			return 0, c.transportError(ctx, err, device)
		}
		roundTrip := func(req *http.Request) (*http.Response, error) { return sending.roundTrip(conn, req) }
		status, err := c.exchange(ctx, roundTrip, body, device)
		unsent, ok := errors.AsType[*unsentError](err)
		if !ok {
			return status, err
		}
		cause = unsent.err
	}
}

// exchange makes one attempt.
func (c *Client) exchange(ctx context.Context, do func(*http.Request) (*http.Response, error), body []byte, device pairing.Device) (int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, c.tooLate)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.relay.url, bytes.NewReader(body))
	if err != nil {
		return 0, errRelayURL
	}
	c.relay.setHeaders(req.Header)
	resp, err := do(req)
	if err != nil {
		return 0, c.transportError(ctx, err, device)
	}
	defer answer.Drain(resp.Body)
	if resp.StatusCode/100 == 2 {
		return resp.StatusCode, nil
	}
	return resp.StatusCode, &StatusError{
		StatusCode: resp.StatusCode,
		Body:       answer.Text(resp.Body, c.secretsOf(device)...),
		RetryAfter: answer.RetryAfter(resp.Header, time.Now()),
	}
}
