package pairing

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
)

func TestPhoneAddresses(t *testing.T) {
	var own []netip.Addr
	for _, a := range []string{"127.0.0.1", "192.168.1.7", "169.254.3.4", "10.0.0.9", "::1", "fe80::1", "fd00::7", "::ffff:192.168.1.7"} {
		own = append(own, netip.MustParseAddr(a))
	}
	for listen, want := range map[string][]string{
		":8787":             {"192.168.1.7:8787", "10.0.0.9:8787", "[fd00::7]:8787"},
		"[::]:8787":         {"192.168.1.7:8787", "10.0.0.9:8787", "[fd00::7]:8787"},
		"0.0.0.0:8787":      {"192.168.1.7:8787", "10.0.0.9:8787"},
		"10.0.0.9:80":       {"10.0.0.9:80"},
		"[fd00::7]:80":      {"[fd00::7]:80"},
		"daemon.lan:8787":   {"daemon.lan:8787"},
		"203.0.113.5:65535": {"203.0.113.5:65535"},
	} {
		if got, err := phoneAddresses(listen, own); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", listen, got, err, want)
		}
	}
	for _, listen := range []string{"127.0.0.1:8787", "[::1]:8787", "localhost:8787", "[::ffff:127.0.0.1]:8787", "[fe80::1%eth0]:8787"} {
		if got, err := phoneAddresses(listen, own); !errors.Is(err, ErrThisMachineOnly) {
			t.Errorf("%s: %q, %v", listen, got, err)
		}
	}
	if got, err := phoneAddresses(":8787", own[:1]); !errors.Is(err, ErrThisMachineOnly) {
		t.Errorf("a machine without a network: %q, %v", got, err)
	}
	for _, listen := range []string{"", "8787", "daemon.lan", ":0", ":65536", ":http", "[::1"} {
		if got, err := phoneAddresses(listen, own); err == nil || errors.Is(err, ErrThisMachineOnly) {
			t.Errorf("%q: %q, %v", listen, got, err)
		}
	}
}

// What PhoneAddresses returns is this machine's: an API that listens on all interfaces answers there.
func TestPhoneAddressesOfThisMachine(t *testing.T) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	addresses, err := PhoneAddresses(l.Addr().String())
	if errors.Is(err, ErrThisMachineOnly) {
		return // a machine without a network
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		conn.Close()
		if (Link{URL: "http://" + address}).ThisMachineOnly() {
			t.Errorf("%s is of this machine only", address)
		}
	}
}
