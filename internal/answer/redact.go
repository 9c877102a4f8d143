package answer

import "strings"

// pieceSize is how long a common piece of a text and a secret is taken for a
// quotation of it, in bytes.
const pieceSize = 8

const placeholder = "[redacted]"

// tokenSize is how long a run of hex digits is taken for a device token, the
// shortest that a relay routes. A relay may quote another phone's.
const tokenSize = 16

// opaqueSize is how long a run of the characters of base64url, and of the colon
// that FCM puts between two of them, is taken for a token of some kind: FCM's
// have 100 and more, the parts of a JWT nearly as many, a UUID has 36.
const opaqueSize = 40

// leastSecret is the shortest secret that is looked for, in bytes. Taking out
// every "e" would leave nothing to read, and tell what the secret was.
const leastSecret = 3

// redact replaces in text each piece of a secret of at least pieceSize bytes,
// whatever its case, each whole secret that is shorter, and each run of
// characters that could be a device token or a JWT. It drops what begins at end or later.
func redact(text string, end int, secrets []string) string {
	lowered := make([]string, 0, len(secrets))
	for _, s := range secrets {
		if len(s) >= leastSecret {
			lowered = append(lowered, lower(s))
		}
	}
	haystack := lower(text)
	var out strings.Builder
	for i := 0; i < end; {
		if n := max(longestPiece(haystack[i:], lowered), tokenRun(haystack[i:])); n > 0 {
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

// tokenRun returns the length of the run of hex digits or base64url characters
// at the start of text, or 0 if both are too short for a token.
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
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}
