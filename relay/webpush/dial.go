package webpush

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"
)

// notPublic are the networks that no push service is in (the IANA special-purpose address registries), apart from those
// that [netip.Addr] has methods for.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"), // carrier-grade NAT, and many a VPN
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"), // relays of 6to4
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("2001::/23"), // Teredo among others
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"), // 6to4
	netip.MustParsePrefix("3fff::/20"),
}

var (
	global6 = netip.MustParsePrefix("2000::/3")
	nat64   = netip.MustParsePrefix("64:ff9b::/96") // the last 32 bits are an IPv4 address
)

// isPublic reports whether an address is of the internet at large.
func isPublic(ip netip.Addr) bool {
	ip = ip.Unmap()
	if nat64.Contains(ip) {
		raw := ip.As16()
		ip = netip.AddrFrom4([4]byte(raw[12:]))
	}
	if ip.Is6() && (ip.Zone() != "" || !global6.Contains(ip)) {
		return false
	}
	if ip.IsPrivate() || ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.IsMulticast() || ip.IsUnspecified() {
		return false
	}
	return !contains(notPublic, ip)
}

func contains(networks []netip.Prefix, ip netip.Addr) bool {
	for _, network := range networks {
		if network.Contains(ip) {
			return true
		}
	}
	return false
}

const (
	// tokenLife is how long a VAPID token is used. The library's are good for 12 hours; Apple's service asks for no
	// new one within an hour.
	tokenLife = 6 * time.Hour
	// maxTokens is how many push services have a token kept. Microsoft's has a name for each of many servers.
	maxTokens = 1000
)

// A client sends with the VAPID token that it has for a push service, in place of the one that the library makes for each
// message.
type client struct {
	http *http.Client

	mu     sync.Mutex
	tokens map[string]vapidToken // by host of the push service
}

type vapidToken struct {
	header string // Authorization
	made   time.Time
}

// Do sends a message.
func (c *client) Do(r *http.Request) (*http.Response, error) {
	r.Header.Set("Authorization", c.token(r.URL.Host, r.Header.Get("Authorization"), time.Now()))
	resp, err := c.http.Do(r)
	if err == nil && (resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden) {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.tokens, r.URL.Host) // it may have been made while the clock was wrong
	}
	return resp, err
}

// token returns the token for a push service: the one that is kept, or the fresh one.
func (c *client) token(host, fresh string, now time.Time) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	kept, known := c.tokens[host]
	if age := now.Sub(kept.made); known && age >= 0 && age < tokenLife {
		return kept.header
	}
	if c.tokens == nil || len(c.tokens) >= maxTokens {
		c.tokens = map[string]vapidToken{}
	}
	c.tokens[host] = vapidToken{fresh, now.Round(0)} // by the clock that expiry is in, which may be set
	return fresh
}

// newClient makes a client that connects to public addresses and those of the networks, and to nothing else. What an
// endpoint's name resolves to is checked at each connection, after it was resolved and before the first packet: a name
// that meant another address when somebody subscribed is of no use. So no proxy is used, which would resolve it again.
func newClient(networks []netip.Prefix, tlsConfig *tls.Config) *http.Client {
	dialer := &net.Dialer{
		Timeout: 5 * time.Second,
		Control: func(_, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("webpush: %q is no address", address) // unreachable
			}
			if ip := to.Addr().Unmap(); !isPublic(ip) && !contains(networks, ip) {
				return fmt.Errorf("webpush: %s is not a public address: WithPrivateNetworks allows it", ip)
			}
			return nil
		},
	}
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Client{
		Timeout: sendTimeout,
		Transport: &http.Transport{
			DialContext:            dialer.DialContext,
			TLSClientConfig:        tlsConfig,
			TLSHandshakeTimeout:    5 * time.Second,
			Protocols:              &protocols,
			MaxIdleConns:           100,
			MaxIdleConnsPerHost:    16,
			IdleConnTimeout:        60 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			DisableCompression:     true,
			// A connection that a middlebox has dropped is found out between pages, not by the next one.
			HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 10 * time.Second},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
