// Package clock keeps deadlines on machines that sleep and whose clock is set.
package clock

import "time"

// Deadline is an instant that neither a suspended machine nor a moved clock can put off.
//
// Go compares times by the monotonic clock, which on Linux stands still while the machine is suspended: after a night
// in the bag an hour-old token would look a minute old. The wall clock sees the night, but somebody may set it back.
// A Deadline is reached as soon as either of the two says so.
//
// The zero Deadline has always been reached. A Deadline is immutable and safe for concurrent use.
type Deadline struct {
	at   time.Time // with its monotonic reading
	wall int64     // the same instant on the wall clock, Unix nanoseconds
}

// NewDeadline returns the deadline at d after now, which must come from [time.Now].
func NewDeadline(now time.Time, d time.Duration) Deadline {
	at := now.Add(d)
	return Deadline{at: at, wall: at.UnixNano()}
}

// Reached says whether now, which must come from [time.Now], is at the deadline or past it.
func (d Deadline) Reached(now time.Time) bool {
	return !now.Before(d.at) || now.UnixNano() >= d.wall
}

// Wall returns the deadline as a wall-clock time.
func (d Deadline) Wall() time.Time { return d.at.Round(0) }
