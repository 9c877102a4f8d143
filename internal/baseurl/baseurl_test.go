package baseurl

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
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
			u, err := Parse(tt.raw)
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
