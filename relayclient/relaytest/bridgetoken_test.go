package relaytest_test

import (
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

func TestIssuedToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := quick(t)
		secret := s.AddClient("alice").Reveal()
		answer := do(t, s.Client(), bridgeCall{"POST", s.TokenURL + "/token", "", `{"client_id":"alice","client_secret":"` + secret + `"}`})
		if answer.Status != 200 || answer.TokenType != "Bearer" || answer.ExpiresIn != 3600 {
			t.Errorf("answered %d, token type %q, expires in %d", answer.Status, answer.TokenType, answer.ExpiresIn)
		}
		if got := answer.Header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control is %q", got)
		}
		kid, key := publishedKey(t, s)
		sum := sha256.Sum256(key.N.Bytes())
		if want := hex.EncodeToString(sum[:8]); kid != want {
			t.Errorf("the key's id is %s, want %s", kid, want)
		}
		if got := key.N.BitLen(); got != 2048 {
			t.Errorf("the key has %d bits", got)
		}

		var claims jwt.MapClaims
		token, err := jwt.ParseWithClaims(answer.AccessToken, &claims, func(*jwt.Token) (any, error) { return key, nil })
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]any{"alg": "RS256", "typ": "JWT", "kid": kid}, token.Header); diff != "" {
			t.Error(diff)
		}
		now := float64(time.Now().Unix())
		want := jwt.MapClaims{"iss": s.TokenURL, "sub": "alice", "aud": s.RelayURL, "iat": now, "exp": now + 3600, "scope": "push:write"}
		if diff := cmp.Diff(want, claims); diff != "" {
			t.Error(diff)
		}
	})
}

func TestBadCredentials(t *testing.T) {
	s := quick(t)
	secret := s.AddClient("alice").Reveal()
	old := secret
	secret = s.AddClient("alice").Reveal() // replaces the secret
	tests := []struct {
		name, body string
		status     int
		message    string
	}{
		{"wrong secret", `{"client_id":"alice","client_secret":"wrong"}`, 401, "invalid_client"},
		{"replaced secret", `{"client_id":"alice","client_secret":"` + old + `"}`, 401, "invalid_client"},
		{"unknown client", `{"client_id":"bob","client_secret":"` + secret + `"}`, 401, "invalid_client"},
		{"another client's secret", `{"client_id":"admin","client_secret":"` + secret + `"}`, 401, "invalid_client"},
		{"no secret", `{"client_id":"alice"}`, 401, "invalid_client"},
		{"empty secret", `{"client_id":"bob","client_secret":""}`, 401, "invalid_client"},
		{"nothing", `{}`, 401, "invalid_client"},
		{"secret of another length", `{"client_id":"alice","client_secret":"` + secret + `0"}`, 401, "invalid_client"},
		{"secret in capitals", `{"client_id":"alice","client_secret":"` + strings.ToUpper(secret) + `"}`, 401, "invalid_client"},
		{"members in capitals", `{"CLIENT_ID":"alice","CLIENT_SECRET":"` + secret + `"}`, 401, "invalid_client"},
		{"numbers", `{"client_id":1,"client_secret":2}`, 401, "invalid_client"},
		{"null", `null`, 401, "invalid_client"},
		{"no JSON", `client_id=alice`, 401, "invalid_client"},
		{"no body", ``, 401, "invalid_client"},
		{"too large", `{"client_id":"` + strings.Repeat("a", 8<<10) + `"}`, 413, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := do(t, s.Client(), bridgeCall{"POST", s.TokenURL + "/token", "", tt.body})
			if got.Status != tt.status || got.OK || got.Error == "" || got.AccessToken != "" {
				t.Errorf("answered %d %q, want %d", got.Status, got.Error, tt.status)
			}
			if tt.message != "" && got.Error != tt.message {
				t.Errorf("the error is %q, want %q", got.Error, tt.message)
			}
		})
	}
}

func TestClients(t *testing.T) {
	s := quick(t)
	admin := fetchToken(t, s, adminID(s), adminSecret(s))
	create := func(bearer, body string) bridgeAnswer {
		t.Helper()
		return do(t, s.Client(), bridgeCall{"POST", s.TokenURL + "/clients", bearer, body})
	}
	remove := func(bearer, id string) bridgeAnswer {
		t.Helper()
		return do(t, s.Client(), bridgeCall{"DELETE", s.TokenURL + "/clients/" + id, bearer, ""})
	}

	created := create(admin, `{"client_id":"bridge-1","scope":"push:write"}`)
	if created.Status != http.StatusCreated || !created.OK || len(created.ClientSecret) != 64 {
		t.Fatalf("creating a client answered %d %q", created.Status, created.Error)
	}
	bridge := fetchToken(t, s, "bridge-1", created.ClientSecret)
	register(t, s, bridge, "phone")

	operator := create(admin, `{"client_id":"operator","scope":"admin"}`)
	second := fetchToken(t, s, "operator", operator.ClientSecret)
	if got := create(second, `{"client_id":"bridge-2","scope":"push:write"}`); got.Status != http.StatusCreated {
		t.Errorf("a second admin's client answered %d %q", got.Status, got.Error)
	}

	refused := []struct {
		name, bearer, body string
		status             int
	}{
		{"that exists", admin, `{"client_id":"bridge-1","scope":"push:write"}`, 409},
		{"that is the admin", admin, `{"client_id":"admin","scope":"admin"}`, 409},
		{"without id", admin, `{"scope":"push:write"}`, 400},
		{"with an id of 129 bytes", admin, `{"client_id":"` + strings.Repeat("a", 129) + `","scope":"push:write"}`, 400},
		{"with an id that no log line should have", admin, `{"client_id":"a\nb","scope":"push:write"}`, 400},
		{"in capitals", admin, `{"CLIENT_ID":"bridge-3","scope":"push:write"}`, 400},
		{"without scope", admin, `{"client_id":"bridge-3"}`, 400},
		{"with a scope that nothing asks for", admin, `{"client_id":"bridge-3","scope":"root"}`, 400},
		{"that is no JSON", admin, `bridge-3`, 400},
		{"without token", "", `{"client_id":"bridge-3","scope":"push:write"}`, 401},
		{"with a forged token", relayTokenOf(t, "admin"), `{"client_id":"bridge-3","scope":"push:write"}`, 401},
		{"with a bridge's token", bridge, `{"client_id":"bridge-3","scope":"admin"}`, 401},
	}
	for _, tt := range refused {
		t.Run("client "+tt.name, func(t *testing.T) {
			if got := create(tt.bearer, tt.body); got.Status != tt.status || got.OK || got.ClientSecret != "" {
				t.Errorf("answered %d %q, want %d", got.Status, got.Error, tt.status)
			}
		})
	}

	for _, authorization := range []string{admin, "Basic " + admin, "bearer " + admin, "Bearer  " + admin} {
		req, err := http.NewRequestWithContext(t.Context(), "DELETE", s.TokenURL+"/clients/bridge-1", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", authorization)
		resp, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("the admin's token without the Bearer scheme: %s", resp.Status)
		}
	}
	if got := remove(bridge, "bridge-1"); got.Status != http.StatusUnauthorized {
		t.Errorf("a bridge that deletes itself: %d", got.Status)
	}
	if got := remove("", "bridge-1"); got.Status != http.StatusUnauthorized {
		t.Errorf("deleting without token: %d", got.Status)
	}
	if got := remove(admin, "bridge-1"); got.Status != http.StatusOK || !got.OK {
		t.Errorf("deleting: %+v", got)
	}
	if got := remove(admin, "bridge-1"); got.Status != http.StatusOK || !got.OK {
		t.Errorf("deleting twice: %d", got.Status)
	}
	for _, id := range []string{"Büro im Keller", "a/b", "50 % off"} {
		encoded, err := json.Marshal(map[string]string{"client_id": id, "scope": "push:write"})
		if err != nil {
			t.Fatal(err)
		}
		created := create(admin, string(encoded))
		if created.Status != http.StatusCreated {
			t.Errorf("%q: %d %q", id, created.Status, created.Error)
		}
		fetchToken(t, s, id, created.ClientSecret)
		if got := remove(admin, url.PathEscape(id)); got.Status != http.StatusOK {
			t.Errorf("deleting %q: %d", id, got.Status)
		}
		if got := create(admin, string(encoded)); got.Status != http.StatusCreated {
			t.Errorf("%q was not deleted: %d %q", id, got.Status, got.Error)
		}
	}
	credentials := `{"client_id":"bridge-1","client_secret":"` + created.ClientSecret + `"}`
	if got := do(t, s.Client(), bridgeCall{"POST", s.TokenURL + "/token", "", credentials}); got.Status != http.StatusUnauthorized {
		t.Errorf("a deleted client's token: %d", got.Status)
	}
	s.RotateKey()
	if got := create(admin, `{"client_id":"bridge-4","scope":"push:write"}`); got.Status != http.StatusUnauthorized {
		t.Errorf("an admin's token from before a rotation: %d", got.Status)
	}
}

// relayTokenOf is a token signed by nobody that the service knows.
func relayTokenOf(t *testing.T, subject string) string {
	t.Helper()
	return forgeWithStranger(t, "x", map[string]any{"sub": subject, "scope": "admin", "exp": time.Now().Add(time.Hour).Unix()})
}

func TestBridgeOptionsRefuse(t *testing.T) {
	for name, option := range map[string]func(){
		"a lifetime below a second": func() { relaytest.NewBridgeService(relaytest.WithTokenLifetime(time.Second - 1)) },
		"no rounds":                 func() { relaytest.NewBridgeService(relaytest.WithHashRounds(0)) },
		"a small key": func() {
			relaytest.NewBridgeService(relaytest.WithSigningKey(&rsa.PrivateKey{PublicKey: rsa.PublicKey{N: big.NewInt(15), E: 3}}))
		},
		"a misspelt endpoint": func() {
			relaytest.NewUnstartedBridgeService("https://token.example", "https://push.example").Script("tokens", 1, relaytest.Answer{})
		},
		"a relative token URL":   func() { relaytest.NewUnstartedBridgeService("/token", "https://push.example") },
		"a relative relay URL":   func() { relaytest.NewUnstartedBridgeService("https://token.example", "/push") },
		"a URL with credentials": func() { relaytest.NewUnstartedBridgeService("https://a:b@token.example", "https://push.example") },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if text, ok := recover().(string); !ok || !strings.HasPrefix(text, "relaytest: ") {
					t.Errorf("panicked with %q", text)
				}
			}()
			option()
		})
	}
}
