package relayclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sealpush/sealpush/internal/answer"
	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
)

// Send seals the push to each device and posts it to the relay, at most [MaxInFlight] POSTs at once. It returns when
// each device has its [Outcome], which stand in the devices' order. It never panics and never returns early.
//
// The context bounds the whole: POSTs in flight when it ends are abandoned, and devices whose turn had not come are
// [ErrNotAttempted]. An alert that cannot be sent to anybody (it is not valid, too large, or has no salt) gives every
// device the same error. It is fitted once for each suite among the devices' keys. What had to be cut is logged at
// Debug; payload.Fit tells a caller.
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
		return c.failAll(ctx, push.Alert, outcomes, errNoClient)
	}
	if ctx == nil {
		ctx = context.Background()
	}
	limit := c.maxCiphertext
	if c.short.remembered() {
		limit = ciphertextFloor
	}
	message, err := newMessage(push, devices, limit)
	switch {
	case c.closed.Load():
		err = ErrClosed
	case err == nil && c.pool != nil:
		if message.sending, err = c.pool.begin(c.maxInFlight, min(c.patience, patience)); err == nil {
			defer message.sending.end()
		}
	}
	if err != nil {
		c.log(ctx, slog.LevelError, "alert not sent", push.Alert, slog.Int("devices", len(devices)), slog.Any("error", err))
		return c.failAll(ctx, push.Alert, outcomes, err)
	}
	for _, suite := range message.suites {
		if fitted, err := message.fits.to(suite, limit); err == nil {
			c.logTrimmed(ctx, push.Alert, suite, fitted.Trimmed)
		}
	}
	c.fanOut(ctx, message, devices, outcomes)
	return outcomes
}

var errNoClient = errors.New("relayclient: this Client was not made by New")

// errUnfinished stands until a worker says otherwise, so that a transport that ends its goroutine (runtime.Goexit, as
// testing.T.Fatal does) looks like no success.
var errUnfinished = errors.New("relayclient: unknown: the transport ended the goroutine that was posting")

// failAll gives every device the error. The client may be one that New has not made.
func (c *Client) failAll(ctx context.Context, alert payload.Alert, outcomes []Outcome, err error) []Outcome {
	for i := range outcomes {
		outcomes[i].Err = err
		if c != nil {
			c.observe(ctx, alert, outcomes[i], time.Time{}, 0)
		}
	}
	return outcomes
}

// fanOut fills outcomes. A few goroutines seal, one for each processor, and as many as may be in flight post what is
// sealed. That each of them did both would cost a tenth more: a hundred stacks with room for sealing do not stay in the
// processor's cache. A slow relay holds up at most its own share, since who is free takes the next envelope.
func (c *Client) fanOut(ctx context.Context, message message, devices []pairing.Device, outcomes []Outcome) {
	var taken atomic.Int64
	var sealers, posters sync.WaitGroup
	sealed := make(chan envelope)
	posted := make(chan struct{}) // closed when nobody posts any more
	for range min(runtime.GOMAXPROCS(0), c.maxInFlight, len(devices)) {
		sealers.Go(func() {
			for i := taken.Add(1) - 1; i < int64(len(devices)); i = taken.Add(1) - 1 {
				e, err := c.seal(ctx, message, devices[i])
				if err != nil {
					outcomes[i].Err = err
					c.logOutcome(ctx, message.alert, outcomes[i])
					c.observe(ctx, message.alert, outcomes[i], time.Time{}, 0)
					continue
				}
				e.outcome = &outcomes[i]
				select {
				case sealed <- e:
				case <-posted: // the transport has ended every goroutine that was posting
					return
				}
			}
		})
	}
	for range min(c.maxInFlight, len(devices)) {
		posters.Go(func() {
			for e := range sealed {
				start := c.observedNow()
				*e.outcome = c.deliver(ctx, message, e)
				c.logOutcome(ctx, message.alert, *e.outcome)
				c.observe(ctx, message.alert, *e.outcome, start, len(e.body))
			}
		})
	}
	go func() {
		posters.Wait()
		close(posted)
	}()
	sealers.Wait()
	close(sealed)
	<-posted
}

// An envelope is the body of a POST to one device.
type envelope struct {
	device  pairing.Device
	fitted  payload.Fitted // what is sealed in it
	body    []byte
	outcome *Outcome
	begin   func() error // called right before a byte of the POST may be written; may be nil
	final   bool         // it cannot be fitted anew
}

// seal makes the envelope for a device, unless the context has ended.
func (c *Client) seal(ctx context.Context, message message, device pairing.Device) (envelope, error) {
	if ctx.Err() != nil {
		return envelope{}, notYetAttempted(ctx)
	}
	suite := device.PublicKey.Suite()
	switch {
	case device.Unusable != nil:
		return envelope{}, fmt.Errorf("%w: %w", ErrUnusableDevice, device.Unusable)
	case suite == "":
		return envelope{}, fmt.Errorf("%w: %w: there is none; pair the phone again", ErrUnusableDevice, seal.ErrInvalidKey)
	}
	fitted, err := message.fits.to(suite, message.limit)
	if err != nil {
		return envelope{}, fmt.Errorf("%w: %w", ErrInvalidAlert, err)
	}
	body, err := message.envelopeFor(device, fitted.Plaintext)
	return envelope{device: device, fitted: fitted, body: body}, err
}

func notYetAttempted(ctx context.Context) error {
	return fmt.Errorf("%w: %w", ErrNotAttempted, context.Cause(ctx))
}

// deliver turns even a panic, which can only come from a caller's transport, into an error of this device.
func (c *Client) deliver(ctx context.Context, message message, e envelope) (outcome Outcome) {
	outcome.DeviceID = e.device.ID
	defer func() {
		if cause := recover(); cause != nil {
			outcome.Status, outcome.Err = 0, c.panicked(cause, e.device)
		}
	}()
	if ctx.Err() != nil {
		outcome.Err = notYetAttempted(ctx)
		return outcome
	}
	outcome.TrimmedToFloor = message.limit < c.maxCiphertext && !e.fitted.Trimmed.IsZero()
	outcome.Status, outcome.Relay, outcome.Err = c.post(ctx, message.sending, e)
	if e.final {
		return outcome
	}
	if refused, ok := errors.AsType[*StatusError](outcome.Err); ok && refused.namesCiphertext && exceedsFloor(e.device.PublicKey.Suite(), e.fitted.Plaintext) {
		c.postAtFloor(ctx, message, e.device, &outcome)
	}
	return outcome
}

// postAtFloor makes the one second POST that there is: after a 400 that names the ciphertext, with the alert fitted to
// what every relay takes. Its answer is final.
func (c *Client) postAtFloor(ctx context.Context, message message, device pairing.Device, outcome *Outcome) {
	if c.short.note() {
		c.log(ctx, slog.LevelWarn, "relay takes no more than 3000 characters of ciphertext, so alerts are cut to that", message.alert,
			slog.Int("max_ciphertext", message.limit))
	}
	fitted, err := message.fits.to(device.PublicKey.Suite(), ciphertextFloor)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		outcome.Err = fmt.Errorf("%w; not posted again with less: %w", outcome.Err, err)
		return
	}
	outcome.TrimmedToFloor = true
	body, err := message.envelopeFor(device, fitted.Plaintext)
	if err != nil {
		outcome.Err = err
		return
	}
	outcome.Status, outcome.Relay, outcome.Err = c.post(ctx, message.sending, envelope{device: device, body: body})
}

// post sends the envelope, on another connection as long as nothing of it was sent on the last. It returns the relay's
// status and what a relay that took the alert said of it.
func (c *Client) post(ctx context.Context, sending *sending, e envelope) (int, RelayOutcome, error) {
	if sending == nil {
		if err := e.begun(); err != nil {
			return 0, "", err
		}
		return c.exchange(ctx, c.http.Do, e.body, e.device)
	}
	var cause error
	for tries := 1; ; tries++ {
		conn, err := sending.connect(ctx, tries, cause)
		if err != nil {
			return 0, "", c.transportError(ctx, err, e.device, true)
		}
		if err := e.begun(); err != nil {
			sending.giveBack(conn)
			return 0, "", err
		}
		roundTrip := func(req *http.Request) (*http.Response, error) { return sending.roundTrip(conn, req) }
		status, said, err := c.exchange(ctx, roundTrip, e.body, e.device)
		unsent, ok := errors.AsType[*unsentError](err)
		if !ok {
			return status, said, err
		}
		cause = unsent.err
	}
}

// begun says that a byte of the POST may be written from now on.
func (e envelope) begun() error {
	if e.begin == nil {
		return nil
	}
	if err := e.begin(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotAttempted, err)
	}
	return nil
}

// exchange makes one attempt.
func (c *Client) exchange(ctx context.Context, do func(*http.Request) (*http.Response, error), body []byte, device pairing.Device) (int, RelayOutcome, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, c.tooLate)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.relay.url, bytes.NewReader(body))
	if err != nil {
		return 0, "", errRelayURL
	}
	c.relay.setHeaders(req.Header)
	resp, err := do(req)
	if err != nil {
		return 0, "", c.transportError(ctx, err, device, false)
	}
	defer answer.Drain(resp.Body)
	c.clock.check(ctx, c, resp.Header)
	if resp.StatusCode/100 == 2 {
		return resp.StatusCode, readRelayOutcome(resp), nil
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // what a failing body gave before it failed counts
	return resp.StatusCode, "", &StatusError{
		StatusCode:      resp.StatusCode,
		LeadsTo:         answer.LeadsTo(resp, c.secretsOf(device)...),
		Body:            answer.Line(string(text), c.secretsOf(device)...),
		RetryAfter:      answer.RetryAfter(resp.Header, time.Now()),
		namesCiphertext: resp.StatusCode == http.StatusBadRequest && namesCiphertext(text),
	}
}

// maxErrorBody is how much is read of an answer that is not 2xx, in bytes: 512 characters, however they are encoded.
const maxErrorBody = 2048
