package answer

import "strings"

// pieceSize is how long a common piece of a text and a secret is taken for a
// quotation of it, in bytes.
const pieceSize = 8

const placeholder = "[redacted]"

// Redact replaces in text each piece of a secret of at least pieceSize bytes,
// whatever its case, and each whole secret that is shorter.
func Redact(text string, secrets ...string) string {
	lowered := make([]string, 0, len(secrets))
	for _, s := range secrets {
		if s != "" {
			lowered = append(lowered, lower(s))
		}
	}
	if len(lowered) == 0 {
		return text
	}
	haystack := lower(text)
	var out strings.Builder
	for i := 0; i < len(text); {
		if n := longestPiece(haystack[i:], lowered); n > 0 {
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
