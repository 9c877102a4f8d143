package relayclient

import (
	"net/http"
	"time"
)

// newTransport returns a transport for a pool, which sets how it dials. It is not
// a copy of http.DefaultTransport, which a program may have replaced, and which
// keeps too few connections for a fan-out.
func newTransport(timeout time.Duration) *http.Transport {
	// An HTTP/2 connection whose other end vanished must not swallow the next
	// alert too: it is found out before its first POST has timed out.
	ping := min(3*time.Second, timeout/3)
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		TLSHandshakeTimeout:    5 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           MaxInFlight,
		MaxIdleConnsPerHost:    MaxInFlight,
		IdleConnTimeout:        60 * time.Second, // below the 75 s after which common servers hang up
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // answers are short, and a bomb is not
		HTTP2: &http.HTTP2Config{
			SendPingTimeout: ping,
			PingTimeout:     ping,
			// What is not read is buffered, for each of the POSTs in flight.
			MaxReceiveBufferPerStream: 16 << 10,
		},
	}
}
