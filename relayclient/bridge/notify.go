package bridge

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"
)

// MaxNotificationSize is how much of title, body and data a relay can pass on, in bytes of their JSON: the 4096 of APNs
// and FCM less 512 for what a relay adds.
const MaxNotificationSize = 3584

// maxDeviceLines bounds what one answer of a relay puts into the log. More devices are summed up in one line.
const maxDeviceLines = 10

// Notification is what the phones show. The relay, Apple and Google read it: do not put there what the agent said.
type Notification struct {
	Title string            `json:"title"`
	Body  string            `json:"body"`
	Data  map[string]string `json:"data,omitempty"` // for the app; may be nil. The deployed relay drops it
}

// Status is what became of a notification.
type Status string

const (
	StatusSent      Status = "sent"      // the relay accepted it; it may have no device registered, or not say (Result.Devices is empty)
	StatusDebounced Status = "debounced" // dropped: another was sent, or failed, a moment ago, or is on its way
	StatusDisabled  Status = "disabled"  // push is not configured
	StatusFailed    Status = "failed"    // Result.Err says why
)

// What the relay says of one device. After any other word of a relay, the device counts as reached.
const (
	DeviceSent    = "sent"
	DeviceFailed  = "failed"
	DeviceRemoved = "removed" // APNs or FCM does not know its token any more; the relay forgot the device
)

// DeviceResult is what became of a notification for one device. The relay does not say which device it is.
type DeviceResult struct {
	Platform string `json:"platform"` // "ios" or "android"
	Status   string `json:"status"`   // [DeviceSent], [DeviceFailed], [DeviceRemoved], or the relay's own word
	Reason   string `json:"reason"`   // why it was not sent, printable and at most 512 bytes; may be empty
}

// Result is what became of a notification. It has been logged, so that a caller may ignore it.
type Result struct {
	Status  Status
	Devices []DeviceResult // in the relay's order; nil when the relay did not say, or was not reached
	Err     error          // nil unless Status is StatusFailed
}

// Notify wakes the phones. It never disturbs the bridge: it returns a [Result] instead of an error, takes at most 20 s,
// and logs what a person may want to know: token service trouble at Error, relay trouble and each device not reached at
// Warn, what was sent at Info, what was dropped at Debug.
//
// One notification is sent per cooldown (30 s), counted from its start; the others are dropped, at the cost of reading
// the clock and without an allocation, so that Notify can be called for every line an agent prints. Of simultaneous
// calls one sends. A push is never repeated by itself, save once with another token after a 401.
//
// Any 2xx is a success and uses up the cooldown, whether the answer can be read or not, unless it says that it failed
// ("ok" is false) or that every device failed or was removed. An answer that no device is registered is a success, too.
//
// After a failure the next try waits 1 s, after the next one 2 s, doubling up to 30 s until one succeeds. A failure
// after which a phone may have been woken all the same uses up the cooldown as well: the relay answered 5xx, or the
// request went out and its answer was lost.
//
// Result.Err is a [FieldError] for an empty title or body and for more than [MaxNotificationSize] bytes, matches
// [ErrNotDelivered] when every device failed or was removed, is ctx.Err() when ctx had ended before anything was sent,
// and is a [RelayError] for everything else; a [pushauth.TokenError] may be within. A nil ctx is context.Background().
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
	err := n.check()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil { // the relay was not called, so the next call need not wait
		return c.failed(ctx, nil, err)
	}
	start, busy := time.Now(), open.busy()
	if !c.gate.CompareAndSwap(open, busy) {
		return c.debounced(ctx, c.gate.Load())
	}
	sent, mayHaveWoken := false, true
	defer func() { // also when the caller's transport panics
		if sent {
			c.gate.Store(open.sent(start, c.cooldown))
		} else {
			c.gate.Store(open.failed(start, c.cooldown, mayHaveWoken))
		}
		close(busy.sending)
	}()
	said, acted, err := c.do(ctx, call{method: http.MethodPost, path: "/push", body: n})
	if err == nil {
		acted, err = c.judge(ctx, said.Results)
	}
	mayHaveWoken = acted
	if err != nil {
		return c.failed(ctx, said.Results, err)
	}
	sent = true
	c.log().InfoContext(ctx, "push notification sent", "devices", len(said.Results))
	return Result{Status: StatusSent, Devices: said.Results}
}

// check refuses what the relay could not pass on.
func (n Notification) check() error {
	switch {
	case n.Title == "":
		return &FieldError{Field: "title", Reason: "is missing"}
	case n.Body == "":
		return &FieldError{Field: "body", Reason: "is missing"}
	}
	if encoded, err := encode(n); err != nil || len(encoded) > MaxNotificationSize {
		return &FieldError{Field: "notification", Reason: fmt.Sprintf("takes %d bytes as JSON, and a relay can pass on %d", len(encoded), MaxNotificationSize)}
	}
	return nil
}

// judge logs which devices were not reached. It returns an error if none was; mayHaveWoken is then false.
func (c *Client) judge(ctx context.Context, devices []DeviceResult) (mayHaveWoken bool, err error) {
	reached, lost := 0, 0
	for _, device := range devices {
		switch device.Status {
		case DeviceFailed, DeviceRemoved:
			lost++
		default:
			reached++
			continue
		}
		switch {
		case lost > maxDeviceLines:
		case device.Status == DeviceRemoved:
			c.log().WarnContext(ctx, "push relay removed a device", "platform", device.Platform, "reason", device.Reason)
		default:
			c.log().WarnContext(ctx, "device not reached", "platform", device.Platform, "status", device.Status, "reason", device.Reason)
		}
	}
	if lost > maxDeviceLines {
		c.log().WarnContext(ctx, "more devices not reached", "devices", lost-maxDeviceLines)
	}
	if reached == 0 && lost > 0 {
		return false, fmt.Errorf("%w (of %d)", ErrNotDelivered, lost)
	}
	return true, nil
}

// debounced may be called ten thousand times a second, so it builds the log line only if that is written.
func (c *Client) debounced(ctx context.Context, closed *gate) Result {
	if log := c.log(); log.Enabled(ctx, slog.LevelDebug) {
		log.DebugContext(ctx, "push notification debounced", "remaining", closed.remaining())
	}
	if c.observer != nil {
		c.tell(ctx, Observation{Operation: "push", Result: "debounced", Start: time.Now()})
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
