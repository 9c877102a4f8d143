package payload_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/sealpush/sealpush/payload"
)

func utf16LE(s string) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune(s)) {
		b = binary.LittleEndian.AppendUint16(b, unit)
	}
	return string(b)
}

func TestCleanOutput(t *testing.T) {
	var bar, layers strings.Builder
	for i := range 500 {
		fmt.Fprintf(&bar, "\r\x1b[32mdownload\x1b[0m %3d/500 %s", i+1, strings.Repeat("#", i/10))
		if i > 0 {
			layers.WriteString("\x1b[2A")
		}
		fmt.Fprintf(&layers, "\x1b[2K\rlayer one: %d\n\x1b[2K\rlayer two: %d\n", i+1, 2*i)
	}
	for _, c := range []struct{ name, raw, want string }{
		{"nothing", "", ""},
		{"plain", "a\nb\n", "a\nb"},
		{"CRLF", "a\r\nb\r\n", "a\nb"},
		{"a cause and 45 blank lines", "disk full\n" + strings.Repeat(" \t\r\n", 45), "disk full"},
		{"blank lines between", "disk full\n" + strings.Repeat("\n", 45) + "gave up\n", "disk full\n\ngave up"},
		{"tabs and indents stay", "\tat main.go:7\n    at b\n", "\tat main.go:7\n    at b"},

		{"PowerShell", "\xff\xfe" + utf16LE("Zugriff verweigert: größe\r\nPS C:\\>\r\n"), "Zugriff verweigert: größe\nPS C:\\>"},
		{"UTF-16, its start cut off", utf16LE("Access denied: größe\r\n")[2:], "ccess denied: größe"},
		{"UTF-16, cut in a character", utf16LE("Access denied: größe\r\n")[1:], "ccess denied: größe"},
		{"UTF-16 of the other order", "\xfe\xff\x00o\x00k", "ok"},
		{"UTF-8 with its mark", "\xef\xbb\xbfok\n", "ok"},
		{"UTF-8, cut in a character", "\x82\xac 7 missing\n", " 7 missing"},
		{"not UTF-8", "gel\xf6scht\n", "gel\ufffdscht"},
		{"4 KiB of NULs", strings.Repeat("\x00", 4096) + "disk full\n" + strings.Repeat("\x00", 4096), "disk full"},

		{"colours", "\x1b[1;31merror:\x1b[0m \u009b38;5;7mno space\x1b[m\n", "error: no space"},
		{"a link and a title", "\x1b]0;make\a\x1b]8;;http://x\x1b\\docs\x1b]8;;\x1b\\\x1b(B\x1b7 ok\n", "docs ok"},
		{"a control string that never ends", "\x1b]0;make\ncause\n", "0;make\ncause"},
		{"two control strings, the first of which never ends", "\x1b]0;\x1bPx\n\x1b]0;make\acause\n", "0;x\ncause"},
		{"a control string of another end", "\x1b]0;make\u009ccause\n", "cause"},
		{"a sequence that is cut off", "cause\x1b[3", "cause"},
		{"a sequence that is broken off", "\x1b[3\ncause\x1b", "\ncause"[1:]},
		{"bells and deletes", "\acause\x7f\x00\n", "cause"},

		{"a bar, redrawn 500 times", "start\n" + bar.String() + "\ndisk full\n", "start\ndownload 500/500 " + strings.Repeat("#", 49) + "\ndisk full"},
		{"a bar, wiped before the cause", "50 %\r       \rdisk full\n", "disk full"},
		{"a bar, wiped at the end", "50 %\r\x1b[Kdisk full\n", "disk full"},
		{"a bar, wiped and nothing after it", "disk full\n50 %\r\x1b[K", "disk full"},
		{"CR at the end of a line wipes nothing", "disk full\r\r\nnext\r", "disk full\nnext"},
		{"a spinner", "work |\b/\b-\b\\\bdone\n", "work done"},
		{"backspaces without end", "a" + strings.Repeat("\b", 5000) + "b", "b"},
		{"layers, redrawn 500 times", "pull\n" + layers.String() + "disk full\n", "pull\nlayer one: 500\nlayer two: 998\ndisk full"},
		{"up past the start", "a\nb\n\x1b[999999999999Ac\n", "c\nb"},
		{"columns", "a\x1b[3Cb\x1b[999999C|\n", "a   b" + strings.Repeat(" ", 200) + "|"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, payload.CleanOutput([]byte(c.raw))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestPhoneShowsTheCause puts output through what a wrapper does.
func TestPhoneShowsTheCause(t *testing.T) {
	for name, raw := range map[string]string{
		"blank lines": "disk full\n" + strings.Repeat("\n", 45),
		"PowerShell":  utf16LE("disk full\r\n"),
		"NULs":        "disk full\n" + strings.Repeat("\x00", 4<<10),
		"a bar":       "disk full\n" + strings.Repeat("\r### 50 %", 500) + "\n",
	} {
		alert := payload.NewFailure("node-a", "backup")
		alert.LogTail = payload.LogTail(payload.CleanOutput([]byte(raw)))
		fitted, err := payload.Fit(alert, maxPlaintext)
		if err != nil {
			t.Fatal(err)
		}
		shown, err := payload.Parse(fitted.Plaintext)
		if err != nil || !slices.Contains(shown.LogTail, "disk full") {
			t.Errorf("%s: the phone shows %q, %v", name, shown.LogTail, err)
		}
	}
}

// Control strings that never end are searched for their ends once, not once for each.
func TestCleanOutputOfEndlessControlStrings(t *testing.T) {
	raw := []byte(strings.Repeat("\x1b]\x1bP", 4<<20) + "\ncause\n")
	cleaned := make(chan string, 1)
	go func() { cleaned <- payload.CleanOutput(raw) }()
	select {
	case clean := <-cleaned:
		if clean != "cause" {
			t.Errorf("%d bytes are left", len(clean))
		}
	case <-time.After(time.Minute): // a hundred times what it takes
		t.Fatal("16 MiB of output take more than a minute")
	}
}

// FuzzCleanOutput: what is clean stays as it is, and nothing is left that a terminal would obey.
func FuzzCleanOutput(f *testing.F) {
	for _, seed := range []string{"a\r\nb", "\x1b[2A\x1b[Kx\b\b", "\xff\xfea\x00", "\x1b]0;t\aq", "\u009b1;2Hz\u0085\u2028", "a\x00b\x00c\x00"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		clean := payload.CleanOutput(raw)
		if !utf8.ValidString(clean) {
			t.Errorf("not UTF-8: %q", clean)
		}
		if i := strings.IndexFunc(clean, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 }); i >= 0 {
			t.Errorf("control character in %q", clean)
		}
		if again := payload.CleanOutput([]byte(clean)); again != clean && !strings.HasPrefix(clean, "\ufeff") {
			t.Errorf("%q becomes %q", clean, again)
		}
	})
}
