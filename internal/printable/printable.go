// Package printable makes what a stranger's server said fit for a log line.
package printable

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s on one line and at most max bytes long: white space is collapsed, other characters that do not print
// and bytes that are not UTF-8 become U+FFFD, and what was cut off is marked by an ellipsis. Each of the secrets, plain or as JSON
// spells it, is replaced before anything is cut, so that no half of one survives at the end.
func Text(s string, max int, secrets ...string) string {
	for _, secret := range secrets {
		s = replaceSecret(s, secret)
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return utf8.RuneError
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	return cut(s, max)
}

const redacted = "[redacted]"

func replaceSecret(s, secret string) string {
	if secret == "" {
		return s
	}
	s = strings.ReplaceAll(s, secret, redacted)
	if quoted, err := json.Marshal(secret); err == nil {
		s = strings.ReplaceAll(s, string(quoted[1:len(quoted)-1]), redacted)
	}
	return s
}

func cut(s string, max int) string {
	const ellipsis = "…"
	if len(s) <= max {
		return s
	}
	end := max - len(ellipsis)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + ellipsis
}
