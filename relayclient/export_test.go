package relayclient

import (
	"context"
	"crypto/tls"
	"net"
	"net/netip"

	"github.com/sealpush/sealpush/payload"
)

// HostName is the name of a machine that gives it so.
var HostName = hostName

// Dial is how a transport makes connections.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// SetDial gives a client that makes its own connections another way to the relay.
// It trusts what config does, if that is not nil.
func SetDial(c *Client, dial Dial, config *tls.Config) {
	dialer, err := newDialer(c.relay.url, c.timeout, config, dial)
	if err != nil {
		panic(err)
	}
	c.pool.mu.Lock()
	defer c.pool.mu.Unlock()
	c.pool.dialer = dialer
}

// NewResolver returns the dial of a resolver that looks up names and connects to addresses with these.
func NewResolver(lookUp func(ctx context.Context, network, host string) ([]netip.Addr, error), connect Dial) Dial {
	return (&resolver{lookUp: lookUp, connect: connect}).dial
}

// Address returns where a client that makes its own connections has its relay.
func Address(c *Client) string { return c.pool.dialer.address }

// HasNews is hasNews.
var HasNews = hasNews

// Observe is what a POST that has ended costs besides.
func Observe(c *Client, ctx context.Context, alert payload.Alert, outcome Outcome, envelope int) {
	c.observe(ctx, alert, outcome, c.observedNow(), envelope)
}
