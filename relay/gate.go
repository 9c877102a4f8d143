package relay

import (
	"sync"
	"time"
)

// A gate holds posts against a policy. It is safe for concurrent use and knows
// no clock: time is an argument.
type gate struct {
	policy Policy

	mu      sync.Mutex
	devices map[string]*deviceHistory
	swept   time.Time // when sweep last ran
}

// A deviceHistory is what a relay remembers of one device.
type deviceHistory struct {
	bucket bucket
	pages  map[string]*pageHistory // by collapse id
	seen   time.Time               // the latest time heard of
}

func newGate(p Policy) *gate {
	return &gate{policy: p, devices: make(map[string]*deviceHistory)}
}

// admit says what becomes of a post: forwarded, in which case the caller ends
// the forward with settle; coalesced; suppressed; limited, to be tried again
// after wait; or overloaded.
func (g *gate) admit(now time.Time, device, collapseID string) (o outcome, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.device(now, device)
	if d == nil {
		return overloaded, 0
	}
	page := d.pages[collapseID]
	if page == nil {
		page = &pageHistory{}
	}
	if o := page.post(now, g.policy); o != forwarded {
		return o, 0
	}
	if wait, ok := d.bucket.take(now); !ok {
		page.settle(now, false, g.policy)
		return limited, wait
	}
	d.pages[collapseID] = page
	return forwarded, 0
}

// settle ends, at now, the forward of a post that was admitted at the given
// time.
func (g *gate) settle(now, admitted time.Time, device, collapseID string, succeeded bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	d := g.devices[device] // kept by the forward, as the page is
	d.bucket.settle(now, succeeded)
	page := d.pages[collapseID]
	page.settle(earlier(admitted, now), succeeded, g.policy)
	if page.idle(now, g.policy) {
		delete(d.pages, collapseID)
	}
	if d.idle(now) {
		delete(g.devices, device)
	}
}

// device returns what is known of a device, or nil if there is no room for one
// more.
func (g *gate) device(now time.Time, device string) *deviceHistory {
	if d := g.devices[device]; d != nil {
		d.catchUp(now)
		return d
	}
	// A flood of new devices must not make each post go through all of them.
	if len(g.devices) >= g.policy.MaxDevices && !within(now, g.swept, time.Second) {
		g.sweepLocked(now)
	}
	if len(g.devices) >= g.policy.MaxDevices {
		return nil
	}
	d := &deviceHistory{bucket: newBucket(g.policy), pages: make(map[string]*pageHistory), seen: now}
	g.devices[device] = d
	return d
}

// sweep forgets what no longer matters and reports how many devices are left.
func (g *gate) sweep(now time.Time) (left int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweepLocked(now)
	return len(g.devices)
}

func (g *gate) sweepLocked(now time.Time) {
	g.swept = now
	kept := make(map[string]*deviceHistory) // a new one, because a map never shrinks
	for token, d := range g.devices {
		d.catchUp(now)
		for id, page := range d.pages {
			if page.idle(now, g.policy) {
				delete(d.pages, id)
			}
		}
		if !d.idle(now) {
			kept[token] = d
		}
	}
	g.devices = kept
}

// catchUp notices that a clock was set back.
func (d *deviceHistory) catchUp(now time.Time) {
	if now.Before(d.seen) {
		d.bucket.rewind(now)
		for _, page := range d.pages {
			page.rewind(now)
		}
	}
	d.seen = now
}

// idle reports whether forgetting the device changes nothing, once its idle
// pages are gone. A page on its way is not idle, so neither is its device.
func (d *deviceHistory) idle(now time.Time) bool {
	return len(d.pages) == 0 && d.bucket.full(now)
}

// within reports whether now is less than d away from then, to either side.
func within(now, then time.Time, d time.Duration) bool { return now.Sub(then).Abs() < d }
