package webpush

import (
	"context"
	"net"
	"net/http"
	"time"
)

// IsPublic is for the table of addresses.
var IsPublic = isPublic

// DialWith makes the forwarder's connections, for tests in memory.
func (f *Forwarder) DialWith(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	f.client.http.Transport.(*http.Transport).DialContext = dial
}

// Tokens are the VAPID tokens of a forwarder.
type Tokens struct {
	client client
	calls  int
}

func (k *Tokens) Token(host, fresh string, now time.Time) string {
	k.calls++
	return k.client.token(host, fresh, now)
}

func (k *Tokens) Calls() int { return k.calls }
func (k *Tokens) Kept() int  { return len(k.client.tokens) }
