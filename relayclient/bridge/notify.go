package bridge

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

// Notification is what the phones show. The relay, Apple and Google read it: do not put there what the agent said. It is
// plain data: safe for concurrent reads.
type Notification struct {
	Title string            `json:"title"`
	Body  string            `json:"body"`
	Data  map[string]string `json:"data,omitempty"` // for the app; may be nil
}

// Status is what became of a notification. It is a plain value.
type Status string

const (
	StatusSent      Status = "sent"      // the relay reached a device, or has none registered (Result.Devices is empty)
	StatusDebounced Status = "debounced" // dropped: another was sent, or failed, a moment ago, or is on its way
	StatusDisabled  Status = "disabled"  // push is not configured
	StatusFailed    Status = "failed"    // Result.Err says why
)

// What the relay says of one device.
const (
	DeviceSent    = "sent"
	DeviceFailed  = "failed"
	DeviceRemoved = "removed" // APNs or FCM does not know its token any more; the relay forgot the device
)

// DeviceResult is what became of a notification for one device. The relay does not say which device it is. It is plain
// data: safe for concurrent reads.
type DeviceResult struct {
	Platform string `json:"platform"` // "ios" or "android"
	Status   string `json:"status"`   // [DeviceSent], [DeviceFailed] or [DeviceRemoved]
	Reason   string `json:"reason"`   // why it was not sent, printable and at most 512 bytes; may be empty
}

// Result is what became of a notification. There is nothing to handle: it has been logged. It is plain data: safe for
// concurrent reads.
type Result struct {
	Status  Status
	Devices []DeviceResult // in the relay's order; nil unless the relay was reached
	Err     error          // nil unless Status is StatusFailed
}

// Notify wakes the phones. It never disturbs the bridge: it returns a [Result] instead of an error, takes at most 20 s,
// and logs what a person may want to know: token service trouble at Error, relay trouble and each device not reached
// at Warn, what was sent at Info, what was dropped at Debug.
//
// One notification is sent per cooldown (30 s), counted from its start; the others are dropped, at the cost of reading
// the clock and without an allocation, so that Notify can be called for every line an agent prints. Of simultaneous
// calls one sends. That no device is registered is a success, and uses up the cooldown. A failure does not: after it
// the next try waits 1 s, after the next one 2 s, doubling up to 30 s until one succeeds. A push is never repeated
// by itself, save once with a new token after a 401.
//
// Result.Err is a [FieldError] for an empty title or body, matches [ErrNotDelivered] when every device failed or was
// removed, is ctx.Err() when ctx had ended before anything was sent, and is a [RelayError] for everything else; a
// [pushauth.TokenError] may be within.
func (c *Client) Notify(ctx context.Context, n Notification) Result {
	if !c.Enabled() {
		return Result{Status: StatusDisabled}
	}
	if ctx == nil {
		ctx = context.Background()
	}
	g := c.gate.Load()
	if g.closed() {
		return c.debounced(ctx, g)
	}
	return c.notify(ctx, n, g)
}

// notify sends if it is the first to close the open gate.
func (c *Client) notify(ctx context.Context, n Notification, open *gate) Result {
	start := time.Now()
	if err := n.check(ctx); err != nil {
		return c.failed(ctx, nil, err)
	}
	if !c.gate.CompareAndSwap(open, open.busy()) {
		return c.debounced(ctx, c.gate.Load())
	}
	sent := false
	defer func() { // also when the caller's transport panics
		if sent {
			c.gate.Store(opensAfter(start, c.cooldown))
		} else {
			c.gate.Store(open.failed(time.Now()))
		}
	}()
	devices, err := c.push(ctx, n)
	if err != nil {
		return c.failed(ctx, devices, err)
	}
	sent = true
	c.log().InfoContext(ctx, "push notification sent", "devices", len(devices))
	return Result{Status: StatusSent, Devices: devices}
}

// check finds what would fail without the relay's doing, which is no reason to make the next call wait.
func (n Notification) check(ctx context.Context) error {
	switch {
	case n.Title == "":
		return &FieldError{"title", "is missing"}
	case n.Body == "":
		return &FieldError{"body", "is missing"}
	}
	return ctx.Err()
}

func (c *Client) push(ctx context.Context, n Notification) ([]DeviceResult, error) {
	said, err := c.do(ctx, call{method: http.MethodPost, path: "/push", body: n})
	if err != nil {
		return nil, err
	}
	reached := 0
	for _, device := range said.Results {
		switch device.Status {
		case DeviceSent:
			reached++
		case DeviceRemoved:
			c.log().WarnContext(ctx, "push relay removed a device", "platform", device.Platform, "reason", device.Reason)
		default:
			c.log().WarnContext(ctx, "device not reached", "platform", device.Platform, "status", device.Status, "reason", device.Reason)
		}
	}
	if reached == 0 && len(said.Results) > 0 {
		return said.Results, fmt.Errorf("%w (of %d)", ErrNotDelivered, len(said.Results))
	}
	return said.Results, nil
}

// debounced is called ten thousand times a second: what nobody reads is not put together.
func (c *Client) debounced(ctx context.Context, closed *gate) Result {
	if log := c.log(); log.Enabled(ctx, slog.LevelDebug) {
		log.DebugContext(ctx, "push notification debounced", "remaining", closed.remaining())
	}
	return Result{Status: StatusDebounced}
}

func (c *Client) failed(ctx context.Context, devices []DeviceResult, err error) Result {
	level := slog.LevelWarn
	if isTokenError(err) {
		level = slog.LevelError
	}
	c.log().Log(ctx, level, "push notification not sent", "error", err)
	return Result{Status: StatusFailed, Devices: devices, Err: err}
}
