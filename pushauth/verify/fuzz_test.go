package verify_test

import (
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
	"github.com/sealpush/sealpush/pushauth/verify"
)

// FuzzVerify gives a verifier tokens of every sort. What it accepts is what was
// signed, to the byte of header and claims; what it refuses, it refuses with
// one of its errors, and without a copy of it.
func FuzzVerify(f *testing.F) {
	genuine := signGood(f, "first", firstKey())
	for _, seed := range []string{
		genuine, genuine + "=", genuine[:len(genuine)-1], "", ".", "..", "a.b.c",
		"eyJhbGciOiJub25lIn0.e30.", "eyJhbGciOiJSUzI1NiIsImtpZCI6ImZpcnN0In0.bnVsbA.AA",
		sign(f, jwt.SigningMethodHS256, "first", []byte("k"), good()),
		sign(f, jwt.SigningMethodRS512, "first", firstKey(), good()),
	} {
		f.Add(seed)
	}
	v, _ := newVerifier(f)
	signed := genuine[:strings.LastIndexByte(genuine, '.')]
	f.Fuzz(func(t *testing.T, token string) {
		claims, err := v.Verify(t.Context(), token)
		if err == nil {
			if !strings.HasPrefix(token, signed+".") || claims.Subject != "bridge-home-office" {
				t.Errorf("accepted %q for %q", token, claims.Subject)
			}
			return
		}
		if !errors.Is(err, verify.ErrInvalidToken) {
			t.Errorf("%v is not the error of a token that is no good", err)
		}
		if len(token) > 20 && strings.Contains(err.Error(), token) {
			t.Errorf("the error quotes the token: %v", err)
		}
	})
}

// FuzzKeySet lets the token service publish anything. A token signed with a key
// that is in no set does not get through, and it is the token's fault or the
// set's.
func FuzzKeySet(f *testing.F) {
	first := &firstKey().PublicKey
	f.Add(setOf(jwkOf("first", first)))
	f.Add(setOf(jwkOf("first", first), jwkOf("first", first, "use", "enc"), ecJWK("first")))
	f.Add(`{"keys":[{"kty":"RSA","kid":"first","alg":"RS256","n":"AQAB","e":"AQAB"}]}`)
	f.Add(`{"keys":[{"kty":"RSA","kid":"first","x5c":["AA"],"x5u":"https://x.example","n":"AQ","e":"AQ"},null,7]}`)
	f.Add(`null`)
	token := signGood(f, "first", secondKey())
	f.Fuzz(func(t *testing.T, set string) {
		v, keys := newVerifier(t, verify.WithLogger(slog.New(slog.DiscardHandler)))
		keys.serve(http.StatusOK, set)
		_, err := v.Verify(t.Context(), token)
		if !errors.Is(err, verify.ErrInvalidToken) && !errors.Is(err, verify.ErrKeysUnavailable) {
			t.Errorf("got %v", err)
		}
	})
}
