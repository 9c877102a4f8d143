package printable

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	tests := []struct {
		name, in string
		max      int
		secrets  []string
		want     string
	}{
		{"as it is", "no such client", 64, nil, "no such client"},
		{"one line", " a\r\n\tb  c ", 64, nil, "a b c"},
		{"control characters", "a\x1b[31mb\x00", 64, nil, "a\ufffd[31mb\ufffd"},
		{"not UTF-8", "a\xffb", 64, nil, "a\ufffdb"},
		{"cut", "abcdefghij", 8, nil, "abcde…"},
		{"cut between runes", "aéééé", 6, nil, "aé…"},
		{"secret", "bad hunter2!", 64, []string{"hunter2"}, "bad [redacted]!"},
		{"secret as JSON spells it", `bad hun\"ter`, 64, []string{`hun"ter`}, "bad [redacted]"},
		{"secret across the cut", "0123456789hunter2", 16, []string{"hunter2"}, "0123456789[re…"},
		{"no secret", "abc", 64, []string{""}, "abc"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Text(tt.in, tt.max, tt.secrets...); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\x00b \xff é…")
	f.Fuzz(func(t *testing.T, s string) {
		got := Text(s, 32)
		if len(got) > 32 || !utf8.ValidString(got) || strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("Text(%q) = %q", s, got)
		}
	})
}
