package answer

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
)

// Shorter parts of a URL, such as "v1" and "push", are no capabilities, and an error may have to say them. Neither is a
// word such as "notifications", unless it is too long for one.
const (
	leastPart  = 8  // bytes of a step of the path, of the query, or of a name in it
	leastValue = 4  // bytes of a value in the query: a "1" would be taken out of every number
	mostWord   = 19 // letters
)

// URLSecrets returns each part of a URL that may be a secret, as a server could quote it: credentials, and a path or a
// query that is a capability, as in a webhook's URL.
func URLSecrets(u *url.URL) []string {
	var secrets []string
	if u.User != nil {
		password, _ := u.User.Password()
		basic := base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password))
		secrets = append(secrets, u.User.Username(), password, u.User.String(), basic)
	}
	parts := []string{u.RawQuery}
	for step := range strings.SplitSeq(u.Path, "/") {
		if !isWord(step) {
			parts = append(parts, step)
		}
	}
	for name, values := range u.Query() {
		if !isWord(name) {
			parts = append(parts, name)
		}
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

// isWord reports whether text is letters alone: small ones, capitals, or small ones after a capital.
func isWord(text string) bool {
	small, tail := lower(text), text[min(1, len(text)):]
	return len(text) <= mostWord && strings.Trim(small, "abcdefghijklmnopqrstuvwxyz") == "" &&
		(tail == lower(tail) || text == strings.ToUpper(text))
}
