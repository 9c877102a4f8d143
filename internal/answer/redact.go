package answer

import (
	"encoding/base64"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const placeholder = "[redacted]"

// tokenSize is how long a run of hex digits is taken for a device token, the shortest that a relay routes. A relay may
// quote another phone's.
const tokenSize = 16

// opaqueSize is how long a run of the characters of base64url, and of the colon that FCM puts between two of them, is
// taken for a token of some kind: FCM's have 100 and more, the parts of a JWT nearly as many, a UUID has 36.
const opaqueSize = 40

// leastSecret is the shortest secret that is looked for, in bytes. Taking out every "e" would leave nothing to read,
// and tell what the secret was.
const leastSecret = 3

// leastUnmistakable is how long a secret is looked for within words too, in bytes. A user called "push" is none of
// "pushed".
const leastUnmistakable = 8

// redact replaces in text each whole secret, in whatever case and encoding (see stands), and each run of characters
// that could be a device token or a JWT. It drops what begins at end or later; where that is before the end of the
// text, the text may be cut within a secret, and the start of one there is replaced too.
func redact(text string, end int, secrets []string) string {
	patterns := patternsOf(secrets)
	haystack := lower(text)
	cut := end < len(text)
	var out strings.Builder
	for i := 0; i < end; {
		if n := max(longestSecret(haystack, i, cut, patterns), tokenRun(haystack[i:])); n > 0 {
			out.WriteString(placeholder)
			i += n
			continue
		}
		out.WriteByte(text[i])
		i++
	}
	return out.String()
}

// patternsOf returns what is looked for, in lower case: the secrets, and what base64 makes of them.
func patternsOf(secrets []string) []string {
	var patterns []string
	for _, secret := range secrets {
		if len(secret) < leastSecret {
			continue
		}
		patterns = append(patterns, lower(secret))
		whole := base64.RawStdEncoding.EncodeToString([]byte(secret))
		for _, encoded := range []string{whole, base64Of(secret, 0), base64Of(secret, 1), base64Of(secret, 2)} {
			if len(encoded) >= leastUnmistakable {
				encoded = lower(encoded)
				patterns = append(patterns, encoded, strings.NewReplacer("+", "-", "/", "_").Replace(encoded))
			}
		}
	}
	return patterns
}

// base64Of returns the characters of base64 that depend on secret alone when so many bytes stand before it, modulo 3,
// and anything behind it.
func base64Of(secret string, before int) string {
	encoded := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", before) + secret))
	if (before+len(secret))%3 != 0 {
		encoded = encoded[:len(encoded)-1]
	}
	return encoded[min((before*8+5)/6, len(encoded)):]
}

// longestSecret returns the length of the longest pattern that stands in text at i, or 0. In a text that was cut, a
// pattern may go on behind its end.
func longestSecret(text string, i int, cut bool, patterns []string) int {
	longest := 0
	for _, pattern := range patterns {
		if c := text[i]; c != pattern[0] && c != '%' && c != '\\' {
			continue
		}
		n, whole := stands(pattern, text[i:])
		switch {
		case !whole && (!cut || i+n < len(text)):
		case whole && len(pattern) < leastUnmistakable && withinWord(text, i, i+n):
		default:
			longest = max(longest, n)
		}
	}
	return longest
}

// withinWord reports whether text[i:j] is part of a longer word.
func withinWord(text string, i, j int) bool {
	const word = "0123456789abcdefghijklmnopqrstuvwxyz"
	both := func(k int) bool {
		return k > 0 && k < len(text) && strings.IndexByte(word, text[k-1]) >= 0 && strings.IndexByte(word, text[k]) >= 0
	}
	return both(i) || both(j)
}

// stands compares pattern with the start of text, character by character, each of which may stand there as it is,
// percent-encoded (a space as a plus, too), or escaped as in JSON. It returns how many bytes of text are like it, and
// whether that is the whole pattern. Both are in lower case.
func stands(pattern, text string) (n int, whole bool) {
	for pattern != "" {
		r, size := utf8.DecodeRuneInString(pattern)
		length := character(pattern[:size], r, text[n:])
		if length == 0 {
			if rest := text[n:]; rest != "" && len(rest) < len(`\u1234\u1234`) && (rest[0] == '%' || rest[0] == '\\') {
				n = len(text) // an escape sequence that the end of the text may have cut
			}
			return n, false
		}
		n += length
		pattern = pattern[size:]
	}
	return n, true
}

// character returns how many bytes of text at its start stand for the character r, which is raw in UTF-8, or 0.
func character(raw string, r rune, text string) int {
	switch {
	case strings.HasPrefix(text, raw):
		return len(raw)
	case text == "":
		return 0
	case text[0] == '+' && r == ' ':
		return 1
	case text[0] == '%':
		for i := range len(raw) {
			code, ok := hexadecimal(text, 3*i, "%", 2)
			if !ok || lowerRune(code) != rune(raw[i]) {
				return 0
			}
		}
		return 3 * len(raw)
	case strings.HasPrefix(text, `\u`):
		code, ok := hexadecimal(text, 0, `\u`, 4)
		if low, pair := hexadecimal(text, 6, `\u`, 4); pair && utf16.DecodeRune(code, low) == r {
			return 12
		}
		if ok && lowerRune(code) == r {
			return 6
		}
	case text[0] == '\\' && strings.HasPrefix(text[1:], raw):
		return 1 + len(raw)
	}
	return 0
}

// hexadecimal reads the number of so many digits that follows prefix in text at i.
func hexadecimal(text string, i int, prefix string, digits int) (code rune, ok bool) {
	if i > len(text) || !strings.HasPrefix(text[i:], prefix) {
		return 0, false
	}
	text = text[i+len(prefix):]
	if len(text) < digits {
		return 0, false
	}
	n, err := strconv.ParseUint(text[:digits], 16, 32)
	return rune(n), err == nil
}

// tokenRun returns the length of the run of hex digits or base64url characters at the start of text, or 0 if both are
// too short for a token.
func tokenRun(text string) int {
	const hex = "0123456789abcdef"
	if n := run(text, hex+"ghijklmnopqrstuvwxyz-_:"); n >= opaqueSize {
		return n
	}
	if n := run(text, hex); n >= tokenSize {
		return n
	}
	return 0
}

func run(text, characters string) int { return len(text) - len(strings.TrimLeft(text, characters)) }

// lower lowers ASCII letters only, so that offsets stay those of s.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		b[i] = byte(lowerRune(rune(c)))
	}
	return string(b)
}

func lowerRune(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		return r + 'a' - 'A'
	}
	return r
}
