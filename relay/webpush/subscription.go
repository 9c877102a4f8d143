package webpush

import (
	"crypto/ecdh"
	"encoding/base64"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/sealpush/sealpush/secret"
)

// maxEndpoint is in bytes. The longest that push services are known to have take some 600.
const maxEndpoint = 2048

// Sizes in bytes (RFC 8291, section 3).
const (
	publicKeySize = 65 // uncompressed P-256 point
	authSize      = 16
)

// A Subscription says where a browser receives messages and how to encrypt them for it (Push API, "PushSubscription").
// The zero value is none.
type Subscription struct {
	Endpoint secret.Text // https URL at a push service, of at most 2048 bytes
	P256DH   string      // public key of the browser: 65 bytes in base64url without padding
	Auth     secret.Text // authentication secret: 16 bytes in base64url without padding
}

// checkKeys says what is wrong with the keys.
func (s Subscription) checkKeys() error {
	point, err := decode(s.P256DH, publicKeySize)
	if err != nil {
		return errors.New("keys.p256dh must be 65 bytes in base64url without padding")
	}
	if _, err := ecdh.P256().NewPublicKey(point); err != nil {
		return errors.New("keys.p256dh must be a point of P-256")
	}
	if _, err := decode(s.Auth.Reveal(), authSize); err != nil {
		return errors.New("keys.auth must be 16 bytes in base64url without padding")
	}
	return nil
}

// decode reads so many bytes of base64url without padding, and without the line breaks that the decoder would skip.
func decode(text string, size int) ([]byte, error) {
	if len(text) != base64.RawURLEncoding.EncodedLen(size) {
		return nil, errors.New("wrong length")
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err == nil && len(raw) != size {
		err = errors.New("line breaks")
	}
	return raw, err
}

// knownServices are the push services of the browsers that have one: Chrome, Edge on Android and most others; Firefox;
// Safari; Edge on Windows.
var knownServices = []string{
	"fcm.googleapis.com",
	"updates.push.services.mozilla.com", "*.push.services.mozilla.com",
	"web.push.apple.com", "*.push.apple.com",
	"*.notify.windows.com",
}

// checkService says what is wrong with the name of a push service, as [WithPushService] takes it.
func checkService(name string) error {
	host := strings.TrimPrefix(name, "*.")
	u, err := url.Parse("https://" + host)
	if err != nil || host == "" || u.Host != host || u.Hostname() == "" || u.Port() == "443" || strings.HasSuffix(host, ":") ||
		strings.ToLower(host) != host || strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r > '~' || r == '*' || r == '%' }) {
		return errors.New(`a push service is a host in lower case and, if it is not 443, a port, such as push.example.com, *.push.example.com or push.example.com:8443`)
	}
	if _, err := netip.ParseAddr(u.Hostname()); err == nil && name != host {
		return errors.New("an address has no subdomains")
	}
	return nil
}

// checkEndpoint says what is wrong with an endpoint. It quotes nothing but the host: whoever knows the rest, and the
// relay's key, can push to the browser.
func checkEndpoint(endpoint string, services []string) error {
	if len(endpoint) > maxEndpoint {
		return fmt.Errorf("the endpoint must be at most %d bytes", maxEndpoint)
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Fragment != "" || u.Opaque != "" ||
		strings.ContainsFunc(endpoint, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("the endpoint must be an https URL without credentials or fragment")
	}
	host := strings.TrimSuffix(strings.ToLower(u.Host), ":443")
	if !slices.ContainsFunc(services, func(service string) bool {
		if domain, ok := strings.CutPrefix(service, "*"); ok {
			return strings.HasSuffix(host, domain) && host != domain
		}
		return host == service
	}) {
		return fmt.Errorf("the relay does not know the push service %q: its operator can allow it", host)
	}
	return nil
}
