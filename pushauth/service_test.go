package pushauth_test

import (
	"crypto/rand"
	"crypto/rsa"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/sealpush/sealpush/pushauth"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

const clientID = "bridge-home-office"

// signingKey is shared, for it takes long to make one.
var signingKey = sync.OnceValue(func() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
})

// newService returns a token service and a relay in memory, which work in a bubble, with a source for them.
func newService(tb testing.TB, opts ...pushauth.Option) (*relaytest.BridgeService, *pushauth.Source) {
	tb.Helper()
	service := relaytest.NewBridgeService(relaytest.InMemory(), relaytest.WithHashRounds(1), relaytest.WithSigningKey(signingKey()))
	tb.Cleanup(service.Close)
	source, err := pushauth.NewSource(pushauth.Credentials{
		TokenURL:     service.TokenURL,
		ClientID:     clientID,
		ClientSecret: service.AddClient(clientID),
	}, append([]pushauth.Option{quiet, pushauth.WithHTTPClient(service.Client())}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	return service, source
}

var quiet = pushauth.WithLogger(slog.New(slog.DiscardHandler))

func mustToken(t *testing.T, source *pushauth.Source) pushauth.Token {
	t.Helper()
	token, err := source.Token(t.Context())
	if err != nil {
		t.Fatalf("at %v: %v", time.Now(), err)
	}
	return token
}

func wantTokenRequests(t *testing.T, service *relaytest.BridgeService, want int) {
	t.Helper()
	if got := service.RequestCount(relaytest.EndpointToken); got != want {
		t.Fatalf("at %v: token service saw %d requests, want %d", time.Now(), got, want)
	}
}

// For answers that no token service should give, a handler stands in for one.

var credentials = pushauth.Credentials{
	TokenURL:     "https://token.example/",
	ClientID:     clientID,
	ClientSecret: secret.New("hunter2-the-secret"),
}

func newSource(tb testing.TB, service http.Handler) *pushauth.Source {
	tb.Helper()
	source, err := pushauth.NewSource(credentials, quiet, pushauth.WithHTTPClient(&http.Client{Transport: handlerTransport{service}}))
	if err != nil {
		tb.Fatal(err)
	}
	return source
}

// handlerTransport answers requests from a handler.
type handlerTransport struct{ http.Handler }

func (t handlerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	t.ServeHTTP(w, req)
	if req.Body != nil {
		req.Body.Close()
	}
	resp := w.Result()
	resp.Request = req
	return resp, nil
}
