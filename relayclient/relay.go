package relayclient

import (
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"
)

// relay is where envelopes go.
type relay struct {
	url           string // without credentials and fragment
	authorization string // value of the header, or empty
	display       string // scheme and host: what may be printed
	secrets       []string
}

// errRelayURL has no cause, because net/url quotes what it cannot parse, and
// that may be a password.
var errRelayURL = errors.New("relayclient: the relay URL is not usable: it must look like https://relay.example/path, with http or https and a host (and with special characters in credentials percent-encoded)")

func parseRelay(text string) (relay, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" {
		return relay{}, errRelayURL
	}
	r := relay{display: u.Scheme + "://" + u.Host}
	if u.User != nil {
		password, _ := u.User.Password()
		credentials := base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password))
		r.authorization = "Basic " + credentials
		r.secrets = append(r.secrets, u.User.Username(), password, u.User.String(), credentials)
	}
	// A path or a query can be a capability, as in a webhook's URL.
	for _, part := range append(strings.Split(u.EscapedPath(), "/"), u.RawQuery) {
		if len(part) >= 8 {
			r.secrets = append(r.secrets, part)
		}
	}
	for _, values := range u.Query() {
		for _, value := range values {
			if len(value) >= 4 { // a "1" is no secret, and would be taken out of every number
				r.secrets = append(r.secrets, value)
			}
		}
	}
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	r.url = u.String()
	return r, nil
}

func (r relay) setHeaders(h http.Header) {
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "sealpush")
	if r.authorization != "" {
		h.Set("Authorization", r.authorization)
	}
}
