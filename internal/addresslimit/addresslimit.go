// Package addresslimit bounds how often each client address may do something.
package addresslimit

import (
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// maxAddresses is how many addresses have a bucket of their own. Those that come when there are so many share one.
	maxAddresses = 10_000
	// sweepEvery is how long full buckets are kept when there is no room for another.
	sweepEvery = 10 * time.Second
)

// A Limiter has a token bucket for each client address. It is safe for concurrent use.
type Limiter struct {
	limit     rate.Limit
	burst     int
	addressOf func(*http.Request) string

	mu      sync.Mutex
	buckets map[string]*rate.Limiter
	others  *rate.Limiter
	swept   time.Time
}

// New makes a limiter whose buckets hold burst tokens and are refilled at perSecond. addressOf returns the address of a
// client, or "host:port"; nil is that of the connection.
func New(perSecond float64, burst int, addressOf func(*http.Request) string) *Limiter {
	if addressOf == nil {
		addressOf = func(r *http.Request) string { return r.RemoteAddr }
	}
	limit := rate.Limit(perSecond)
	return &Limiter{limit: limit, burst: burst, addressOf: addressOf,
		buckets: map[string]*rate.Limiter{}, others: rate.NewLimiter(limit, burst)}
}

// Allow takes cost tokens from the bucket of the request's client. If there are too few, it takes none and says how
// long it takes until there are enough. A cost above the burst is never allowed.
func (l *Limiter) Allow(r *http.Request, cost int) (retryAfter time.Duration, ok bool) {
	now := time.Now()
	bucket := l.bucket(Network(l.addressOf(r)), now)
	reservation := bucket.ReserveN(now, cost)
	if !reservation.OK() {
		return time.Hour, false
	}
	if retryAfter = reservation.DelayFrom(now); retryAfter > 0 {
		reservation.CancelAt(now)
		return retryAfter, false
	}
	return 0, true
}

func (l *Limiter) bucket(network string, now time.Time) *rate.Limiter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if bucket, known := l.buckets[network]; known {
		return bucket
	}
	if len(l.buckets) >= maxAddresses && now.Sub(l.swept) >= sweepEvery {
		l.swept = now
		for name, bucket := range l.buckets {
			if bucket.TokensAt(now) >= float64(l.burst) { // a new one would be the same
				delete(l.buckets, name)
			}
		}
	}
	if len(l.buckets) >= maxAddresses {
		return l.others
	}
	bucket := rate.NewLimiter(l.limit, l.burst)
	l.buckets[network] = bucket
	return bucket
}

// Network is what of an address, or of "host:port", belongs to one client: an IPv4 address, or the /64 of an IPv6
// address, whose host part its user chooses. What is no address is "".
func Network(address string) string {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		both, err := netip.ParseAddrPort(address)
		if err != nil {
			return ""
		}
		ip = both.Addr()
	}
	ip = ip.Unmap().WithZone("")
	if ip.Is6() {
		prefix, err := ip.Prefix(64)
		if err != nil {
			return ""
		}
		return prefix.String()
	}
	return ip.String()
}
