package relay

import (
	"fmt"
	"time"
)

// A Policy says how often a relay lets one device be paged (relay protocol, "Relay responsibilities", and its additions
// of 2026, "Relay"). A zero field means its default, which is what the hosted relay does and what the comments say.
//
// A post is held against it in this order:
//
//  1. Coalescing: a post with the collapse id of a page that was forwarded to the device less than CoalesceWindow ago
//     is "coalesced". Several nodes that report one alert make one page. While the page is being forwarded, its copies
//     wait: should the push service not take it, they get the same answer.
//  2. Flap suppression: a post that finds FlapLimit forwards of its collapse id, each younger than FlapWindow, is
//     "suppressed" and cools that id. From then on one post per ReminderInterval is forwarded, the others are
//     suppressed, until the id has not been posted for QuietPeriod. A coalesced post does not count.
//  3. Rate limit: each forward takes a token out of the device's bucket of Burst, which gets one back per
//     RefillInterval. An empty bucket is answered 429, with a Retry-After in seconds. The token is spent even if the
//     push service does not take the page.
//  4. Quota: once MonthlyQuota pages were forwarded to the device since 00:00 UTC on the first of the month, a post is
//     "digested": instead of the page, the phone gets at most one fixed notification per DigestInterval, which says
//     that there are alerts. What the push service did not take does not count.
//
// Apart from the token, a page that the push service did not take leaves no trace: the same alert passes as soon as the
// push service recovers.
//
// A negative field is an error, and so is a time of more than 100 years, or a Burst that takes as long to refill.
type Policy struct {
	CoalesceWindow   time.Duration // 75 s
	FlapLimit        int           // 6 forwards
	FlapWindow       time.Duration // 30 min
	ReminderInterval time.Duration // 30 min
	QuietPeriod      time.Duration // 2 h
	Burst            int           // 60 forwards
	RefillInterval   time.Duration // 2 s
	MonthlyQuota     int           // no quota; the hosted relay has 500
	DigestInterval   time.Duration // 1 h
}

// maxSpan is the longest time in a policy: sums with it do not overflow.
const maxSpan = 100 * 365 * 24 * time.Hour

// withDefaults fills in the zero fields and refuses what cannot be counted with.
func (p Policy) withDefaults() (Policy, error) {
	var err error
	duration := func(name string, d *time.Duration, byDefault time.Duration) {
		if *d < 0 && err == nil {
			err = fmt.Errorf("relay: Policy.%s is negative: %v", name, *d)
		}
		if *d > maxSpan && err == nil {
			err = fmt.Errorf("relay: Policy.%s is longer than 100 years: %v", name, *d)
		}
		if *d == 0 {
			*d = byDefault
		}
	}
	number := func(name string, n *int, byDefault int) {
		if *n < 0 && err == nil {
			err = fmt.Errorf("relay: Policy.%s is negative: %d", name, *n)
		}
		if *n == 0 {
			*n = byDefault
		}
	}
	duration("CoalesceWindow", &p.CoalesceWindow, 75*time.Second)
	number("FlapLimit", &p.FlapLimit, 6)
	duration("FlapWindow", &p.FlapWindow, 30*time.Minute)
	duration("ReminderInterval", &p.ReminderInterval, 30*time.Minute)
	duration("QuietPeriod", &p.QuietPeriod, 2*time.Hour)
	number("Burst", &p.Burst, 60)
	duration("RefillInterval", &p.RefillInterval, 2*time.Second)
	number("MonthlyQuota", &p.MonthlyQuota, 0)
	duration("DigestInterval", &p.DigestInterval, time.Hour)
	if err == nil && int64(p.Burst) > int64(maxSpan/p.RefillInterval) {
		err = fmt.Errorf("relay: Policy.Burst of %d takes more than 100 years to refill", p.Burst)
	}
	return p, err
}
