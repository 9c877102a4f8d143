package addresslimit_test

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/internal/addresslimit"
)

func allow(l *addresslimit.Limiter, address string, cost int) (time.Duration, bool) {
	r := httptest.NewRequest("GET", "/", nil)
	r.RemoteAddr = address
	return l.Allow(r, cost)
}

func TestEachAddressHasItsBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := addresslimit.New(2, 4, nil)
		for i := range 4 {
			if _, ok := allow(l, "192.0.2.1:1000", 1); !ok {
				t.Fatalf("request %d of the burst is refused", i+1)
			}
		}
		if wait, ok := allow(l, "192.0.2.1:2000", 3); ok || wait != 1500*time.Millisecond {
			t.Errorf("the empty bucket: %v, %v", wait, ok)
		}
		if _, ok := allow(l, "192.0.2.2:1000", 4); !ok {
			t.Error("another address is refused")
		}
		<-time.After(1500*time.Millisecond - 1)
		if _, ok := allow(l, "192.0.2.1:1", 3); ok {
			t.Error("allowed a nanosecond early")
		}
		<-time.After(time.Microsecond)
		if wait, ok := allow(l, "192.0.2.1:1", 3); !ok {
			t.Errorf("refused after the wait: %v more", wait)
		}
		if _, ok := allow(l, "192.0.2.3:1", 5); ok {
			t.Error("more than the burst is allowed")
		}
	})
}

// Many addresses take no memory without bound, and those that come last share a bucket until there is room.
func TestManyAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := addresslimit.New(1, 2, nil)
		for i := range 10_000 {
			allow(l, fmt.Sprintf("10.0.%d.%d:1", i/256, i%256), 2)
		}
		if _, ok := allow(l, "192.0.2.1:1", 2); !ok {
			t.Error("the first of the others is refused")
		}
		if _, ok := allow(l, "192.0.2.2:1", 2); ok {
			t.Error("the others share no bucket")
		}
		<-time.After(time.Minute)
		for _, address := range []string{"192.0.2.1:1", "192.0.2.2:1"} {
			if _, ok := allow(l, address, 2); !ok {
				t.Errorf("%s has no bucket of its own when the old ones are full again", address)
			}
		}
	})
}

func TestNetwork(t *testing.T) {
	for address, want := range map[string]string{
		"192.0.2.1:443": "192.0.2.1", "192.0.2.1": "192.0.2.1", "[::ffff:192.0.2.1]:443": "192.0.2.1",
		"[2001:db8:1:2:3::4]:443": "2001:db8:1:2::/64", "2001:db8:1:2::9": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64",
		"": "", "@": "", "a host": "",
	} {
		if got := addresslimit.Network(address); got != want {
			t.Errorf("%q: %q, want %q", address, got, want)
		}
	}
}
