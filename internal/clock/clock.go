// Package clock keeps deadlines on machines that sleep and whose clock is set.
package clock

import "time"

// Deadline is an instant that neither a suspended machine nor a moved clock can put off.
//
// Go compares times by the monotonic clock, which on Linux stands still while the machine is suspended: on a laptop
// that slept for eight hours a token would look as fresh as before. The wall clock counts those hours, but somebody may
// set it back. A Deadline is reached as soon as one of the two clocks has reached it.
//
// The zero Deadline has always been reached. A Deadline does not change, so it is safe for concurrent use, and may be
// copied.
type Deadline struct {
	at   time.Time // with its monotonic reading
	wall int64     // the same instant on the wall clock, Unix nanoseconds
}

// NewDeadline returns the deadline at d after now, which must come from [time.Now].
func NewDeadline(now time.Time, d time.Duration) Deadline {
	at := now.Add(d)
	return Deadline{at: at, wall: at.UnixNano()}
}

// Reached says whether it is the deadline's time, or later. It reads the clock once and does not allocate.
func (d Deadline) Reached() bool {
	now := time.Now()
	return !now.Before(d.at) || now.UnixNano() >= d.wall
}

// Remaining returns how long it is until the deadline, by the clock that says less; 0 when it has been reached.
func (d Deadline) Remaining() time.Duration {
	now := time.Now()
	return max(0, min(d.at.Sub(now), time.Duration(d.wall-now.UnixNano())))
}

// Slept returns the deadline as it is once the machine has been suspended, a time that only the wall clock saw. It is
// for tests, which cannot suspend a machine.
func (d Deadline) Slept(by time.Duration) Deadline {
	d.wall -= int64(by)
	return d
}

// Wall returns the deadline as a wall-clock time.
func (d Deadline) Wall() time.Time { return d.at.Round(0) }
