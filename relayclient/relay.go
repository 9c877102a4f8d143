package relayclient

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/sealpush/sealpush/internal/answer"
	"github.com/sealpush/sealpush/internal/input"
)

// relay is where envelopes go.
type relay struct {
	url           string // without credentials and fragment
	authorization string // value of the header, or empty
	display       string // scheme and host: what may be printed
	secrets       []string
}

// errRelayURL has no cause, because net/url quotes what it cannot parse, and that may be a password.
var errRelayURL = errors.New("relayclient: the relay URL is not usable: it must look like https://relay.example/path, with http or https and a host (and with special characters in credentials percent-encoded)")

// maxURL bounds the URL, in bytes, as servers do (RFC 9110, section 4.1), and so the secrets in it.
const maxURL = 8000

func parseRelay(raw string) (*relay, error) {
	text, err := input.Text(raw)
	if err != nil {
		return nil, fmt.Errorf("relayclient: the relay URL %w", err)
	}
	u, err := url.Parse(text)
	if err != nil || len(text) > maxURL || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || !isPort(u.Port()) {
		return nil, errRelayURL
	}
	r := &relay{display: u.Scheme + "://" + u.Host, secrets: answer.URLSecrets(u)}
	if u.User != nil {
		password, _ := u.User.Password()
		r.authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
	}
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	r.url = u.String()
	return r, nil
}

func isPort(port string) bool {
	_, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil
}

func (r *relay) setHeaders(h http.Header) {
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "sealpush")
	if r.authorization != "" {
		h.Set("Authorization", r.authorization)
	}
}
