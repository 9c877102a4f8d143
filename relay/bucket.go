package relay

import (
	"time"

	"golang.org/x/time/rate"
)

// A bucket limits the forwards to one device. A token is set aside when a
// forward starts and spent when it has succeeded. It knows no clock and no
// lock of its own.
type bucket struct {
	limiter *rate.Limiter
	aside   int
}

func newBucket(p Policy) bucket {
	return bucket{limiter: rate.NewLimiter(rate.Every(p.RefillInterval), p.Burst)}
}

// take sets a token aside. If there is none, it says how long until there is.
func (b *bucket) take(now time.Time) (wait time.Duration, ok bool) {
	free := b.limiter.TokensAt(now) - float64(b.aside)
	if free < 1 {
		return time.Duration((1 - free) / float64(b.limiter.Limit()) * float64(time.Second)), false
	}
	b.aside++
	return 0, true
}

// settle spends a token that was set aside, or puts it back.
func (b *bucket) settle(now time.Time, spent bool) {
	b.aside--
	if spent {
		b.limiter.AllowN(now, 1)
	}
}

// full reports whether the bucket is as good as a new one, if nothing is set
// aside.
func (b *bucket) full(now time.Time) bool {
	return b.limiter.TokensAt(now) >= float64(b.limiter.Burst())
}

// rewind lets the bucket refill from now on after the clock was set back to
// it, instead of from when the clock has caught up.
func (b *bucket) rewind(now time.Time) { b.limiter.SetLimitAt(now, b.limiter.Limit()) }
