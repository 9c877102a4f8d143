package bridge

import (
	"context"
	"time"

	"github.com/sealpush/sealpush/internal/clock"
)

const (
	backoffMin = time.Second // doubling up to backoffMax
	backoffMax = 30 * time.Second
)

// gate is the state of the debounce: closed while a notification is on its way, and until opens. The zero gate is open.
// A gate is immutable. The goroutine that swaps an open gate for its busy one sends.
type gate struct {
	opens    clock.Deadline
	sending  chan struct{} // closed when the notification that is on its way has got its result; nil when none is
	failures int           // since the last success
}

func (g *gate) closed() bool { return g.sending != nil || !g.opens.Reached() }

// remaining is how long a closed gate stays closed, in whole seconds. It is 0 while a notification is on its way,
// because that time is not known.
func (g *gate) remaining() time.Duration { return g.opens.Remaining().Round(time.Second) }

func (g *gate) busy() *gate { return &gate{sending: make(chan struct{}), failures: g.failures} }

// sent is the gate after a notification that was accepted.
func (g *gate) sent(start time.Time, cooldown time.Duration) *gate {
	return &gate{opens: clock.NewDeadline(start, cooldown)}
}

// failed is the gate after one more failure: it backs off, and stays closed for the cooldown if a phone may have been
// woken all the same.
func (g *gate) failed(start time.Time, cooldown time.Duration, mayHaveWoken bool) *gate {
	now := time.Now()
	wait := min(backoffMin<<min(g.failures, 10), backoffMax)
	if mayHaveWoken {
		wait = max(wait, cooldown-now.Sub(start))
	}
	return &gate{opens: clock.NewDeadline(now, wait), failures: g.failures + 1}
}

// awaitOpen returns nil when the gate is open, or the error of ctx.
func (c *Client) awaitOpen(ctx context.Context) error {
	for ctx.Err() == nil {
		g := c.gate.Load()
		switch {
		case !g.closed():
			return nil
		case g.sending != nil:
			select {
			case <-g.sending:
			case <-ctx.Done():
			}
		default:
			timer := time.NewTimer(g.opens.Remaining())
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			timer.Stop()
		}
	}
	return ctx.Err()
}
