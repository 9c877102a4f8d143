package relaytest

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/sealpush/sealpush/pushauth/verify"
)

// bridgeKeys check the push relay's bearer tokens, and can forget the keys that they fetched.
type bridgeKeys struct {
	issuer, audience string

	mu        sync.Mutex
	client    *http.Client
	verifiers []*verify.Verifier // for the scopes push:write and admin: the deployed relay takes both
}

// trust fetches the token service's keys through client.
func (k *bridgeKeys) trust(client *http.Client) {
	k.mu.Lock()
	k.client = client
	k.mu.Unlock()
	k.forget()
}

// forget makes the relay fetch the keys anew.
func (k *bridgeKeys) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.verifiers = nil
	for _, scope := range []string{"push:write", "admin"} {
		verifier, err := verify.New(verify.Config{
			JWKSURL:  k.issuer + "/.well-known/jwks.json",
			Issuer:   k.issuer,
			Audience: k.audience,
			Scope:    scope,
		}, verify.WithHTTPClient(k.client), verify.WithLeeway(0)) // both halves read one clock
		if err != nil {
			panic(err) // the URLs have been looked at
		}
		k.verifiers = append(k.verifiers, verifier)
	}
}

// Authenticate is [verify.Verifier.Authenticate].
func (k *bridgeKeys) Authenticate(r *http.Request) (verify.Claims, error) {
	k.mu.Lock()
	verifiers := k.verifiers
	k.mu.Unlock()
	claims, err := verifiers[0].Authenticate(r)
	if errors.Is(err, verify.ErrInsufficientScope) {
		if admin, adminErr := verifiers[1].Authenticate(r); adminErr == nil {
			return admin, nil
		}
	}
	return claims, err
}

// keyTransport fetches the key set from a token service's handler, wherever it is mounted, or before it is.
type keyTransport struct{ tokens http.Handler }

func (t keyTransport) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	r = r.Clone(r.Context())
	r.URL.Path, r.Body = "/.well-known/jwks.json", http.NoBody
	defer func() {
		switch panicked := recover(); panicked {
		case nil:
		case http.ErrAbortHandler: // which a server takes for a dropped connection
			resp, err = nil, errors.New("connection dropped")
		default:
			panic(panicked)
		}
	}()
	answer := httptest.NewRecorder()
	t.tokens.ServeHTTP(answer, r)
	return answer.Result(), nil
}
