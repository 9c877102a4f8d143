package answer

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
)

// Shorter parts of a URL, such as "v1" and "push", are no capabilities, and an
// error may have to say them.
const (
	leastPart  = 8 // bytes of a step of the path, or of the query's name
	leastValue = 4 // bytes of a value in the query: a "1" would be taken out of every number
)

// URLSecrets returns each part of a URL that may be a secret, as a server could
// quote it: credentials, and a path or a query that is a capability, as in a
// webhook's URL.
func URLSecrets(u *url.URL) []string {
	var secrets []string
	if u.User != nil {
		password, _ := u.User.Password()
		basic := base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password))
		secrets = append(secrets, u.User.Username(), password, u.User.String(), basic)
	}
	parts := append(strings.Split(u.EscapedPath(), "/"), strings.Split(u.Path, "/")...)
	parts = append(parts, u.RawQuery)
	for name, values := range u.Query() {
		parts = append(parts, name)
		for _, value := range values {
			if len(value) >= leastValue {
				secrets = append(secrets, value)
			}
		}
	}
	for _, part := range parts {
		if len(part) >= leastPart {
			secrets = append(secrets, part)
		}
	}
	slices.Sort(secrets)
	return slices.Compact(secrets)
}
