package pairing

import (
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// A WebLink is what a page needs in order to be paired through a relay's mailbox (docs/protocol.md, "Pairing through
// the relay"). The page seals its pairing request to Key and leaves it in the mailbox, where the program that made the
// link waits for it. Whoever has the link can be there first, so the person compares fingerprints; and Invitation is a
// secret. Show the link only where somebody asks for it.
//
// A link with an Invitation and without Mailbox and Key lets a page subscribe to the relay, and pairs it with nobody.
type WebLink struct {
	Name       string         // of the daemon, as the page shows it
	Mailbox    string         // id: 32 lower-case hexadecimal digits
	Key        seal.PublicKey // of this pairing alone, of the suite X25519
	Relay      string         // origin of the relay, when that is not the page's own; empty otherwise
	Invitation secret.Text    // what the relay asks of a browser that subscribes; empty for none
}

// At returns the link as a URL of the page: the origin of pageURL, /phone, and the link as its fragment, which a
// browser never sends. Credentials in pageURL are dropped. It refuses a link or a page URL that a page could not use,
// with a *[FieldError].
func (l WebLink) At(pageURL string) (string, error) {
	if err := l.check(); err != nil {
		return "", err
	}
	base, err := parseURL(pageURL)
	if err != nil {
		return "", &FieldError{Field: "page URL", Reason: "must be an http or https URL with a host", Err: err}
	}
	return linkAt(base, "/phone", l.JSON())
}

// JSON returns what the link says as compact JSON, without the members that are empty. It reveals the invitation.
func (l WebLink) JSON() string {
	key := ""
	if !l.Key.IsZero() {
		key = l.Key.String()
	}
	b := []byte(`{"v":1`)
	for _, member := range []struct{ name, value string }{
		{"name", l.Name}, {"mailbox", l.Mailbox}, {"key", key}, {"relay", l.Relay}, {"invitation", l.Invitation.Reveal()},
	} {
		if member.value != "" {
			b = append(b, `,"`+member.name+`":`...)
			b = appendPrintable(b, member.value)
		}
	}
	return string(append(b, '}'))
}

// ParseWebLink reads a link in any of its forms: the whole URL, its fragment alone, or the JSON. White space around it
// is ignored. What is wrong with it is a *[FieldError], which does not quote it.
func ParseWebLink(text string) (WebLink, error) {
	members, err := linkMembers(text)
	if err != nil {
		return WebLink{}, err
	}
	if members["mailbox"] == nil && members["url"] != nil {
		return WebLink{}, &FieldError{Field: "link", Reason: "is to a pairing API, and names no mailbox"}
	}
	var l WebLink
	var key, invited string
	for _, member := range []struct {
		name string
		into *string
	}{{"name", &l.Name}, {"mailbox", &l.Mailbox}, {"key", &key}, {"relay", &l.Relay}, {"invitation", &invited}} {
		if err := linkMember(members, member.name, true, member.into); err != nil {
			return WebLink{}, err
		}
	}
	l.Invitation = secret.New(invited)
	if key != "" {
		if l.Key, err = seal.ParsePublicKey(key); err != nil {
			return WebLink{}, &FieldError{Field: "key", Reason: "must be a base64 x25519 public key of 32 bytes", Err: err}
		}
	}
	if err := l.check(); err != nil {
		return WebLink{}, err
	}
	return l, nil
}

var mailboxID = regexp.MustCompile(`^[0-9a-f]{32}$`)

// isInvitation reports whether a header can carry it. A regular expression that counts to 512 would take every program
// a millisecond to compile.
func isInvitation(text string) bool {
	return len(text) <= 512 && !strings.ContainsFunc(text, func(r rune) bool { return r < '!' || r > '~' })
}

func (l WebLink) check() error {
	if !utf8.ValidString(l.Name) {
		return &FieldError{Field: "name", Reason: "must be UTF-8"}
	}
	if !isInvitation(l.Invitation.Reveal()) {
		return &FieldError{Field: "invitation", Reason: "must be at most 512 characters of ASCII, without spaces: the page sends it in a header"}
	}
	if l.Relay != "" && !isOrigin(l.Relay) {
		return &FieldError{Field: "relay", Reason: "must be an origin, such as https://relay.example.com, and http only where that is this machine"}
	}
	if l.Mailbox == "" && l.Key.IsZero() && !l.Invitation.IsZero() {
		return nil // to subscribe only
	}
	switch {
	case l.Name == "":
		return &FieldError{Field: "name", Reason: "must be a non-empty string"}
	case !mailboxID.MatchString(l.Mailbox):
		return &FieldError{Field: "mailbox", Reason: "must be 32 lower-case hexadecimal digits"}
	case l.Key.IsZero():
		return missingKey("key")
	case l.Key.Suite() != seal.X25519:
		return &FieldError{Field: "key", Reason: "must be of the suite x25519", Err: seal.ErrUnknownSuite}
	}
	return nil
}

// isOrigin reports whether a page may call a relay of this origin: pages are served over https, and may not call http
// but on their own machine.
func isOrigin(text string) bool {
	u, err := parseURL(text)
	if err != nil || text != (&url.URL{Scheme: u.Scheme, Host: u.Host}).String() {
		return false
	}
	return u.Scheme == "https" || Link{URL: text}.ThisMachineOnly()
}
