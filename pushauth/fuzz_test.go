package pushauth_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/pushauth"
)

// Whatever a token service says: either there is a token that a header can carry and that is not cached past its
// end, or there is a TokenError that quotes nothing of a 200 answer.
func FuzzTokenResponse(f *testing.F) {
	for _, seed := range []string{
		`{"access_token":"a.b.c","token_type":"Bearer","expires_in":3600}`,
		`{"access_token":"a","expires_in":"1e999"}`,
		`{"access_token":"` + jwt(`{"exp":946688400}`) + `"}`,
		`{"access_token":"a\u0000"}`,
		`{"access_token":1}`, `[]`, `null`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		synctest.Test(t, func(t *testing.T) {
			requests := 0
			source := newSource(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests++
				w.Write(body)
			}))
			token, err := source.Token(t.Context())
			if err != nil {
				failed, ok := errors.AsType[*pushauth.TokenError](err)
				if !ok || !same(token, pushauth.Token{}) || failed.Message != "" {
					t.Fatalf("token %v, error %#v", token, err)
				}
				return
			}
			value := token.Value.Reveal()
			header := http.Header{"Authorization": {"Bearer " + value}}
			var wire strings.Builder
			header.Write(&wire)
			if wire.String() != fmt.Sprintf("Authorization: Bearer %s\r\n", value) || value == "" {
				t.Fatalf("a header cannot carry %q", value)
			}
			if token.Expiry.IsZero() {
				return
			}
			life := time.Until(token.Expiry)
			if life > 365*24*time.Hour {
				t.Fatalf("lives for %v", life)
			}
			advance(life)
			if _, err := source.Token(t.Context()); err != nil || requests != 2 {
				t.Fatalf("after its end: error %v, %d requests", err, requests)
			}
		})
	})
}
