package relaytest

import (
	"context"
	"net"
	"sync"
)

// memoryListener accepts connections made by its own dial, over net.Pipe. No socket is involved, so goroutines that
// wait on it are durably blocked in the sense of testing/synctest.
type memoryListener struct {
	host    string
	pending chan net.Conn
	closed  chan struct{}
	close   func()
}

func newMemoryListener(host string) *memoryListener {
	l := &memoryListener{host: host, pending: make(chan net.Conn), closed: make(chan struct{})}
	l.close = sync.OnceFunc(func() { close(l.closed) })
	return l
}

func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.pending:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *memoryListener) Close() error {
	l.close()
	return nil
}

func (l *memoryListener) Addr() net.Addr { return memoryAddr(l.host) }

// dial has the signature of http.Transport.DialContext. It reaches this listener whatever the address.
func (l *memoryListener) dial(ctx context.Context, network, address string) (net.Conn, error) {
	client, server := net.Pipe()
	refuse := func(err error) (net.Conn, error) {
		client.Close()
		server.Close()
		return nil, &net.OpError{Op: "dial", Net: network, Addr: memoryAddr(address), Err: err}
	}
	select {
	case l.pending <- server:
		return client, nil
	case <-l.closed:
		return refuse(net.ErrClosed)
	case <-ctx.Done():
		return refuse(ctx.Err())
	}
}

var _ net.Listener = (*memoryListener)(nil)

// memoryAddr is the host name under which a listener in memory is reached.
type memoryAddr string

func (memoryAddr) Network() string  { return "memory" }
func (a memoryAddr) String() string { return string(a) }
