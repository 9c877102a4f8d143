package relayclient

import (
	"context"
	"crypto/tls"
	"net"
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
