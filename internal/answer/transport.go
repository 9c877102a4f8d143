package answer

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"
)

// A Transport passes on what a server answered itself, and nothing that would turn it into something else:
//
//   - A Location is put where only [LeadsTo] looks, so that http.Client neither follows a redirect nor makes an error
//     of one that leads nowhere.
//   - A switch to another protocol (101) has no body: what net/http returns for one is the connection itself, and a
//     read of that does not end with the context.
type Transport struct {
	Base http.RoundTripper // nil for http.DefaultTransport
}

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := cmp.Or(t.Base, http.DefaultTransport).RoundTrip(req)
	if err != nil || resp == nil {
		return resp, err
	}
	if location := resp.Header.Get("Location"); location != "" {
		resp.Header.Del("Location")
		resp.Header[leadsTo] = []string{location}
	}
	if resp.StatusCode == http.StatusSwitchingProtocols && resp.Body != nil {
		resp.Body.Close()
		resp.Body = http.NoBody
	}
	return resp, nil
}

// leadsTo is no header's name, so that no server can send it.
const leadsTo = "Location:"

// LeadsTo returns the URL that a redirect leads to, fit to be printed: without user, query, fragment and secrets, at
// most [MaxText] bytes. It is "" when resp is no redirect or does not lead to a URL of http or https.
func LeadsTo(resp *http.Response, secrets ...string) string {
	location := cmp.Or(strings.Join(resp.Header[leadsTo], ""), resp.Header.Get("Location"))
	if resp.StatusCode/100 != 3 || location == "" {
		return ""
	}
	u, err := url.Parse(location)
	if err == nil && resp.Request != nil && resp.Request.URL != nil {
		u = resp.Request.URL.ResolveReference(u)
	}
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	bare := url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	return Line(bare.String(), secrets...)
}
