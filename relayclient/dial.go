package relayclient

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"sync"
	"time"
)

const (
	connectTimeout   = 5 * time.Second        // for a TCP connection to one address, and for a TLS handshake
	addressDelay     = 250 * time.Millisecond // until the next address is tried as well (RFC 8305, section 5)
	addressesFresh   = 5 * time.Second        // for which the addresses of a name are not asked for again
	requestBuffer    = 8 << 10                // bytes; a request larger than that is written in pieces
	maxAnswerHeader  = 64 << 10               // bytes
	maxAnswerPerPOST = 16 << 10               // bytes that HTTP/2 buffers until they are read
)

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// A dialer makes connections to one relay.
type dialer struct {
	scheme, address string
	transport       *http.Transport // keeps no connection
}

// newDialer returns a dialer to the relay at rawURL. Config may be nil.
func newDialer(rawURL string, timeout time.Duration, config *tls.Config, dial dialFunc) (*dialer, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, errRelayURL
	}
	host, err := asciiHost(u)
	if err != nil {
		return nil, err
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])

	if config == nil {
		config = &tls.Config{}
	}
	config = config.Clone()
	if config.ClientSessionCache == nil {
		config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	}
	// A POST is written at once, so that a relay which answers and closes before it has read all of it does not make
	// the rest of the writing fail, and the answer is lost.
	config.DynamicRecordSizingDisabled = true

	// An HTTP/2 connection whose other end vanished is found out before its first POST has timed out.
	ping := min(3*time.Second, timeout/3)
	return &dialer{scheme: u.Scheme, address: net.JoinHostPort(host, port), transport: &http.Transport{
		Proxy: func(*http.Request) (*url.URL, error) {
			proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u})
			if err != nil {
				return nil, &finalError{err}
			}
			return proxy, nil
		},
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
			if resp.StatusCode/100 == 4 { // with 5xx it says that it could not reach the relay
				return &finalError{fmt.Errorf("the proxy refuses to connect: %s", resp.Status)}
			}
			return nil
		},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			socket := ctx.Value(socketKey{}).(*countedConn)
			socket.Conn = c
			return socket, nil
		},
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    connectTimeout,
		ForceAttemptHTTP2:      true,
		IdleConnTimeout:        idleLongest,
		WriteBufferSize:        requestBuffer,
		MaxResponseHeaderBytes: maxAnswerHeader,
		DisableCompression:     true, // answers are short; do not let one decompress without bound
		HTTP2: &http.HTTP2Config{
			SendPingTimeout:           ping,
			PingTimeout:               ping,
			MaxReceiveBufferPerStream: maxAnswerPerPOST,
		},
	}}, nil
}

// asciiHost returns the host of u as it stands in DNS and in certificates. Only net/http's own request writer gives out
// what it makes of a name that is not ASCII.
func asciiHost(u *url.URL) (string, error) {
	host := u.Hostname()
	for _, r := range host {
		if r < 0x80 {
			continue
		}
		var wire bytes.Buffer
		if err := (&http.Request{Method: http.MethodGet, URL: &url.URL{Host: host}}).Write(&wire); err != nil {
			return "", errRelayURL
		}
		req, err := http.ReadRequest(bufio.NewReader(&wire))
		if err != nil {
			return "", errRelayURL
		}
		return req.Host, nil
	}
	return host, nil
}

// socketKey is where the context of a dial has what counts the bytes of its connection.
type socketKey struct{}

// connect makes a connection.
func (d *dialer) connect(ctx context.Context) (*conn, error) {
	c := &conn{socket: new(countedConn), idleLimit: idleDefault}
	ctx = context.WithValue(ctx, socketKey{}, c.socket)
	var handshake error
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeDone: func(state tls.ConnectionState, err error) {
			c.shared = state.NegotiatedProtocol == "h2" // the last handshake is the relay's; one before is a proxy's
			handshake = err
		},
	})
	var err error
	c.http, err = d.transport.NewClientConn(ctx, d.scheme, d.address)
	switch {
	case err == nil:
		return c, nil
	case handshake != nil && !isNetworkError(handshake):
		if record, ok := errors.AsType[tls.RecordHeaderError](handshake); ok && string(record.RecordHeader[:]) == "HTTP/" {
			err = http.ErrSchemeMismatch
		}
		return nil, &finalError{err}
	}
	return nil, err
}

// A finalError is an error of a dial that the next dial would give too: the proxy settings, a proxy's refusal, TLS.
type finalError struct{ err error }

func (e *finalError) Error() string { return e.err.Error() }
func (e *finalError) Unwrap() error { return e.err }

func isFinal(err error) bool {
	_, final := errors.AsType[*finalError](err)
	return final
}

// isNetworkError tells what the network does to a TLS handshake from what its two ends do.
func isNetworkError(err error) bool {
	for _, ended := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, context.Canceled} {
		if errors.Is(err, ended) {
			return true
		}
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return true
	}
	// An alert is a *net.OpError too, of another operation.
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "read" || op.Op == "write")
}

// A resolver dials TCP. It differs from a [net.Dialer] in that looking up a name may take as long as the context lasts,
// and connecting to an address no longer than connectTimeout, so that a name server that is down costs its own delay
// only.
type resolver struct {
	lookUp  func(ctx context.Context, network, host string) ([]netip.Addr, error)
	connect dialFunc // to an address

	mu        sync.Mutex
	host      string
	addresses []netip.Addr // of host, found at the time below
	found     time.Time
}

func newResolver() *resolver {
	return &resolver{
		lookUp:  net.DefaultResolver.LookupNetIP,
		connect: (&net.Dialer{Timeout: connectTimeout}).DialContext,
	}
}

func (r *resolver) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	addresses, err := r.addressesOf(ctx, host)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	conn, err := r.dialFirst(ctx, network, addresses, port)
	if err != nil {
		r.mu.Lock()
		r.addresses = nil
		r.mu.Unlock()
	}
	return conn, err
}

func (r *resolver) addressesOf(ctx context.Context, host string) ([]netip.Addr, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.host == host && len(r.addresses) > 0 && time.Since(r.found) < addressesFresh {
		return r.addresses, nil
	}
	r.mu.Unlock()
	addresses, err := r.lookUp(ctx, "ip", host)
	r.mu.Lock()
	if err == nil {
		r.host, r.addresses, r.found = host, addresses, time.Now()
	}
	return addresses, err
}

// dialFirst connects to the address that is the first to take the connection. It tries the next one when one has
// failed, or when one takes long.
func (r *resolver) dialFirst(ctx context.Context, network string, addresses []netip.Addr, port string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		conn net.Conn
		err  error
	}
	results := make(chan result, len(addresses))
	tried, failed := 0, 0
	next := time.NewTimer(0)
	defer next.Stop()
	var first error
	for {
		select {
		case <-next.C:
			address := net.JoinHostPort(addresses[tried].String(), port)
			go func() {
				conn, err := r.connect(ctx, network, address)
				results <- result{conn, err}
			}()
			if tried++; tried < len(addresses) {
				next.Reset(addressDelay)
			}
		case got := <-results:
			if got.err == nil {
				go func() { // the others, if they come too late
					for range tried - failed - 1 {
						if late := <-results; late.err == nil {
							late.conn.Close()
						}
					}
				}()
				return got.conn, nil
			}
			first = cmp.Or(first, got.err)
			if failed++; failed == len(addresses) {
				return nil, first
			}
			if tried < len(addresses) {
				next.Reset(0)
			}
		}
	}
}
