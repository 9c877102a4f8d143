package payload_test

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/sealpush/sealpush/payload"
)

// splitLines is Python's str.splitlines, read forwards.
func splitLines(s string) []string {
	var lines []string
	start, cr := 0, false
	for i, r := range s {
		switch r {
		case '\n', '\r', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
			if r == '\n' && cr {
				start = i + 1
			} else {
				lines = append(lines, s[start:i])
				start = i + len(string(r))
			}
		}
		cr = r == '\r'
	}
	if start < len(s) {
		lines = append(lines, s[start:])
	}
	return lines[max(0, len(lines)-payload.MaxLogLines):]
}

func TestLogTail(t *testing.T) {
	var numbered strings.Builder
	for i := range 1000 {
		numbered.WriteString(strconv.Itoa(i))
		numbered.WriteByte('\n')
	}
	for _, c := range []struct {
		name, captured string
		lines          int
	}{
		{"nothing", "", 0},
		{"blank lines only", strings.Repeat("\n", 100), 40},
		{"a thousand lines", numbered.String(), 40},
		{"CR LF across the fortieth line", strings.Repeat("\r\n", 41), 40},
		{"LF CR is two", "a\n\rb", 3},
		{"NUL and other controls end no line", "a\x00b\x1fc\x07d\x1bd\u0084\u0086\u2027\u202a", 1},
		{"pieces of line ends", "\x85\xa8\xa9\x80\xa8\xe2\x80\xc2", 1},
		{"line ends beside broken characters", "\xe2\xc2\x85\xf0\x9f\xe2\x80\xa8\xc2", 3},
		{"emoji", "🚀\u2028👩‍👩‍👧‍👦\u0085日", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := payload.LogTail(c.captured)
			if diff := cmp.Diff(splitLines(c.captured), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(got) != c.lines {
				t.Errorf("%d lines, want %d", len(got), c.lines)
			}
		})
	}
}

func TestLogTailOfHugeOutput(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	for name, captured := range map[string]string{
		"many lines": strings.Repeat(line, 16<<20/len(line)),
		"one line":   strings.Repeat("x", 16<<20),
	} {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			lines := payload.LogTail(captured)
			runtime.ReadMemStats(&after)
			if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 64<<10 {
				t.Errorf("allocated %d bytes", allocated)
			}
			if len(lines) == 0 {
				t.Error("no line")
			}
		})
	}
}

func FuzzLogTail(f *testing.F) {
	f.Add("a\r\nb\u2028c\xe2\x80\u0085")
	f.Fuzz(func(t *testing.T, captured string) {
		if diff := cmp.Diff(splitLines(captured), payload.LogTail(captured)); diff != "" {
			t.Errorf("LogTail(%q) (-want +got):\n%s", captured, diff)
		}
	})
}
