package relay

import (
	"slices"
	"time"
)

// A deviceHistory is what a relay remembers of one device, and the rules of [Policy]. It knows no clock and no lock.
// Times are Unix time in nanoseconds; zero is never.
type deviceHistory struct {
	seen     int64 // when it was last changed
	fullAt   int64 // when the bucket is full again
	month    int64 // the UTC month that count is for: 12 × year + month
	count    int64 // pages of that month that were admitted and not refused
	digested int64 // when the last digest of that month was due
	pages    []pageHistory
}

// A pageHistory is what a relay remembers of one collapse id on one device.
type pageHistory struct {
	id          [16]byte
	forwards    []int64 // of the flap window, oldest first, at most FlapLimit
	last        int64   // the last forward
	cooledUntil int64
	lease       uint64 // of the forward under way; zero for none
	leaseUntil  int64
	failed      failedForward // the last one, for those who wait for it
}

// A failedForward is how a forward ended that the push service did not take.
type failedForward struct {
	lease      uint64 // zero for none
	at         int64
	status     int
	reason     string
	retryAfter time.Duration
}

// leaseTime is how long a forward may be under way, and for how long its failure is remembered. When the process that
// forwards has died, others go on after it.
const leaseTime = forwardTimeout

// A decision is what becomes of a post.
type decision struct {
	outcome   outcome
	wait      time.Duration // of limited: until there is a token
	lease     uint64        // of forwarded and of underway
	digestDue bool          // of digested
}

// admit decides about a post at now. When the outcome is forwarded, the caller ends the forward with settle, under the
// lease that it gave. It reports whether the history changed.
func (d *deviceHistory) admit(now int64, id [16]byte, lease uint64, p *Policy) (decision, bool) {
	rewound := d.rewind(now, p)
	page := d.page(id)
	if page != nil {
		if page.lease != 0 && now < page.leaseUntil {
			return decision{outcome: underway, lease: page.lease}, rewound
		}
		if page.last != 0 && now-page.last < int64(p.CoalesceWindow) {
			return decision{outcome: coalesced}, rewound
		}
	}
	d.seen = now
	if page != nil && page.flaps(now, p) {
		return decision{outcome: suppressed}, true
	}
	if wait := d.fullAt - now - int64(p.RefillInterval)*int64(p.Burst-1); wait > 0 {
		return decision{outcome: limited, wait: time.Duration(wait)}, true
	}
	if p.MonthlyQuota > 0 {
		if month := monthOf(now); month > d.month { // a clock that is a little behind begins no month
			d.month, d.count, d.digested = month, 0, 0
		}
		if d.count >= int64(p.MonthlyQuota) {
			due := d.digested == 0 || now-d.digested >= int64(p.DigestInterval)
			if due {
				d.digested = now
			}
			return decision{outcome: digested, digestDue: due}, true
		}
		d.count++
	}
	d.fullAt = max(d.fullAt, now) + int64(p.RefillInterval)
	if page == nil {
		d.pages = append(d.pages, pageHistory{id: id})
		page = &d.pages[len(d.pages)-1]
	}
	page.lease, page.leaseUntil = lease, now+int64(leaseTime)
	return decision{outcome: forwarded, lease: lease}, true
}

// flaps reports whether a post that is not coalesced is suppressed.
func (p *pageHistory) flaps(now int64, policy *Policy) bool {
	if p.cooledUntil != 0 && now >= p.cooledUntil {
		p.cooledUntil, p.forwards = 0, nil
	}
	if p.cooledUntil != 0 {
		p.cooledUntil = now + int64(policy.QuietPeriod)
		return now-p.last < int64(policy.ReminderInterval)
	}
	old := 0
	for old < len(p.forwards) && now-p.forwards[old] >= int64(policy.FlapWindow) {
		old++
	}
	p.forwards = p.forwards[old:]
	if len(p.forwards) < policy.FlapLimit {
		return false
	}
	p.cooledUntil = now + int64(policy.QuietPeriod)
	return true
}

// settle ends, at now, the forward that was admitted at the given time. A nil failure means that the push service took
// the page.
func (d *deviceHistory) settle(now, admitted int64, id [16]byte, lease uint64, failure *failedForward, p *Policy) {
	d.rewind(now, p)
	d.seen = now
	admitted = min(admitted, now)
	page := d.page(id)
	if page == nil {
		d.pages = append(d.pages, pageHistory{id: id})
		page = &d.pages[len(d.pages)-1]
	}
	mine := page.lease == lease
	if mine {
		page.lease, page.leaseUntil = 0, 0
	}
	switch {
	case failure == nil:
		page.last = max(page.last, admitted)
		page.forwards = append(page.forwards, admitted)
		slices.Sort(page.forwards) // a slow forward may end after a later one
		page.forwards = page.forwards[max(0, len(page.forwards)-p.FlapLimit):]
	default:
		if mine {
			page.failed = *failure
			page.failed.lease, page.failed.at = lease, now
		}
		if p.MonthlyQuota > 0 && d.month == monthOf(admitted) {
			d.count = max(d.count-1, 0)
		}
	}
}

// page returns what is known of a collapse id, or nil.
func (d *deviceHistory) page(id [16]byte) *pageHistory {
	for i := range d.pages {
		if d.pages[i].id == id {
			return &d.pages[i]
		}
	}
	return nil
}

// forget drops the pages that do not matter any more, and returns the time from which nothing of the device does.
func (d *deviceHistory) forget(now int64, p *Policy) (until int64) {
	until = d.fullAt
	if p.MonthlyQuota > 0 && (d.count > 0 || d.digested != 0) {
		until = max(until, endOfMonth(d.month))
	}
	d.pages = slices.DeleteFunc(d.pages, func(page pageHistory) bool { return page.mattersUntil(p) <= now })
	for i := range d.pages {
		until = max(until, d.pages[i].mattersUntil(p))
	}
	return until
}

func (p *pageHistory) mattersUntil(policy *Policy) int64 {
	until := max(p.cooledUntil, p.leaseUntil)
	if p.last != 0 {
		until = max(until, p.last+int64(max(policy.CoalesceWindow, policy.FlapWindow)))
	}
	if p.failed.lease != 0 {
		until = max(until, p.failed.at+int64(leaseTime))
	}
	return until
}

// clockSkew is how far the clocks of relays that share a state may differ. A post within it of the last one refills no
// bucket and goes back to no month: two relays in turn would do so again and again.
const clockSkew = 5 * time.Second

// rewind corrects the history when the clock was set back to now: what lies in the future counts as having happened
// now. Otherwise pages would be suppressed until the clock has caught up. No limit is lifted. It reports whether
// anything changed.
func (d *deviceHistory) rewind(now int64, p *Policy) bool {
	back := d.seen - now
	if back <= 0 {
		return false
	}
	d.seen = now
	if back > int64(clockSkew) {
		d.fullAt = max(d.fullAt-back, 0)
		d.month = min(d.month, monthOf(now)) // with its count: a month that has not come would never end
	}
	d.digested = min(d.digested, now)
	for i := range d.pages {
		page := &d.pages[i]
		page.last = min(page.last, now)
		page.cooledUntil = min(page.cooledUntil, now+int64(p.QuietPeriod))
		page.leaseUntil = min(page.leaseUntil, now+int64(leaseTime))
		page.failed.at = min(page.failed.at, now)
		for j := range page.forwards {
			page.forwards[j] = min(page.forwards[j], now)
		}
	}
	return true
}

// monthOf counts UTC months.
func monthOf(nanoseconds int64) int64 {
	year, month, _ := time.Unix(0, nanoseconds).UTC().Date()
	return int64(year)*12 + int64(month) - 1
}

// endOfMonth is the first moment of the month after it.
func endOfMonth(month int64) int64 {
	return time.Date(int(month/12), time.Month(month%12)+2, 1, 0, 0, 0, 0, time.UTC).UnixNano()
}
