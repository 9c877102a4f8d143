package relayclient

import (
	"net"
	"net/http"
	"time"
)

// newTransport returns the transport behind every Client that was not given
// one. It is not a copy of http.DefaultTransport, which a program may have
// replaced, and which keeps too few connections for a fan-out.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout:    5 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           MaxInFlight,
		MaxIdleConnsPerHost:    MaxInFlight,
		IdleConnTimeout:        60 * time.Second, // below the 75 s after which common servers hang up
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // answers are short, and a bomb is not
		HTTP2: &http.HTTP2Config{
			// A connection whose other end vanished must not swallow the next alert.
			SendPingTimeout: 3 * time.Second,
			PingTimeout:     3 * time.Second,
		},
	}
}
