package answer

import (
	"cmp"
	"net/http"
)

// A Transport passes on what a server answered itself, and nothing that would
// turn it into something else:
//
//   - A Location is dropped, so that http.Client neither follows a redirect nor
//     makes an error of one that leads nowhere.
//   - A switch to another protocol (101) has no body: what net/http returns for
//     one is the connection itself, and reading that heeds no context.
type Transport struct {
	Base http.RoundTripper // nil for http.DefaultTransport
}

// RoundTrip implements http.RoundTripper.
func (t Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := cmp.Or(t.Base, http.DefaultTransport).RoundTrip(req)
	if err != nil || resp == nil {
		return resp, err
	}
	resp.Header.Del("Location")
	if resp.StatusCode == http.StatusSwitchingProtocols && resp.Body != nil {
		resp.Body.Close()
		resp.Body = http.NoBody
	}
	return resp, nil
}
