// Package clock keeps deadlines on machines that sleep and whose clock is set.
package clock

import (
	"math"
	"sync/atomic"
	"time"
)

// Deadline is an instant that neither a suspended machine nor a moved clock can put off.
//
// Go compares times by the monotonic clock, which on Linux stands still while the machine is suspended: after a night
// in the bag an hour-old token would look a minute old. The wall clock sees the night, but somebody may set it back.
// A Deadline is reached as soon as either of the two says so.
//
// The zero Deadline has always been reached. A Deadline is safe for concurrent use and may be copied.
type Deadline struct {
	at     time.Time     // with its monotonic reading
	wall   int64         // the same instant on the wall clock, Unix nanoseconds
	looked *atomic.Int64 // how long was left, by the monotonic clock, at the last look at the wall clock
}

// wallInterval is how often the wall clock is looked at. Reading a clock is most of what Reached costs, and a machine
// that wakes up can do without for so long.
const wallInterval = time.Millisecond

// NewDeadline returns the deadline at d after now, which must come from [time.Now].
func NewDeadline(now time.Time, d time.Duration) Deadline {
	at := now.Add(d)
	looked := new(atomic.Int64)
	looked.Store(math.MaxInt64)
	return Deadline{at: at, wall: at.UnixNano(), looked: looked}
}

// Reached says whether it is the deadline's time, or later. It is exact to the nanosecond by the monotonic clock; what
// only the wall clock knows it sees within a millisecond. It does not allocate.
func (d Deadline) Reached() bool {
	left := int64(time.Until(d.at))
	if left <= 0 {
		return true
	}
	if d.looked.Load()-left < int64(wallInterval) {
		return false
	}
	if time.Now().UnixNano() >= d.wall {
		return true
	}
	d.looked.Store(left)
	return false
}

// Slept returns the deadline as it is once the machine has been suspended, a time that only the wall clock saw. It
// is for tests, which cannot suspend a machine.
func (d Deadline) Slept(by time.Duration) Deadline {
	d.wall -= int64(by)
	d.looked = new(atomic.Int64)
	d.looked.Store(math.MaxInt64)
	return d
}

// Wall returns the deadline as a wall-clock time.
func (d Deadline) Wall() time.Time { return d.at.Round(0) }
