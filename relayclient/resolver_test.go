package relayclient_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relayclient"
)

// resolving returns a dial for a name with the given addresses, which a name server takes so long to say. An address
// that is not among those of connects is silent; an error is what it says at once.
func resolving(lookUp time.Duration, lookUps *int, addresses []string, connects map[string]error) relayclient.Dial {
	return relayclient.NewResolver(func(ctx context.Context, _, _ string) ([]netip.Addr, error) {
		*lookUps++
		if err := pause(ctx, lookUp); err != nil {
			return nil, err
		}
		var found []netip.Addr
		for _, address := range addresses {
			found = append(found, netip.MustParseAddr(address))
		}
		return found, nil
	}, func(ctx context.Context, _, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		err, listens := connects[host]
		switch {
		case !listens:
			return nil, pause(ctx, time.Hour)
		case err != nil:
			return nil, err
		}
		conn, peer := net.Pipe()
		peer.Close()
		return named{conn, address}, nil
	})
}

// named says which address it is a connection to.
type named struct {
	net.Conn
	address string
}

func TestResolver(t *testing.T) {
	const silent, refuses, listens, other = "192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1"
	connects := map[string]error{refuses: errRefused, listens: nil, other: nil}
	tests := []struct {
		name      string
		addresses []string
		want      string // empty for an error
		takes     time.Duration
	}{
		{"one that listens", []string{listens}, listens, 0},
		{"the first of two", []string{other, listens}, "[" + other + "]", 0},
		{"after one that refuses", []string{refuses, listens}, listens, 0},
		{"after one that is silent", []string{silent, listens}, listens, 250 * time.Millisecond},
		{"after both", []string{silent, refuses, silent, listens}, listens, 500 * time.Millisecond},
		{"all refuse", []string{refuses, refuses}, "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				// The first name server is down: it takes the resolver 5 s to ask the next one.
				var lookUps int
				dial := resolving(5*time.Second, &lookUps, tt.addresses, connects)
				for i, lookUp := range []time.Duration{5 * time.Second, 0} {
					start := time.Now()
					conn, err := dial(t.Context(), "tcp", "relay.sealpush.test:443")
					if tt.want == "" {
						if !errors.Is(err, errRefused) {
							t.Errorf("%v", err)
						}
						break
					}
					if err != nil {
						t.Fatal(err)
					}
					if to := conn.(named).address; to != tt.want+":443" {
						t.Errorf("connected to %s", to)
					}
					conn.Close()
					if took := time.Since(start); took != lookUp+tt.takes {
						t.Errorf("dial %d took %v", i, took)
					}
				}
				if lookUps != 1 {
					t.Errorf("%d lookups", lookUps)
				}
			})
		})
	}
}

func TestResolverAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lookUps int
		connects := map[string]error{"192.0.2.1": nil}
		dial := resolving(0, &lookUps, []string{"192.0.2.1"}, connects)
		connect := func(address string) {
			if conn, err := dial(t.Context(), "tcp", address); err == nil {
				conn.Close()
			}
		}
		connect("relay.sealpush.test:443")
		connect("proxy.sealpush.test:443") // another name
		<-time.After(6 * time.Second)      // some time
		connect("proxy.sealpush.test:443")
		connects["192.0.2.1"] = errRefused
		connect("proxy.sealpush.test:443")
		connect("proxy.sealpush.test:443") // a failure
		if lookUps != 4 {
			t.Errorf("%d lookups, want 4", lookUps)
		}
	})
}
