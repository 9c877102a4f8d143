package relayclient

import (
	"context"
	"net/http/httptrace"
	"sync"
	"time"
)

// headStart bounds how long the first POST of an alert goes alone.
const headStart = 250 * time.Millisecond

// A vanguard is the first worker of a fan-out. The others start when it has its
// connection: over HTTP/2 they share it, where all starting at once would make a
// hundred TLS handshakes of which ninety-nine are thrown away.
type vanguard struct {
	connected chan struct{}
	arrived   func() // called when the others may start, at the latest when the vanguard is done
}

func newVanguard() vanguard {
	connected := make(chan struct{})
	return vanguard{connected, sync.OnceFunc(func() { close(connected) })}
}

// watch returns a context for the vanguard's POSTs.
func (v vanguard) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { v.arrived() },
	})
}

// wait returns when the others may start. A connection that is slow to come
// about delays them by headStart only.
func (v vanguard) wait(ctx context.Context) {
	timer := time.NewTimer(headStart)
	defer timer.Stop()
	select {
	case <-v.connected:
	case <-timer.C:
	case <-ctx.Done():
	}
}
