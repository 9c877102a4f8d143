package input

import (
	"strings"
	"testing"
)

func TestBaseURL(t *testing.T) {
	tests := []struct {
		raw     string
		want    string // with "token" joined
		problem string
	}{
		{raw: "https://token.example", want: "https://token.example/token"},
		{raw: "https://token.example/", want: "https://token.example/token"},
		{raw: "https://host.example/auth/", want: "https://host.example/auth/token"},
		{raw: "http://127.0.0.1:8080", want: "http://127.0.0.1:8080/token"},
		{raw: "http://[::1]:8080", want: "http://[::1]:8080/token"},
		{raw: "\uFEFF https://token.example/\r\n", want: "https://token.example/token"},
		{raw: "https://token.example/hunter2 path", problem: "white space"},
		{raw: "", problem: "https://"},
		{raw: "token.example", problem: "https://"},
		{raw: "ftp://token.example", problem: "https://"},
		{raw: "https://", problem: "no host"},
		{raw: "https://:443", problem: "no host"},
		{raw: "https://user:hunter2@token.example", problem: "user name"},
		{raw: "https://token.example?key=hunter2", problem: "query"},
		{raw: "https://token.example?", problem: "query"},
		{raw: "https://token.example#hunter2", problem: "fragment"},
		{raw: "https://token.example:hunter2", problem: "not a valid URL"},
		{raw: "https://token.example/%zzhunter2", problem: "not a valid URL"},
	}
	for _, tt := range tests {
		t.Run(tt.raw, func(t *testing.T) {
			u, err := BaseURL(tt.raw)
			if tt.problem == "" {
				if err != nil {
					t.Fatal(err)
				}
				if got := u.JoinPath("token").String(); got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("error %v, want one that says %q", err, tt.problem)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error quotes the URL: %v", err)
			}
		})
	}
}

func TestText(t *testing.T) {
	tests := []struct{ raw, want, problem string }{
		{"correct-horse", "correct-horse", ""},
		{"", "", ""},
		{" \t\r\n\u00A0", "", ""},
		{"correct-horse\n", "correct-horse", ""},
		{"\uFEFFcorrect-horse\r\n", "correct-horse", ""},
		{" \uFEFF\u2003 größe\u2028", "größe", ""},
		{"correct horse", "", "white space inside (U+0020)"},
		{"correct\nhorse", "", "white space inside (U+000A)"},
		{"correct\u00A0horse", "", "white space inside (U+00A0)"},
		{"correct\x00horse", "", "control character inside (U+0000)"},
		{"\x00correct", "", "control character inside (U+0000)"},
		{"correct\u200Bhorse", "", "control character inside (U+200B)"},
		{"correct\uFEFFhorse", "", "control character inside (U+FEFF)"},
		{"correct\xffhorse", "", "not UTF-8"},
	}
	for _, tt := range tests {
		got, err := Text(tt.raw)
		if got != tt.want || (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
			t.Errorf("%q: got %q, %v; want %q, %s", tt.raw, got, err, tt.want, tt.problem)
		}
		if err != nil && (strings.Contains(err.Error(), "correct") || strings.Contains(err.Error(), "horse")) {
			t.Errorf("error quotes the text: %v", err)
		}
	}
}
