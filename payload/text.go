package payload

import "unicode/utf8"

const hexDigits = "0123456789abcdef"

// textSize returns how many bytes appendText adds for s, without encoding it. It is never less than len(s)+2.
func textSize(s string) int {
	size := len(s) + len(`""`)
	for i := plainEnd(s, 0); i < len(s); i = plainEnd(s, i) {
		if s[i] < utf8.RuneSelf {
			size += escapeSize(s[i]) - 1
			i++
			continue
		}
		for i < len(s) && s[i] >= utf8.RuneSelf {
			_, n := utf8.DecodeRuneInString(s[i:])
			if n == 1 {
				size += len("\uFFFD") - 1
			}
			i += n
		}
	}
	return size
}

// appendText appends s as a JSON string in raw UTF-8, with only what JSON demands escaped and U+FFFD for every byte
// that is not part of valid UTF-8. encoding/json cannot write this form: it escapes U+2028 and U+2029 with every
// setting.
func appendText(b []byte, s string) []byte {
	b = append(b, '"')
	start := 0 // of what is still to be copied as it stands
	for i := plainEnd(s, 0); i < len(s); i = plainEnd(s, i) {
		if s[i] < utf8.RuneSelf {
			b = append(b, s[start:i]...)
			b = appendEscape(b, s[i])
			i++
			start = i
			continue
		}
		for i < len(s) && s[i] >= utf8.RuneSelf {
			_, n := utf8.DecodeRuneInString(s[i:])
			if n == 1 {
				b = append(b, s[start:i]...)
				b = append(b, "\uFFFD"...)
				start = i + 1
			}
			i += n
		}
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}

// plainEnd returns the index of the first byte of s at or after i that is not ASCII or has to be escaped, or len(s).
func plainEnd(s string, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(s); i += 8 {
		// Eight bytes at once: a top bit is left where a byte is 0x80 or more, below 0x20, a quote or a backslash. A
		// borrow can only spoil the bytes above one that has already been found.
		w := s[i : i+8]
		x := uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 |
			uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
		if (x|(x-' '*ones)|((x^'"'*ones)-ones)|((x^'\\'*ones)-ones))&tops != 0 {
			break
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			break
		}
	}
	return i
}

// shortForm returns the letter of c's two-character escape, or 0 if it has none.
func shortForm(c byte) byte {
	switch c {
	case '"', '\\':
		return c
	case '\b':
		return 'b'
	case '\t':
		return 't'
	case '\n':
		return 'n'
	case '\f':
		return 'f'
	case '\r':
		return 'r'
	}
	return 0
}

func escapeSize(c byte) int {
	if shortForm(c) != 0 {
		return len(`\n`)
	}
	return len(`\u0000`)
}

// appendEscape appends the escape of the ASCII character c.
func appendEscape(b []byte, c byte) []byte {
	if short := shortForm(c); short != 0 {
		return append(b, '\\', short)
	}
	return appendUnit(b, uint16(c))
}

// appendUnit appends the \uxxxx escape of a UTF-16 code unit.
func appendUnit(b []byte, u uint16) []byte {
	return append(b, '\\', 'u', hexDigits[u>>12], hexDigits[u>>8&15], hexDigits[u>>4&15], hexDigits[u&15])
}
