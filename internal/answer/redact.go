package answer

import "strings"

// pieceSize is how long a common piece of a text and a secret is taken for a
// quotation of it, in bytes.
const pieceSize = 8

const placeholder = "[redacted]"

// tokenSize is how long a run of hex digits is taken for a device token, the
// shortest that a relay routes. A relay may quote another phone's.
const tokenSize = 16

// Redact replaces in text each piece of a secret of at least pieceSize bytes,
// whatever its case, each whole secret that is shorter, and each run of hex
// digits that could be a device token.
func Redact(text string, secrets ...string) string {
	lowered := make([]string, 0, len(secrets))
	for _, s := range secrets {
		if s != "" {
			lowered = append(lowered, lower(s))
		}
	}
	haystack := lower(text)
	var out strings.Builder
	for i := 0; i < len(text); {
		if n := max(longestPiece(haystack[i:], lowered), hexRun(haystack[i:])); n > 0 {
			out.WriteString(placeholder)
			i += n
			continue
		}
		out.WriteByte(text[i])
		i++
	}
	return out.String()
}

// longestPiece returns the length of the longest piece of a secret at the start
// of text, or 0.
func longestPiece(text string, secrets []string) int {
	longest := 0
	for _, secret := range secrets {
		n := min(pieceSize, len(secret))
		for n <= len(text) && strings.Contains(secret, text[:n]) {
			longest = max(longest, n)
			n++
		}
	}
	return longest
}

// hexRun returns the length of the run of hex digits at the start of text, or 0
// if it is too short for a device token.
func hexRun(text string) int {
	n := len(text) - len(strings.TrimLeft(text, "0123456789abcdef"))
	if n < tokenSize {
		return 0
	}
	return n
}

// lower lowers ASCII letters only, so that offsets stay those of s.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
