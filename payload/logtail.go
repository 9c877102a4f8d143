package payload

import "slices"

// MaxLogLines is the largest number of lines that an alert carries.
const MaxLogLines = 40

// LogTail returns the last [MaxLogLines] lines of captured output, oldest first, without their line ends. Lines end
// where Python's str.splitlines ends them: at \n, \r, \r\n, \v, \f, the separators U+001C to U+001E, U+0085, U+2028 and
// U+2029. A line end at the very end of the output starts no further line. Without output the result is nil.
//
// The scan starts at the end and stops after 40 lines, however long the output is. The lines share captured's memory,
// so they keep all of it alive.
func LogTail(captured string) []string {
	if captured == "" {
		return nil
	}
	var tail [MaxLogLines]string
	first := len(tail)
	rest := captured[:len(captured)-lineEnd(captured)]
	for first > 0 {
		start := lineStart(rest)
		first--
		tail[first] = rest[start:]
		if start == 0 {
			break
		}
		rest = rest[:start]
		rest = rest[:len(rest)-lineEnd(rest)]
	}
	return slices.Clone(tail[first:])
}

// lineStart returns where the last line of s starts: after the last line end, or at 0.
func lineStart(s string) int {
	for i := len(s); i > 0; i-- {
		if c := s[i-1]; ' ' <= c && c <= '~' {
			continue
		}
		if lineEnd(s[:i]) > 0 {
			return i
		}
	}
	return 0
}

// lineEnd returns the length in bytes of the line end that s ends with, or 0. UTF-8 can be read backwards here: the
// lead bytes 0xC2 and 0xE2 never occur inside another character.
func lineEnd(s string) int {
	n := len(s)
	if n == 0 {
		return 0
	}
	switch s[n-1] {
	case '\n':
		if n > 1 && s[n-2] == '\r' {
			return 2
		}
		return 1
	case '\r', '\v', '\f', 0x1c, 0x1d, 0x1e:
		return 1
	case 0x85: // U+0085
		if n > 1 && s[n-2] == 0xc2 {
			return 2
		}
	case 0xa8, 0xa9: // U+2028, U+2029
		if n > 2 && s[n-3] == 0xe2 && s[n-2] == 0x80 {
			return 3
		}
	}
	return 0
}
