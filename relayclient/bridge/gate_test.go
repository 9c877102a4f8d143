package bridge

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/sealpush/sealpush/secret"
)

// Two calls that both found the gate open: from outside that moment cannot be met on purpose.
func TestOnlyOneClosesTheGate(t *testing.T) {
	var pushes int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/push" {
			pushes++
		}
		io.WriteString(w, `{"ok":true,"access_token":"t","expires_in":3600}`)
	}))
	defer server.Close()
	client, err := New(Config{URL: server.URL, TokenURL: server.URL, ClientID: "bridge", ClientSecret: secret.New("secret")}, WithCooldown(0), WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	open, n := client.gate.Load(), Notification{Title: "t", Body: "b"}
	first, second := client.notify(t.Context(), n, open), client.notify(t.Context(), n, open)
	if first.Status != StatusSent || second.Status != StatusDebounced || pushes != 1 {
		t.Errorf("%s, then %s; %d pushes", first.Status, second.Status, pushes)
	}
}

// A transport that panics must not keep the gate closed for ever.
func TestPanicReopensTheGate(t *testing.T) {
	client, err := New(Config{URL: "https://push.example", TokenURL: "https://token.example", ClientID: "bridge", ClientSecret: secret.New("secret")}, WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	client.http = &http.Client{Transport: panicking{}}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		client.Notify(t.Context(), Notification{Title: "t", Body: "b"})
	}()
	if g := client.gate.Load(); g.sending != nil || g.failures != 1 {
		t.Errorf("gate is %+v", g)
	}
}

type panicking struct{}

func (panicking) RoundTrip(*http.Request) (*http.Response, error) { panic("broken transport") }
