package answer_test

import (
	"net/url"
	"slices"
	"testing"

	"github.com/sealpush/sealpush/internal/answer"
)

func TestURLSecrets(t *testing.T) {
	u, err := url.Parse("https://parker:correct%20horse@relay.example/v1/hooks/notifications/capability-1/onlylowercaselettersbutmany/MixedLetters/%C3%BCmlaut-step/?v=1&key=topsecret&long-parameter=x")
	if err != nil {
		t.Fatal(err)
	}
	got := answer.URLSecrets(u)
	for _, secret := range []string{
		"parker", "correct horse", "parker:correct%20horse", "cGFya2VyOmNvcnJlY3QgaG9yc2U=",
		"capability-1", "onlylowercaselettersbutmany", "MixedLetters", "ümlaut-step", "topsecret", "long-parameter", "v=1&key=topsecret&long-parameter=x",
	} {
		if !slices.Contains(got, secret) {
			t.Errorf("%q is missing from %q", secret, got)
		}
	}
	for _, harmless := range []string{"", "v1", "hooks", "notifications", "1", "key", "x", "relay.example"} {
		if slices.Contains(got, harmless) {
			t.Errorf("%q is taken for a secret", harmless)
		}
	}
	if got := answer.URLSecrets(&url.URL{Scheme: "https", Host: "relay.example"}); len(got) != 0 {
		t.Errorf("a bare URL has secrets: %q", got)
	}
}
