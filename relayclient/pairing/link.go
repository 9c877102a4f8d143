package pairing

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sealpush/sealpush/secret"
)

// MaxLink bounds the text of a pairing link, in bytes: [Link.At] makes no longer one, and [ParseLink] reads none.
const MaxLink = 8 << 10

// linkVersion is the member v of every link.
const linkVersion = 1

// A Link is what a phone needs in order to pair: a daemon shows it as a QR code, and the phone's camera opens it (live
// protocol, "Pairing links"). It carries the bearer token, so show it only where somebody asks for it.
type Link struct {
	Name  string      // of the daemon, as the phone shows it
	URL   string      // of the daemon's pairing API, as the phone reaches it; http or https
	Token secret.Text // the bearer token of that API; empty when it asks for none
}

// At returns the link as a URL at a relay: the origin of relayURL, /pair, and the link as its fragment, which a browser
// never sends. Credentials in relayURL are dropped. It refuses a link or a relay URL that a phone could not use, with a
// *[FieldError].
func (l Link) At(relayURL string) (string, error) {
	if err := l.check(); err != nil {
		return "", err
	}
	base, err := parseURL(relayURL)
	if err != nil {
		return "", &FieldError{Field: "relay URL", Reason: "must be an http or https URL with a host", Err: err}
	}
	return linkAt(base, "/pair", l.JSON())
}

// linkAt returns a document as the fragment of a page at the origin of base. What [ParseLink] would not read is refused.
func linkAt(base *url.URL, page, document string) (string, error) {
	text := base.Scheme + "://" + base.Host + page + "#" + base64.RawURLEncoding.EncodeToString([]byte(document))
	if len(text) > MaxLink {
		return "", &FieldError{Field: "link", Reason: fmt.Sprintf("is larger than %d bytes", MaxLink)}
	}
	return text, nil
}

// JSON returns what the link says as compact JSON, to be shown as text beside the QR code. It reveals the token. The
// URL is written as [Link.At] writes it: without credentials, query, fragment and trailing slash.
func (l Link) JSON() string {
	address, err := cleanURL(l.URL)
	if err != nil {
		address = l.URL
	}
	b := []byte(`{"v":1,"name":`)
	b = appendPrintable(b, l.Name)
	b = append(b, `,"url":`...)
	b = appendPrintable(b, address)
	b = append(b, `,"token":`...)
	b = appendPrintable(b, l.Token.Reveal())
	return string(append(b, '}'))
}

// ThisMachineOnly reports whether the URL names the machine itself (localhost or a loopback address), so that no phone
// can reach it.
func (l Link) ThisMachineOnly() bool {
	address, err := url.Parse(l.URL)
	if err != nil {
		return false
	}
	host := strings.TrimSuffix(strings.ToLower(address.Hostname()), ".")
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && (ip.Unmap().IsLoopback() || ip.IsUnspecified())
}

// ParseLink reads a link in any of its forms: the whole URL, its fragment alone, or the JSON. White space around it is
// ignored. What is wrong with it is a *[FieldError], which does not quote it.
func ParseLink(text string) (Link, error) {
	members, err := linkMembers(text)
	if err != nil {
		return Link{}, err
	}
	if members["url"] == nil && members["mailbox"] != nil {
		return Link{}, &FieldError{Field: "link", Reason: "is for a page in a browser: open it there"}
	}
	var name, address, token string
	for _, member := range []struct {
		name     string
		optional bool
		into     *string
	}{{"name", false, &name}, {"url", false, &address}, {"token", true, &token}} {
		if err := linkMember(members, member.name, member.optional, member.into); err != nil {
			return Link{}, err
		}
	}
	l := Link{Name: name, URL: address, Token: secret.New(token)}
	if err := l.check(); err != nil {
		return Link{}, err
	}
	l.URL, _ = cleanURL(l.URL)
	return l, nil
}

// linkMembers reads the JSON object of a link in any of its forms, and checks its version.
func linkMembers(text string) (map[string]json.RawMessage, error) {
	if len(text) > MaxLink {
		return nil, &FieldError{Field: "link", Reason: fmt.Sprintf("is larger than %d bytes", MaxLink)}
	}
	text = strings.TrimSpace(strings.TrimPrefix(text, "\ufeff"))
	document := []byte(text)
	if !strings.HasPrefix(text, "{") {
		if _, fragment, ok := strings.Cut(text, "#"); ok {
			text = fragment
		}
		var err error
		if document, err = base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "=")); err != nil {
			return nil, &FieldError{Field: "link", Reason: "is no pairing link: what follows the # must be base64url"}
		}
	}
	if !utf8.Valid(document) {
		return nil, &FieldError{Field: "link", Reason: "must be UTF-8"}
	}
	// A map keeps to the exact names of the members.
	var members map[string]json.RawMessage
	if json.Unmarshal(document, &members) != nil || members == nil {
		return nil, &FieldError{Field: "link", Reason: "is no pairing link: it must hold a JSON object"}
	}
	var version float64
	if json.Unmarshal(members["v"], &version) != nil || version != linkVersion {
		return nil, &FieldError{Field: "v", Reason: fmt.Sprintf("must be %d: this link is of another version", linkVersion)}
	}
	return members, nil
}

// linkMember reads a member that must be a string. One that is optional may be absent.
func linkMember(members map[string]json.RawMessage, name string, optional bool, into *string) error {
	raw, given := members[name]
	if !given && optional {
		return nil
	}
	if bytes.Equal(raw, []byte("null")) || json.Unmarshal(raw, into) != nil {
		return &FieldError{Field: name, Reason: "must be a string"}
	}
	return nil
}

func (l Link) check() error {
	for _, text := range []struct{ field, value string }{{"name", l.Name}, {"url", l.URL}, {"token", l.Token.Reveal()}} {
		if !utf8.ValidString(text.value) {
			return &FieldError{Field: text.field, Reason: "must be UTF-8"}
		}
	}
	if _, err := cleanURL(l.URL); err != nil {
		return &FieldError{Field: "url", Reason: "must be an http or https URL that a phone can reach, such as https://daemon.lan:8080", Err: err}
	}
	return nil
}

// cleanURL returns a URL with its scheme, host, port and path alone, the path percent-encoded and without a trailing
// slash.
func cleanURL(text string) (string, error) {
	u, err := parseURL(text)
	if err != nil {
		return "", err
	}
	return strings.TrimRight(u.Scheme+"://"+u.Host+u.EscapedPath(), "/"), nil
}

// parseURL refuses a URL that leads to no server. Its errors do not quote the URL, which may hold a password.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || !utf8.ValidString(text) {
		return nil, errors.New("it is no URL")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the scheme must be http or https")
	}
	if u.Hostname() == "" || strings.ContainsFunc(u.Host, func(r rune) bool { return r == '%' || unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return nil, errors.New("the host is missing, or has spaces, control characters or a zone in it")
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, errors.New("the port must be 1 to 65535")
		}
	}
	return u, nil
}

// appendPrintable appends a JSON string in raw UTF-8. What does not print is escaped, as the deployed daemon does.
func appendPrintable(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch {
		case r == '"', r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\b':
			b = append(b, `\b`...)
		case r == '\f':
			b = append(b, `\f`...)
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case unicode.IsPrint(r):
			b = utf8.AppendRune(b, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			b = fmt.Appendf(b, `\u%04x\u%04x`, high, low)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return append(b, '"')
}
