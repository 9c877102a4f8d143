// Package baseurl reads the base URL of a service from a configuration.
package baseurl

import (
	"errors"
	"net/url"
)

// Parse returns raw as the base URL of an HTTP service. It may end in a slash and may have a path.
//
// It refuses what cannot be called (a scheme other than http and https, no host) and what would be lost or leaked
// when a path is added and errors are printed: user info, a query, a fragment. No error quotes raw.
func Parse(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return nil, errors.New("is not a valid URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("must start with https:// or http://")
	case u.Hostname() == "":
		return nil, errors.New("has no host")
	case u.User != nil:
		return nil, errors.New("must carry no user name or password")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("must carry no query and no fragment")
	}
	return u, nil
}
