package relaytest_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/go-cmp/cmp"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// Keys take a while to make, so the tests share them.
var (
	serviceKey   = sync.OnceValue(makeKey)
	strangersKey = sync.OnceValue(makeKey)
)

func makeKey() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return key
}

// quick is a service in memory that needs no time for its secrets and its key.
func quick(t *testing.T, opts ...relaytest.BridgeOption) *relaytest.BridgeService {
	t.Helper()
	s := relaytest.NewBridgeService(append([]relaytest.BridgeOption{
		relaytest.InMemory(), relaytest.WithHashRounds(1), relaytest.WithSigningKey(serviceKey()),
	}, opts...)...)
	t.Cleanup(s.Close)
	return s
}

// publishedKey is the public key in a service's JWK set, with its id.
func publishedKey(t *testing.T, s *relaytest.BridgeService) (kid string, key *rsa.PublicKey) {
	t.Helper()
	resp, err := s.Client().Get(s.TokenURL + "/.well-known/jwks.json")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Cache-Control"); got != "public, max-age=3600" {
		t.Errorf("Cache-Control is %q", got)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var set struct {
		Keys []struct{ Kty, Use, Alg, Kid, N, E string }
	}
	if err := json.Unmarshal(body, &set); err != nil || len(set.Keys) != 1 {
		t.Fatalf("the key set is %s (%v)", body, err)
	}
	jwk := set.Keys[0]
	if jwk.Kty != "RSA" || jwk.Use != "sig" || jwk.Alg != "RS256" {
		t.Errorf("the key is %s", body)
	}
	number := func(encoded string) *big.Int {
		raw, err := base64.RawURLEncoding.DecodeString(encoded)
		if err != nil {
			t.Fatal(err)
		}
		return new(big.Int).SetBytes(raw)
	}
	return jwk.Kid, &rsa.PublicKey{N: number(jwk.N), E: int(number(jwk.E).Int64())}
}

func TestBridgesAreIsolated(t *testing.T) {
	s := quick(t)
	// Two clients with a device each, and the same phone paired with both.
	tokens := map[string]string{}
	for _, id := range []string{"alice", "bob"} {
		tokens[id] = fetchToken(t, s, id, s.AddClient(id).Reveal())
		for _, device := range []string{id + "-phone", "shared-phone"} {
			register(t, s, tokens[id], device)
		}
	}
	alices := s.Devices("alice")
	if len(alices) != 2 {
		t.Fatalf("alice has %d devices, want 2", len(alices))
	}

	// What bob does with alice's devices happens to his own alone.
	answer := do(t, s.Client(), bridgeCall{"POST", s.RelayURL + "/push", tokens["bob"], `{"title":"t","body":"b"}`})
	if len(answer.Results) != 2 {
		t.Errorf("bob's push met %d devices, want his 2", len(answer.Results))
	}
	for _, device := range []string{"alice-phone", "shared-phone"} {
		do(t, s.Client(), bridgeCall{"DELETE", s.RelayURL + "/register", tokens["bob"], fmt.Sprintf(`{"device_token":%q}`, device)})
	}
	if diff := cmp.Diff(alices, s.Devices("alice")); diff != "" {
		t.Errorf("bob changed alice's devices: %s", diff)
	}
	if got := s.Pushes("alice"); len(got) != 0 {
		t.Errorf("alice is said to have sent %v", got)
	}
	if got := s.Devices("bob"); len(got) != 1 || got[0].Token.Reveal() != "bob-phone" {
		t.Errorf("bob's devices are %v", got)
	}
	if got := s.Pushes("bob"); len(got) != 1 {
		t.Errorf("bob sent %d pushes, want 1", len(got))
	}
}

func register(t *testing.T, s *relaytest.BridgeService, bearer, device string) {
	t.Helper()
	body := fmt.Sprintf(`{"device_token":%q,"platform":"ios"}`, device)
	if got := do(t, s.Client(), bridgeCall{"POST", s.RelayURL + "/register", bearer, body}); got.Status != 200 || !got.OK {
		t.Fatalf("registering %s: %+v", device, got)
	}
}

func TestOnlyItsOwnTokenSpeaksForAClient(t *testing.T) {
	s, stranger := quick(t), quick(t, relaytest.WithSigningKey(strangersKey()))
	beforeRotation := fetchToken(t, s, "alice", s.AddClient("alice").Reveal())
	register(t, s, beforeRotation, "alice-phone")
	s.RotateKey()

	kid, key := publishedKey(t, s)
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	claims := func(changes map[string]any) map[string]any {
		now := time.Now().Unix()
		c := map[string]any{"iss": s.TokenURL, "sub": "alice", "aud": s.RelayURL, "iat": now, "exp": now + 3600, "scope": "push:write"}
		for name, value := range changes {
			c[name] = value
		}
		return c
	}
	forge := func(method jwt.SigningMethod, secret any) string {
		token := jwt.NewWithClaims(method, jwt.MapClaims(claims(nil)))
		token.Header["kid"] = kid
		signed, err := token.SignedString(secret)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	tests := []struct {
		name, token string
		status      int
	}{
		{"none", "", 401},
		{"no JWT", "alice", 401},
		{"another audience", s.SignToken(claims(map[string]any{"aud": "https://other.example"})), 401},
		{"another issuer", s.SignToken(claims(map[string]any{"iss": "https://other.example"})), 401},
		{"expired", s.SignToken(claims(map[string]any{"exp": time.Now().Unix()})), 401},
		{"no subject", s.SignToken(claims(map[string]any{"sub": ""})), 401},
		{"alg none", forge(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType), 401},
		{"HS256 keyed with the public key's DER", forge(jwt.SigningMethodHS256, der), 401},
		{"HS256 keyed with the public key's PEM", forge(jwt.SigningMethodHS256, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})), 401},
		{"another service's, same key id", forgeWithStranger(t, kid, claims(nil)), 401},
		{"another service's", stranger.SignToken(claims(nil)), 401},
		{"from before the rotation", beforeRotation, 401},
		{"another scope", s.SignToken(claims(map[string]any{"scope": "push:read"})), 403},
	}
	calls := []struct{ method, path, body string }{
		{"POST", "/register", `{"device_token":"evil","platform":"ios"}`},
		{"DELETE", "/register", `{"device_token":"alice-phone"}`},
		{"POST", "/push", `{"title":"t","body":"b"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, call := range calls {
				got := do(t, s.Client(), bridgeCall{call.method, s.RelayURL + call.path, tt.token, call.body})
				if got.Status != tt.status || got.OK || got.Error == "" {
					t.Errorf("%s %s answered %+v, want %d", call.method, call.path, got, tt.status)
				}
				if got.Header.Get("WWW-Authenticate") == "" {
					t.Errorf("%s %s answered %d without WWW-Authenticate", call.method, call.path, got.Status)
				}
			}
		})
	}
	if got := s.Devices("alice"); len(got) != 1 || got[0].Token.Reveal() != "alice-phone" {
		t.Errorf("alice's devices are now %v", got)
	}
	if got := s.Pushes("alice"); len(got) != 0 {
		t.Errorf("pushes in alice's name: %v", got)
	}

	if fresh := fetchToken(t, s, "alice", s.AddClient("alice").Reveal()); fresh != beforeRotation {
		register(t, s, fresh, "alice-phone")
	}
	register(t, s, s.Token("alice"), "alice-tablet")
	if got := s.Devices("alice"); len(got) != 2 {
		t.Errorf("with the tokens of the new key, alice has the devices %v", got)
	}
}

func adminID(s *relaytest.BridgeService) string { id, _ := s.AdminCredentials(); return id }
func adminSecret(s *relaytest.BridgeService) string {
	_, secret := s.AdminCredentials()
	return secret.Reveal()
}

// forgeWithStranger signs with a key of its own under somebody else's key id.
func forgeWithStranger(t *testing.T, kid string, claims map[string]any) string {
	t.Helper()
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims(claims))
	token.Header["kid"] = kid
	signed, err := token.SignedString(strangersKey())
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func TestRelayWithoutTokenService(t *testing.T) {
	s := quick(t)
	token := s.Token("alice")
	s.Script(relaytest.EndpointJWKS, 1, relaytest.Answer{Status: http.StatusBadGateway})
	push := bridgeCall{"POST", s.RelayURL + "/push", token, `{"title":"t","body":"b"}`}
	if got := do(t, s.Client(), push); got.Status != http.StatusServiceUnavailable || got.OK {
		t.Errorf("answered %+v, want 503", got)
	}
}
