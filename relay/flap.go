package relay

import "time"

// A pageHistory is what a relay remembers of one collapse id on one device. It
// knows no clock and no lock.
type pageHistory struct {
	forwarding bool        // a forward is on its way, whose end is not known yet
	forwards   []time.Time // the latest that succeeded, oldest first, at most FlapLimit+1
	cooled     bool        // by too many forwards
	lastPost   time.Time
}

// post says what becomes of a post at now. When that is forwarded, the caller
// tells settle how the forward ended.
func (h *pageHistory) post(now time.Time, p Policy) outcome {
	if h.cooled && now.Sub(h.lastPost) >= p.QuietPeriod {
		h.cooled = false
		h.forwards = nil
	}
	h.lastPost = now
	switch {
	case h.forwarding || h.within(p.CoalesceWindow, now):
		return coalesced
	case h.cooled && h.within(p.ReminderInterval, now):
		return suppressed
	}
	h.forwarding = true
	return forwarded
}

// settle ends the forward that post at the given time let pass. A failed one
// leaves no trace.
func (h *pageHistory) settle(at time.Time, succeeded bool, p Policy) {
	h.forwarding = false
	if !succeeded {
		return
	}
	if len(h.forwards) > p.FlapLimit {
		h.forwards = h.forwards[:copy(h.forwards, h.forwards[1:])]
	}
	h.forwards = append(h.forwards, at)
	if len(h.forwards) > p.FlapLimit && at.Sub(h.forwards[0]) < p.FlapWindow {
		h.cooled = true
	}
}

// within reports whether the last forward was less than d ago.
func (h *pageHistory) within(d time.Duration, now time.Time) bool {
	last := len(h.forwards) - 1
	return last >= 0 && now.Sub(h.forwards[last]) < d
}

// idle reports whether forgetting the history changes nothing.
func (h *pageHistory) idle(now time.Time, p Policy) bool {
	switch {
	case h.forwarding:
		return false
	case h.cooled:
		return now.Sub(h.lastPost) >= p.QuietPeriod
	default:
		return !h.within(max(p.CoalesceWindow, p.FlapWindow), now)
	}
}

// rewind makes the best of a clock that was set back to now: what lies ahead of
// it counts as having happened now. So nothing is silenced until the clock has
// caught up, and nothing is forgotten.
func (h *pageHistory) rewind(now time.Time) {
	h.lastPost = earlier(h.lastPost, now)
	for i, at := range h.forwards {
		h.forwards[i] = earlier(at, now)
	}
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
