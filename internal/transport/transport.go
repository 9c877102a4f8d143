// Package transport makes the HTTP transport of those who were given none.
package transport

import (
	"net"
	"net/http"
	"time"
)

// New returns a transport for small requests to one or two services that nobody trusts.
//
// It is not http.DefaultTransport, which a program may have replaced. When the other end of an HTTP/2 connection
// vanishes, that transport fails every request on it until the kernel gives up, after a quarter of an hour. It also
// decompresses whatever a server says is compressed, and reads ten megabytes of header.
func New() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout:    5 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           4,
		IdleConnTimeout:        60 * time.Second, // below the 75 s after which common servers hang up
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 3 * time.Second, PingTimeout: 3 * time.Second},
	}
}
