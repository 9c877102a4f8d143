package webpush

import (
	"context"
	"net"
	"net/http"
)

// IsPublic is for the table of addresses.
var IsPublic = isPublic

// DialWith makes the forwarder's connections, for tests in memory.
func (f *Forwarder) DialWith(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	f.client.Transport.(*http.Transport).DialContext = dial
}
