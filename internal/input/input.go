// Package input reads what a person has typed or pasted into a configuration.
package input

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

const byteOrderMark = '\uFEFF'

// Text returns raw without the white space, line ends and byte order marks around it, which an editor, a shell or a
// copied cell of a table adds. White space and control characters inside, and what is not UTF-8, are an error: a
// service would answer 401 to it and not say why. No error quotes raw.
func Text(raw string) (string, error) {
	text := strings.TrimFunc(raw, func(r rune) bool { return unicode.IsSpace(r) || r == byteOrderMark })
	if !utf8.ValidString(text) {
		return "", errors.New("is not UTF-8")
	}
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			return "", fmt.Errorf("has white space inside (%U)", r)
		case unicode.In(r, unicode.Cc, unicode.Cf): // Cf: what does not show, as a zero width space
			return "", fmt.Errorf("has a control character inside (%U)", r)
		}
	}
	return text, nil
}

// BaseURL returns raw, cleaned as by [Text], as the base URL of an HTTP service. It may end in a slash and may have a
// path.
//
// It refuses what cannot be called (a scheme other than http and https, no host) and what would be lost or leaked when
// a path is added and errors are printed: user info, a query, a fragment. No error quotes raw.
func BaseURL(raw string) (*url.URL, error) {
	text, err := Text(raw)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(text)
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
