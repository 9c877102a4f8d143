package relayclient

import (
	"context"
	"crypto/tls"
	"net"
)

// Dial is how a transport makes connections.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// SetDial gives the transport that users get another way to the relay. It trusts
// what config does, if that is not nil.
func SetDial(c *Client, dial Dial, config *tls.Config) {
	c.transport.DialContext = dial
	c.transport.TLSClientConfig = config.Clone()
}
