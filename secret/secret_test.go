package secret_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/sealpush/sealpush/secret"
)

const word = "correct-horse"

type holder struct {
	Shown  secret.Text
	hidden secret.Text
	Nested map[string][]*secret.Text
}

func TestNothingPrintsTheSecret(t *testing.T) {
	text := secret.New(word)
	values := map[string]any{
		"a text":                  text,
		"a pointer":               &text,
		"a slice":                 []secret.Text{text},
		"exported and unexported": holder{Shown: text, hidden: text, Nested: map[string][]*secret.Text{"k": {&text}}},
		"behind a pointer":        &holder{Shown: text, hidden: text},
		"an array of holders":     [1]holder{{hidden: text}},
		"an interface":            struct{ any }{text},
	}
	for name, value := range values {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%t", "%p", "%10v"} {
			if got := fmt.Sprintf(verb, value); leaks(got) {
				t.Errorf("%s with %s: %s", name, verb, got)
			}
		}
		var log bytes.Buffer
		slog.New(slog.NewTextHandler(&log, nil)).Info("text", "value", value)
		slog.New(slog.NewJSONHandler(&log, nil)).Info("json", "value", value)
		if leaks(log.String()) {
			t.Errorf("%s in a log: %s", name, log.String())
		}
		if encoded, err := json.Marshal(value); err == nil && leaks(string(encoded)) {
			t.Errorf("%s as JSON: %s", name, encoded)
		}
	}
	if got := fmt.Sprint(text, secret.Text{}); got != "[secret] [no secret]" {
		t.Errorf("printed %q", got)
	}
	if encoded, err := xml.Marshal(text); err != nil || leaks(string(encoded)) {
		t.Errorf("as XML: %s, %v", encoded, err)
	}
}

// leaks looks for the secret as it is and as fmt's %x and %d would print it.
func leaks(printed string) bool {
	for _, form := range []string{word, fmt.Sprintf("%x", word), fmt.Sprint([]byte(word))[1:20]} {
		if strings.Contains(printed, form) {
			return true
		}
	}
	return false
}

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"", "", true}, {word, word, true}, {word, "", false}, {"", word, false}, {word, word + "s", false}, {word, "Correct-horse", false},
	} {
		if got := secret.New(c.a).Equal(secret.New(c.b)); got != c.want {
			t.Errorf("Equal(%q, %q) = %v", c.a, c.b, got)
		}
	}
	if reflect.TypeFor[secret.Text]().Comparable() {
		t.Error("== compiles: it would compare addresses, and not in constant time")
	}
}

func TestReadingConfiguration(t *testing.T) {
	var fromTOML, fromJSON struct{ Token secret.Text }
	if _, err := toml.Decode(`token = "`+word+`"`, &fromTOML); err != nil || fromTOML.Token.Reveal() != word {
		t.Errorf("TOML: %q, %v", fromTOML.Token.Reveal(), err)
	}
	if err := json.Unmarshal([]byte(`{"token":"`+word+`"}`), &fromJSON); err != nil || fromJSON.Token.Reveal() != word {
		t.Errorf("JSON: %q, %v", fromJSON.Token.Reveal(), err)
	}
}

func TestZero(t *testing.T) {
	var zero secret.Text
	if !zero.IsZero() || zero.Reveal() != "" || !secret.New("").IsZero() || secret.New(word).IsZero() {
		t.Error("IsZero is true of the empty text and of nothing else")
	}
	if encoded, err := json.Marshal(struct {
		Token secret.Text `json:",omitzero"`
	}{}); err != nil || string(encoded) != "{}" {
		t.Errorf("omitzero: %s, %v", encoded, err)
	}
}

func ExampleText() {
	token := secret.New("hunter2")
	fmt.Printf("%v %+v %q\n", token, struct{ Token secret.Text }{token}, token)
	fmt.Println(len(token.Reveal()))
	// Output:
	// [secret] {Token:[secret]} [secret]
	// 7
}
