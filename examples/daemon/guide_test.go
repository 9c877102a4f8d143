package main

import (
	"strings"
	"testing"
)

func TestGuide(t *testing.T) {
	dir, err := defaultState()
	if err != nil {
		t.Fatal(err)
	}
	byDefault := guide{options: options{state: dir}, url: "http://" + defaultAddr, tokenFile: true}
	elsewhere := guide{options: options{state: "/my files", relay: "https://user:password@relay.example/secret?key=secret"}, url: "http://127.0.0.1:9"}
	for name, tt := range map[string]struct {
		guide guide
		want  []string
	}{
		"by default": {byDefault, []string{"Relay    its own", "\n    sealpush phone\n", "the token in " + tokenPath(dir)}},
		"elsewhere": {elsewhere, []string{
			"Relay    https://relay.example\n", ` -daemon http://127.0.0.1:9 -state "/my files" -token TOKEN -inbox URL`,
		}},
	} {
		var out strings.Builder
		tt.guide.print(&out)
		for _, want := range tt.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: %q is not in\n%s", name, want, out.String())
			}
		}
		if strings.Contains(out.String(), "secret") || strings.Contains(out.String(), "password") {
			t.Errorf("%s: shows a secret:\n%s", name, out.String())
		}
	}
}
