package payload

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// CleanOutput returns what a program wrote as a person would read it, for [LogTail]. A wrapper that captures output
// calls it first, so that the few lines on the phone show the cause:
//
//   - UTF-16, as PowerShell writes it, becomes UTF-8, with or without a byte order mark.
//   - NULs, colours and other control sequences of terminals (ECMA-48) are removed; so are control characters, except
//     tabs.
//   - Of a line that a program drew again and again over itself (by carriage returns, backspaces, or by moving the
//     cursor up), the last state stays.
//   - White space at the ends of lines, and blank lines at both ends of the output, are removed. Of several blank lines
//     in a row one stays.
//
// Lines end in \n. The output may be cut anywhere at its start, in the middle of a character too. The deployed daemon
// does none of this; [LogTail] alone gives the lines that it sends.
func CleanOutput(raw []byte) string {
	s := screen{rows: make([][]byte, 1)}
	s.output = decodeOutput(raw)
	s.write()
	return s.text()
}

// decodeOutput returns output as UTF-8. A tail that was cut from UTF-16 has lost its byte order mark; it is recognised
// by the NUL beside each ASCII character.
func decodeOutput(raw []byte) string {
	switch {
	case bytes.HasPrefix(raw, []byte{0xff, 0xfe}):
		return decodeUTF16(raw[2:], binary.LittleEndian)
	case bytes.HasPrefix(raw, []byte{0xfe, 0xff}):
		return decodeUTF16(raw[2:], binary.BigEndian)
	}
	var nuls [2]int // at even and at odd offsets
	for i, c := range raw {
		if c == 0 {
			nuls[i%2]++
		}
	}
	// It is UTF-16 when two thirds of the characters are ASCII, so that one of their two bytes is a NUL, and the other
	// is hardly ever one.
	often, seldom := max(nuls[0], nuls[1]), min(nuls[0], nuls[1])
	if often*3 > len(raw) && seldom*20 < often {
		first := 0
		if nuls[0] > nuls[1] {
			first = 1 // cut in the middle of a character
		}
		return decodeUTF16(raw[first:], binary.LittleEndian)
	}
	for i := 0; i < min(len(raw), utf8.UTFMax) && !utf8.RuneStart(raw[0]); i++ {
		raw = raw[1:] // the rest of a character that was cut
	}
	return strings.TrimPrefix(string(raw), "\ufeff")
}

func decodeUTF16(raw []byte, order binary.ByteOrder) string {
	units := make([]uint16, len(raw)/2)
	for i := range units {
		units[i] = order.Uint16(raw[2*i:])
	}
	return string(utf16.Decode(units))
}

// A screen is what output leaves on an endless terminal that starts a row only at a line end.
type screen struct {
	output string
	rows   [][]byte
	at     int  // the row that is written to
	again  bool // what comes next is drawn over the row

	stringEnd int // where in output the latest control string ended that was looked for; none ends between
}

const (
	escape      = '\x1b'
	maxForward  = 200  // columns that a cursor may skip
	maxSequence = 4096 // bytes
)

func (s *screen) write() {
	for i := 0; i < len(s.output); {
		r, n := utf8.DecodeRuneInString(s.output[i:])
		if r == escape || r == '\u009b' {
			i += s.control(i)
			continue
		}
		i += n
		switch {
		case r == '\n', r == '\v', r == '\f', r == '\u0085':
			s.move(1)
			s.again = false
		case r == '\r':
			s.again = true
		case r == '\b':
			_, n := utf8.DecodeLastRune(s.rows[s.at])
			s.rows[s.at] = s.rows[s.at][:len(s.rows[s.at])-n]
		case r == '\t' || !unicode.IsControl(r):
			s.put(r)
		}
	}
}

// put writes a character. White space alone does not draw over a row: a program that wipes a line with blanks and
// writes nothing after them leaves the line as it was.
func (s *screen) put(r rune) {
	if s.again && !unicode.IsSpace(r) {
		s.clear()
		s.again = false
	}
	if !s.again {
		s.rows[s.at] = utf8.AppendRune(s.rows[s.at], r)
	}
}

func (s *screen) clear() { s.rows[s.at] = s.rows[s.at][:0] }

// move goes n rows down. A negative n goes up.
func (s *screen) move(n int) {
	s.at = max(0, s.at+n)
	if s.at >= len(s.rows) {
		s.at = len(s.rows)
		s.rows = append(s.rows, nil)
	}
}

// control carries out the control sequence at an offset in the output, if it moves the cursor or erases, and ignores it
// otherwise. It returns the length of the sequence in bytes (ECMA-48, sections 5.3 to 5.6).
func (s *screen) control(at int) int {
	text := s.output[at:min(len(s.output), at+maxSequence)]
	rest, isCSI := strings.CutPrefix(text, "\u009b")
	if !isCSI {
		rest, isCSI = strings.CutPrefix(text, "\x1b[")
	}
	start := len(text) - len(rest)
	switch {
	case !isCSI && len(text) > 1 && strings.Contains("]PX^_", text[1:2]): // OSC, DCS, SOS, PM, APC
		return s.controlString(at)
	case !isCSI:
		return escapeLength(text)
	}
	final := strings.IndexFunc(rest, func(r rune) bool { return r < ' ' || r > '?' })
	if final < 0 {
		return len(text) // cut off
	}
	if rest[final] < '@' || rest[final] > '~' {
		return start + final // not a valid sequence: what follows is text
	}
	n := 0
	for _, digit := range rest[:final] {
		if digit < '0' || digit > '9' {
			break
		}
		n = min(n*10+int(digit-'0'), 1<<16)
	}
	count := max(1, n)
	switch rest[final] {
	case 'A', 'F': // up; up, to the first column
		s.move(-count)
		s.again = true
	case 'B', 'E': // down
		s.move(min(count, len(s.rows)-1-s.at))
		s.again = true
	case 'C': // forward
		for range min(count, maxForward) {
			s.put(' ')
		}
	case 'G': // to a column
		s.again = s.again || count == 1
	case 'K': // erase in the row
		if n != 0 || s.again {
			s.clear()
		}
	case 'J': // erase in the display, from here on
		if n == 0 {
			s.rows = slices.Delete(s.rows, s.at+1, len(s.rows))
			if s.again {
				s.clear()
			}
		}
	}
	return start + final + 1
}

// controlString returns the length in bytes of the control string at an offset in the output, up to its terminator. One
// that has none in its line is none: then it is the length of what introduces it.
func (s *screen) controlString(at int) int {
	const introducer = 2
	if s.stringEnd < at+introducer {
		s.stringEnd = at + introducer
		for s.stringEnd < len(s.output) && terminator(s.output[s.stringEnd:]) == 0 && s.output[s.stringEnd] != '\n' {
			s.stringEnd++
		}
	}
	end := terminator(s.output[s.stringEnd:])
	if end == 0 || s.stringEnd-at > maxSequence {
		return introducer
	}
	return s.stringEnd + end - at
}

// terminator returns the length in bytes of the end of a control string at the start of text, or 0 if there is none.
func terminator(text string) int {
	for _, end := range []string{"\a", "\x1b\\", "\u009c"} {
		if strings.HasPrefix(text, end) {
			return len(end)
		}
	}
	return 0
}

// escapeLength returns the length in bytes of an escape sequence: intermediate characters and a final one.
func escapeLength(text string) int {
	if len(text) < 2 {
		return len(text)
	}
	final := strings.IndexFunc(text[1:], func(r rune) bool { return r < ' ' || r > '/' })
	if final < 0 || text[1+final] < '0' || text[1+final] > '~' {
		return 1
	}
	return 1 + final + 1
}

// text returns the rows without white space at their ends and without superfluous blank ones.
func (s *screen) text() string {
	rows := make([]string, len(s.rows))
	for i, row := range s.rows {
		rows[i] = strings.TrimRightFunc(string(row), unicode.IsSpace)
	}
	rows = slices.CompactFunc(rows, func(a, b string) bool { return a == "" && b == "" })
	return strings.Trim(strings.Join(rows, "\n"), "\n")
}
