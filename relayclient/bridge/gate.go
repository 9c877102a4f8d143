package bridge

import (
	"time"

	"github.com/sealpush/sealpush/internal/clock"
)

const (
	backoffMin = time.Second // doubling up to backoffMax
	backoffMax = 30 * time.Second
)

// gate is the state of the debounce: closed while a notification is on its way, and until opens. The zero gate is
// open. A gate is immutable; whoever swaps an open one for its busy one sends, and nobody else.
type gate struct {
	opens    clock.Deadline
	sending  bool
	failures int // since the last success
}

func (g *gate) closed() bool { return g.sending || !g.opens.Reached() }

// remaining is how long a closed gate stays so, in whole seconds, by the wall clock; 0 while a notification is on its
// way, which nobody knows.
func (g *gate) remaining() time.Duration {
	return max(0, time.Until(g.opens.Wall())).Round(time.Second)
}

func (g *gate) busy() *gate { return &gate{sending: true, failures: g.failures} }

// failed is the gate after one more failure: it backs off.
func (g *gate) failed(now time.Time) *gate {
	wait := min(backoffMin<<min(g.failures, 10), backoffMax)
	return &gate{opens: clock.NewDeadline(now, wait), failures: g.failures + 1}
}

// opensAfter is the gate after a success.
func opensAfter(now time.Time, d time.Duration) *gate {
	return &gate{opens: clock.NewDeadline(now, d)}
}
