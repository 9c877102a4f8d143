package pushauth_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/pushauth"
	"github.com/sealpush/sealpush/secret"
)

func TestSecretsDoNotPrint(t *testing.T) {
	source, err := pushauth.NewSource(credentials)
	if err != nil {
		t.Fatal(err)
	}
	token := pushauth.Token{Value: secret.New("hunter2.the.token"), Expiry: time.Now()}
	values := map[string]any{
		"Credentials": credentials, "*Credentials": &credentials, "[]Credentials": []pushauth.Credentials{credentials},
		"Token": token, "*Token": &token, "map": map[string]pushauth.Token{"t": token},
		"Source": source, "Transport": &pushauth.Transport{Source: source},
	}
	for name, value := range values {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%c", "%U", "%g"} {
				fmt.Fprintf(&out, verb+"\n", value)
			}
			fmt.Fprintln(&out, fmt.Errorf("wrapped: %v", value))
			slog.New(slog.NewTextHandler(&out, nil)).Info("text", "value", value)
			slog.New(slog.NewJSONHandler(&out, nil)).Info("json", "value", value)
			if text, err := json.Marshal(value); err == nil {
				out.Write(text)
			}
			if text, err := xml.Marshal(value); err == nil {
				out.Write(text)
			}
			hex := fmt.Sprintf("%x", "hunter2")
			if s := strings.ToLower(out.String()); strings.Contains(s, "hunter2") || strings.Contains(s, hex) {
				t.Errorf("shows a secret:\n%s", &out)
			}
		})
	}
}
