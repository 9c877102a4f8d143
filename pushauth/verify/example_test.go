package verify_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/sealpush/sealpush/pushauth/verify"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// A relay's handler, in front of a token service from relaytest.
func ExampleVerifier_Authenticate() {
	service := relaytest.NewBridgeService()
	defer service.Close()

	verifier, err := verify.New(verify.Config{
		JWKSURL:  service.TokenURL + "/.well-known/jwks.json",
		Issuer:   service.TokenURL,
		Audience: service.RelayURL,
		Scope:    "push:write",
	})
	if err != nil {
		log.Fatal(err)
	}
	push := func(w http.ResponseWriter, r *http.Request) {
		claims, err := verifier.Authenticate(r)
		if err != nil {
			http.Error(w, err.Error(), verify.StatusCode(err))
			return
		}
		fmt.Fprintf(w, "waking the phones of %s\n", claims.Subject)
	}

	for _, authorization := range []string{"Bearer " + service.Token("bridge-home-office"), "Bearer nonsense"} {
		r := httptest.NewRequest(http.MethodPost, "/push", nil)
		r.Header.Set("Authorization", authorization)
		w := httptest.NewRecorder()
		push(w, r)
		fmt.Print(w.Code, " ", w.Body)
	}
	// Output:
	// 200 waking the phones of bridge-home-office
	// 401 verify: invalid token: token is malformed
}

// Each way to fail, and how a relay answers it.
func ExampleVerifier_Verify() {
	service := relaytest.NewBridgeService()
	defer service.Close()
	verifier, err := verify.New(verify.Config{
		JWKSURL:  service.TokenURL + "/.well-known/jwks.json",
		Issuer:   service.TokenURL,
		Audience: service.RelayURL,
		Scope:    "push:write",
	})
	if err != nil {
		log.Fatal(err)
	}
	token := func(audience, scope string, life time.Duration) string {
		return service.SignToken(map[string]any{
			"iss": service.TokenURL, "sub": "bridge-home-office", "aud": audience,
			"scope": scope, "exp": time.Now().Add(life).Unix(),
		})
	}
	for _, token := range []string{
		token(service.RelayURL, "push:write", time.Hour),
		token(service.RelayURL, "push:write", -time.Hour),
		token("https://other.example", "push:write", time.Hour),
		token(service.RelayURL, "push:read", time.Hour),
	} {
		claims, err := verifier.Verify(context.Background(), token)
		if err != nil {
			fmt.Println(verify.StatusCode(err), err)
			continue
		}
		fmt.Println(claims.Subject, claims.Scopes)
	}
	// Output:
	// bridge-home-office [push:write]
	// 401 verify: invalid token: token is expired
	// 401 verify: invalid token: token has invalid audience
	// 403 verify: insufficient scope: "push:write" is required
}
