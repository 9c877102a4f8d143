package relay

import (
	"fmt"
	"time"
)

// A Policy says how often a relay lets one device be paged (relay protocol,
// "Relay responsibilities"). A zero field means its default, which is what the
// hosted relay does and what the comments say.
//
// A post is held against it in this order. What is coalesced or suppressed is
// answered 202 with that outcome and costs the device nothing.
//
//  1. Coalescing: a post with the collapse id of a page that was forwarded to
//     the device less than CoalesceWindow ago, or that is being forwarded, is
//     "coalesced". Several nodes that report one alert make one page.
//  2. Flap suppression: more than FlapLimit forwards of one collapse id to a
//     device within FlapWindow cool that id. From then on one post per
//     ReminderInterval is forwarded, the others are "suppressed", until the id
//     has not been posted for QuietPeriod.
//  3. Rate limit: each forward takes a token out of the device's bucket of
//     Burst, which gets one back per RefillInterval. An empty bucket is
//     answered 429, with a Retry-After in seconds.
//
// A page that the push service did not take leaves no trace in any of them: the
// same alert passes as soon as the push service recovers.
type Policy struct {
	CoalesceWindow   time.Duration // 75 s
	FlapLimit        int           // 6 forwards
	FlapWindow       time.Duration // 30 min
	ReminderInterval time.Duration // 30 min
	QuietPeriod      time.Duration // 2 h
	Burst            int           // 60 forwards
	RefillInterval   time.Duration // 2 s

	// MaxDevices is how many devices the relay keeps count of at once: 100 000.
	// A post for one more is answered 503, since letting it pass would be to
	// let it pass without limits. Devices are forgotten once they have been
	// silent for as long as anything above can matter.
	MaxDevices int
}

// withDefaults fills in the zero fields and refuses negative ones.
func (p Policy) withDefaults() (Policy, error) {
	var err error
	duration := func(name string, d *time.Duration, byDefault time.Duration) {
		if *d < 0 && err == nil {
			err = fmt.Errorf("relay: Policy.%s is negative: %v", name, *d)
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
	number("MaxDevices", &p.MaxDevices, 100_000)
	return p, err
}

// longest is the longest of the windows.
func (p Policy) longest() time.Duration {
	return max(p.CoalesceWindow, p.FlapWindow, p.ReminderInterval, p.QuietPeriod, time.Duration(p.Burst)*p.RefillInterval)
}
