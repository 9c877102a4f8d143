package conformance

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/golang-jwt/jwt/v5"
)

func bearerChecks() []Check {
	const bearer = "The bridge includes Authorization: Bearer <jwt> on every push relay request."
	const verified = "The relay verifies the JWT signature against the JWKS published by cf-token."
	const refetch = "JWT expired / invalid: re-fetch JWT, retry once."
	return []Check{
		{
			Name: "bearer-missing", Part: BridgeRelay, Level: Must, Source: bridgeProtocol, Sentence: bearer,
			Does: "Registers, unregisters and pushes without an Authorization header. Wants 401 each time, which is what makes a bridge fetch a new token.",
			run:  refusesBearer(func(context.Context, *session, *bridgeToken) (string, error) { return "", nil }),
		},
		{
			Name: "bearer-garbage", Part: BridgeRelay, Level: Must, Source: bridgeProtocol, Sentence: refetch,
			Does: "Registers, unregisters and pushes with a bearer that is no JWT. Wants 401 each time.",
			run: refusesBearer(func(context.Context, *session, *bridgeToken) (string, error) {
				return "not-a-token", nil
			}),
		},
		{
			Name: "bearer-tampered", Part: BridgeRelay, Level: Must, Source: bridgeProtocol,
			Sentence: "Because the client_id comes from a cryptographically signed JWT, no bridge can impersonate another or access its devices.",
			Does:     "Registers, unregisters and pushes with the client's token, in which sub is another client. Wants 401 each time.",
			run: refusesBearer(func(_ context.Context, _ *session, t *bridgeToken) (string, error) {
				parts := strings.Split(t.answer.AccessToken, ".")
				return parts[0] + "." + encodeSegment(t.impostor()) + "." + parts[2], nil
			}),
		},
		{
			Name: "bearer-alg-none", Part: BridgeRelay, Level: Must, Source: bridgeProtocol, Sentence: verified,
			Does: "Registers, unregisters and pushes with an unsigned token, of alg none. Wants 401 each time.",
			run: refusesBearer(func(_ context.Context, _ *session, t *bridgeToken) (string, error) {
				return t.sign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType)
			}),
		},
		{
			Name: "bearer-alg-hmac", Part: BridgeRelay, Level: Must, Source: bridgeProtocol, Sentence: verified,
			Does: "Registers, unregisters and pushes with a token of alg HS256, signed with the public key as its secret. Wants 401 each time.",
			run: refusesBearer(func(ctx context.Context, s *session, t *bridgeToken) (string, error) {
				key, err := s.publicKey(ctx, t)
				if err != nil {
					return "", unknown("%v", err)
				}
				der, err := x509.MarshalPKIXPublicKey(key)
				if err != nil {
					return "", err
				}
				return t.sign(jwt.SigningMethodHS256, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
			}),
		},
		{
			Name: "bearer-foreign-key", Part: BridgeRelay, Level: Must, Source: bridgeProtocol, Sentence: verified,
			Does: "Registers, unregisters and pushes with the client's token, under a signature that the token service's key has not made. Wants 401 each time.",
			run: refusesBearer(func(_ context.Context, _ *session, t *bridgeToken) (string, error) {
				// As good as a signature by another key, which takes long to make.
				signature := make([]byte, len(t.parsed.Signature))
				rand.Read(signature[1:]) // a number below the modulus
				return t.signed() + "." + base64.RawURLEncoding.EncodeToString(signature), nil
			}),
		},
		{
			Name: "bearer-unknown-kid", Part: BridgeRelay, Level: Must, Source: bridgeProtocol,
			Sentence: "cf-push-relay detects the unknown kid on the next request, invalidates its JWKS KV cache, and fetches the updated JWKS automatically.",
			Does:     "Registers, unregisters and pushes with a token of a kid that was never published. Wants 401 each time.",
			run: refusesBearer(func(_ context.Context, _ *session, t *bridgeToken) (string, error) {
				header := maps.Clone(t.parsed.Header)
				header["kid"] = randomHex(16)
				parts := strings.Split(t.answer.AccessToken, ".")
				return encodeSegment(header) + "." + parts[1] + "." + parts[2], nil
			}),
		},
	}
}

func encodeSegment(v any) string { return base64.RawURLEncoding.EncodeToString(encodeJSON(v)) }

// impostor is the token's claims, made out to another client.
func (t *bridgeToken) impostor() jwt.MapClaims {
	claims := maps.Clone(t.claims())
	claims["sub"] = "impostor-" + randomHex(16)
	return claims
}

// sign makes a token of its own from the token's claims and kid.
func (t *bridgeToken) sign(method jwt.SigningMethod, key any) (string, error) {
	forged := jwt.NewWithClaims(method, t.claims())
	forged.Header["kid"] = t.parsed.Header["kid"]
	return forged.SignedString(key)
}

// refusesBearer makes a check of a bearer token with which every request must be refused.
func refusesBearer(forge func(context.Context, *session, *bridgeToken) (string, error)) func(context.Context, *session) error {
	return aboutToken(func(ctx context.Context, s *session, t *bridgeToken) error {
		if t.parsed == nil {
			return unknown("the token is no JWT to make another of: see token-jwt")
		}
		forged, err := forge(ctx, s, t)
		if err != nil {
			return err
		}
		device := newBridgeDevice("ios")
		for _, call := range []struct {
			method, path string
			body         any
		}{
			{http.MethodPost, "/register", device.registration()},
			{http.MethodDelete, "/register", device.unregistration()},
			{http.MethodPost, "/push", map[string]any{"title": "Conformance", "body": "No device should show this."}},
		} {
			r, err := s.send(ctx, request{
				method: call.method, url: s.target.Bridge.RelayURL + call.path, bearer: forged, body: encodeJSON(call.body),
			})
			if err == nil {
				err = wantStatus(http.StatusUnauthorized)(r)
			}
			if err != nil {
				return fmt.Errorf("%s %s: %w", call.method, call.path, err)
			}
		}
		return nil
	})
}
