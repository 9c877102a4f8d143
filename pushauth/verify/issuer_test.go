package verify_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/sealpush/sealpush/pushauth/verify"
)

const (
	issuer   = "https://token.example"
	audience = "https://push.example"
)

// Keys take a while to make, so the tests share them.
var (
	firstKey  = rsaKey(2048)
	secondKey = rsaKey(2048)
	smallKey  = rsaKey(1024)
	largeKey  = sync.OnceValue(func() *rsa.PublicKey {
		n := new(big.Int).SetBit(big.NewInt(1), 8200, 1) // no key: it is only looked at
		return &rsa.PublicKey{N: n, E: 65537}
	})
)

func rsaKey(bits int) func() *rsa.PrivateKey {
	return sync.OnceValue(func() *rsa.PrivateKey {
		key, err := rsa.GenerateKey(rand.Reader, bits)
		if err != nil {
			panic(err)
		}
		return key
	})
}

// jwkOf is the JWK of a key, with members changed ("" leaves one out).
func jwkOf(kid string, key *rsa.PublicKey, changes ...string) map[string]any {
	jwk := map[string]any{
		"kty": "RSA", "use": "sig", "alg": "RS256", "kid": kid,
		"n": base64.RawURLEncoding.EncodeToString(key.N.Bytes()),
		"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes()),
	}
	for i := 0; i < len(changes); i += 2 {
		jwk[changes[i]] = changes[i+1]
		if changes[i+1] == "" {
			delete(jwk, changes[i])
		}
	}
	return jwk
}

func ecJWK(kid string) map[string]any {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		panic(err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	return map[string]any{"kty": "EC", "crv": "P-256", "kid": kid, "x": encode(point[1:33]), "y": encode(point[33:])}
}

func setOf(keys ...map[string]any) string {
	set, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		panic(err)
	}
	return string(set)
}

// keyServer answers for the token service's JWK set without a socket, so that it
// serves inside a bubble.
type keyServer struct {
	mu      sync.Mutex
	answer  func(*http.Request) (*http.Response, error)
	fetches int
}

func (s *keyServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	s.fetches++
	answer := s.answer
	s.mu.Unlock()
	return answer(r)
}

func (s *keyServer) set(answer func(*http.Request) (*http.Response, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

func (s *keyServer) serve(status int, body string) {
	s.set(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader(body)), Header: http.Header{}}, nil
	})
}

func (s *keyServer) fail(err error) {
	s.set(func(*http.Request) (*http.Response, error) { return nil, err })
}

// hang answers only when the request is given up.
func (s *keyServer) hang() {
	s.set(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
}

func (s *keyServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fetches
}

// newVerifier returns a verifier of push tokens, and the server of its keys:
// firstKey, under the id "first".
func newVerifier(t testing.TB, opts ...verify.Option) (*verify.Verifier, *keyServer) {
	t.Helper()
	keys := &keyServer{}
	keys.serve(http.StatusOK, setOf(jwkOf("first", &firstKey().PublicKey)))
	opts = append([]verify.Option{verify.WithHTTPClient(&http.Client{Transport: keys})}, opts...)
	v, err := verify.New(verify.Config{
		JWKSURL:  issuer + "/.well-known/jwks.json",
		Issuer:   issuer,
		Audience: audience,
		Scope:    "push:write",
	}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return v, keys
}

// good are the claims of a token that is accepted, with changes (nil leaves one
// out).
func good(changes ...any) jwt.MapClaims {
	now := time.Now().Unix()
	claims := jwt.MapClaims{
		"iss": issuer, "sub": "bridge-home-office", "aud": audience,
		"iat": now, "exp": now + 3600, "scope": "push:write",
	}
	for i := 0; i < len(changes); i += 2 {
		claims[changes[i].(string)] = changes[i+1]
		if changes[i+1] == nil {
			delete(claims, changes[i].(string))
		}
	}
	return claims
}

// sign returns a token with a "kid", unless that is "".
func sign(t testing.TB, method jwt.SigningMethod, kid string, key any, claims jwt.Claims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	if kid != "" {
		token.Header["kid"] = kid
	}
	signed, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func signGood(t testing.TB, kid string, key *rsa.PrivateKey) string {
	t.Helper()
	return sign(t, jwt.SigningMethodRS256, kid, key, good())
}
