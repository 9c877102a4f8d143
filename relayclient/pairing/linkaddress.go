package pairing

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// ErrThisMachineOnly is the error of [PhoneAddresses] for an API that no other machine can reach.
var ErrThisMachineOnly = errors.New("pairing: the API listens on this machine only, so no phone can reach it")

// PhoneAddresses returns the addresses, each a host and a port, at which a phone on the network may reach an API that
// listens on an address such as ":8787" or "192.168.1.7:8787": one of them goes into the URL of a [Link]. An API that
// listens on every interface has all the addresses of the machine, the one that its default route uses first, then IPv4
// before IPv6. Loopback and link-local addresses are not among them.
//
// The error wraps [ErrThisMachineOnly] when the API listens on a loopback address, or the machine has no other. A link
// with such an address is of use on this machine alone (see [Link.ThisMachineOnly]), so make it only where somebody
// asks for it.
func PhoneAddresses(listen string) ([]string, error) {
	own, err := interfaceAddresses()
	if err != nil {
		return nil, fmt.Errorf("pairing: cannot read the addresses of this machine: %w", err)
	}
	return phoneAddresses(listen, own)
}

// phoneAddresses picks from the machine's own addresses, the likeliest first.
func phoneAddresses(listen string, own []netip.Addr) ([]string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, fmt.Errorf("pairing: the address that the API listens on must be a host and a port, such as :8787: %w", err)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return nil, errors.New("pairing: the port that the API listens on must be 1 to 65535: for port 0, give the listener's own address")
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case host == "":
		ip = netip.IPv6Unspecified()
	case err != nil && (Link{URL: "http://" + host}).ThisMachineOnly():
		return nil, fmt.Errorf("%w: it listens on %s", ErrThisMachineOnly, listen)
	case err != nil:
		return []string{listen}, nil // a host name
	}
	if ip = ip.Unmap(); !ip.IsUnspecified() {
		if !reachable(ip) {
			return nil, fmt.Errorf("%w: it listens on %s", ErrThisMachineOnly, listen)
		}
		return []string{net.JoinHostPort(ip.String(), port)}, nil
	}
	var addresses []string
	for _, a := range own {
		a = a.Unmap()
		text := net.JoinHostPort(a.String(), port)
		if reachable(a) && (ip.Is6() || a.Is4()) && !slices.Contains(addresses, text) {
			addresses = append(addresses, text)
		}
	}
	if len(addresses) == 0 {
		return nil, fmt.Errorf("%w: it listens on %s, and this machine has no address on a network", ErrThisMachineOnly, listen)
	}
	return addresses, nil
}

// reachable says whether an address can stand in a URL that another machine opens. One of a link-local scope needs a
// zone, which is of this machine alone.
func reachable(a netip.Addr) bool { return a.IsGlobalUnicast() && a.Zone() == "" }

// interfaceAddresses returns the addresses of the interfaces that are up, those of the default routes first.
func interfaceAddresses() ([]netip.Addr, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var own []netip.Addr
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue // it has just gone
		}
		for _, a := range addrs {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				own = append(own, prefix.Addr())
			}
		}
	}
	// A UDP socket that is connected sends nothing; the system picks the address of the route that it would take. The
	// destinations are of documentation (RFC 5737, RFC 3849).
	var routed []netip.Addr
	for _, far := range []string{"192.0.2.1:9", "[2001:db8::1]:9"} {
		if conn, err := net.Dial("udp", far); err == nil {
			routed = append(routed, conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap())
			conn.Close()
		}
	}
	rank := func(a netip.Addr) int {
		if slices.Contains(routed, a.Unmap()) {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(own, func(a, b netip.Addr) int {
		return cmp.Or(a.Unmap().BitLen()-b.Unmap().BitLen(), rank(a)-rank(b))
	})
	return own, nil
}
