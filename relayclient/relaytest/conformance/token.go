package conformance

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
)

func tokenChecks() []Check {
	const trades = `Bridge → POST /token {"client_id","client_secret"}; cf-token → {"access_token":"<jwt>","token_type":"Bearer","expires_in":3600}.`
	const rs256 = "The bridge exchanges these credentials for a short-lived RS256 JWT (1h TTL) at POST /token."
	const invalidClient = `Any bad credential → 401 {"ok":false,"error":"invalid_client"}.`
	return []Check{
		{
			Name: "token-issue", Part: BridgeRelay, Level: Must, Source: bridgeProtocol, Sentence: trades,
			Does: "Trades the client's credentials for a token. Wants 200, an access_token, token_type Bearer (RFC 6749 leaves its case open) and an expires_in above zero.",
			run:  issuesToken,
		},
		{
			Name: "token-jwt", Part: BridgeRelay, Level: Must, Source: bridgeProtocol, Sentence: rs256,
			Does: "Looks at the token. Wants three base64url parts, a header with alg RS256 and a kid, and claims.",
			run: aboutToken(func(_ context.Context, _ *session, t *bridgeToken) error {
				if t.parseErr != nil {
					return t.parseErr
				}
				if alg, kid := t.parsed.Header["alg"], t.parsed.Header["kid"]; alg != "RS256" || kid == nil || kid == "" {
					return fmt.Errorf("a header with alg %v and kid %v; want RS256 and the id of a key", alg, kid)
				}
				return nil
			}),
		},
		{
			Name: "token-jwks", Part: BridgeRelay, Level: Must, Source: bridgeProtocol,
			Sentence: "The relay verifies the JWT signature against the JWKS published by cf-token.",
			Does:     "Fetches /.well-known/jwks.json. Wants, under the token's kid, an RSA key of 2048 bits at least by which the token's signature is right.",
			run:      aboutToken(publishesKey),
		},
		{
			Name: "token-subject", Part: BridgeRelay, Level: Must, Source: bridgeProtocol,
			Sentence: "The JWT sub claim (the bridge's client_id) is used as the isolation key for device storage.",
			Does:     "Wants the claim sub to be the client id.",
			run: aboutClaims(func(t *bridgeToken) error {
				if sub, _ := t.claims().GetSubject(); sub != t.clientID {
					return errors.New("the claim sub is not the client id")
				}
				return nil
			}),
		},
		{
			Name: "token-expiry", Part: BridgeRelay, Level: Must, Source: bridgeProtocol,
			Sentence: "Bridge caches JWT until (now + 3600s - 60s), then refreshes proactively.",
			Does:     "Compares exp and iat. Wants exp, and no earlier than expires_in seconds after iat: a bridge goes by expires_in.",
			run: aboutClaims(func(t *bridgeToken) error {
				lifetime, err := t.lifetime()
				if err != nil {
					return err
				}
				if said := t.answer.ExpiresIn; lifetime.Seconds() < said {
					return fmt.Errorf("the token expires %v after iat; expires_in says %v s", lifetime, said)
				}
				return nil
			}),
		},
		{
			Name: "token-one-hour", Part: BridgeRelay, Level: Open, Source: bridgeProtocol, Sentence: rs256,
			Does: "Compares exp and iat. Wants one hour between them. Open, because a bridge goes by expires_in.",
			run: aboutClaims(func(t *bridgeToken) error {
				lifetime, err := t.lifetime()
				if err == nil && lifetime != time.Hour {
					err = fmt.Errorf("the token lives for %v", lifetime)
				}
				return err
			}),
		},
		{
			Name: "token-claims", Part: BridgeRelay, Level: Open, Source: hostedBridge,
			Sentence: "Claims iss sub aud iat exp scope, scope push:write or admin.",
			Does:     "Wants all six claims, and push:write in scope.",
			run:      aboutClaims(hasHostedClaims),
		},
		{
			Name: "token-bad-secret", Part: BridgeRelay, Level: Must, Source: bridgeProtocol,
			Sentence: "Each bridge has a unique client_id and client_secret (provisioned once by the relay operator).",
			Does:     "Asks for a token with the client's id and another secret, an empty one, and one of another length. Wants each refused with a 4xx and no token.",
			run: func(ctx context.Context, s *session) error {
				id, secret := s.target.Bridge.ClientID, s.target.Bridge.ClientSecret.Reveal()
				for _, wrong := range []string{randomHex(32), "", secret + "0"} {
					if err := s.refusesToken(ctx, map[string]any{"client_id": id, "client_secret": wrong}); err != nil {
						return fmt.Errorf("a secret that is not the client's: %w", err)
					}
				}
				return nil
			},
		},
		{
			Name: "token-unknown-client", Part: BridgeRelay, Level: Must, Source: bridgeProtocol,
			Sentence: "Each bridge has a unique client_id and client_secret (provisioned once by the relay operator).",
			Does:     "Asks for a token with an id that nobody has, and the client's secret. Wants a 4xx and no token.",
			run: func(ctx context.Context, s *session) error {
				return s.refusesToken(ctx, map[string]any{"client_id": "nobody-" + randomHex(16), "client_secret": s.target.Bridge.ClientSecret.Reveal()})
			},
		},
		{
			Name: "token-malformed", Part: BridgeRelay, Level: Must, Source: bridgeProtocol, Sentence: trades,
			Does: "Asks for a token without client_id, without client_secret, with numbers for both, and with a body that is not JSON. Wants each refused with a 4xx and no token.",
			run: func(ctx context.Context, s *session) error {
				id, secret := s.target.Bridge.ClientID, s.target.Bridge.ClientSecret.Reveal()
				for _, body := range []any{
					map[string]any{"client_secret": secret}, map[string]any{"client_id": id},
					map[string]any{"client_id": 1, "client_secret": 2}, json.RawMessage(nil),
				} {
					if err := s.refusesToken(ctx, body); err != nil {
						return err
					}
				}
				return nil
			},
		},
		{
			Name: "token-invalid-client", Part: BridgeRelay, Level: Open, Source: hostedBridge, Sentence: invalidClient,
			Does: "Asks for a token with a wrong secret, and with an unknown id. Wants that answer to both, so that nobody can find out which clients there are.",
			run:  saysInvalidClient,
		},
	}
}

// A bridgeToken is the answer of the token service and what is in it.
type bridgeToken struct {
	clientID string
	answer   tokenAnswer
	parsed   *jwt.Token // not verified; nil if it cannot be read
	parseErr error
}

type tokenAnswer struct {
	AccessToken string  `json:"access_token"`
	TokenType   string  `json:"token_type"`
	ExpiresIn   float64 `json:"expires_in"` // seconds
}

func (t *bridgeToken) claims() jwt.MapClaims { return t.parsed.Claims.(jwt.MapClaims) }

// signed is the part of the token that its signature is about.
func (t *bridgeToken) signed() string {
	return t.answer.AccessToken[:strings.LastIndex(t.answer.AccessToken, ".")]
}

func (t *bridgeToken) lifetime() (time.Duration, error) {
	expires, err := t.claims().GetExpirationTime()
	if err != nil || expires == nil {
		return 0, errors.New("the claim exp is missing or no number")
	}
	issued, err := t.claims().GetIssuedAt()
	if err != nil || issued == nil {
		return 0, unknown("the claim iat is missing or no number, so that the lifetime does not show")
	}
	return expires.Sub(issued.Time), nil
}

func (s *session) askForToken(ctx context.Context, body any) (response, tokenAnswer, error) {
	encoded := []byte("client_id=bridge")
	if raw, broken := body.(json.RawMessage); !broken || raw != nil {
		encoded = encodeJSON(body)
	}
	r, err := s.send(ctx, request{method: http.MethodPost, url: s.target.Bridge.TokenURL + "/token", body: encoded})
	if err != nil {
		return response{}, tokenAnswer{}, err
	}
	var answer tokenAnswer
	if json.Unmarshal(r.body, &answer) != nil {
		answer = tokenAnswer{}
	}
	return r, answer, nil
}

func issuesToken(ctx context.Context, s *session) error {
	r, answer, err := s.askForToken(ctx, s.credentials())
	if err != nil {
		return err
	}
	if r.status != http.StatusOK || answer.AccessToken == "" {
		hint := ""
		if r.status/100 == 4 { // the suite cannot tell its own mistake from the service's
			hint = "; is the client known there, with this secret?"
		}
		return fmt.Errorf("answered %d, and no JSON with an access_token%s", r.status, hint)
	}
	if !strings.EqualFold(answer.TokenType, "Bearer") || answer.ExpiresIn <= 0 {
		return fmt.Errorf("token_type %q and expires_in %v; want Bearer and the seconds that the token lives", answer.TokenType, answer.ExpiresIn)
	}
	return nil
}

func (s *session) credentials() map[string]any {
	return map[string]any{"client_id": s.target.Bridge.ClientID, "client_secret": s.target.Bridge.ClientSecret.Reveal()}
}

// fetchToken gets the token of the session, once.
func (s *session) fetchToken(ctx context.Context) (*bridgeToken, error) {
	if s.bridge.token != nil {
		return s.bridge.token, nil
	}
	r, answer, err := s.askForToken(ctx, s.credentials())
	if err != nil {
		return nil, err
	}
	if answer.AccessToken == "" {
		return nil, unknown("there is no token to go on with: POST /token was answered %d", r.status)
	}
	token := &bridgeToken{clientID: s.target.Bridge.ClientID, answer: answer}
	token.parsed, _, token.parseErr = jwt.NewParser().ParseUnverified(answer.AccessToken, jwt.MapClaims{})
	if token.parseErr != nil {
		// The library's error may quote the token.
		token.parsed, token.parseErr = nil, errors.New("the access_token is not three base64url parts, the first two of them JSON")
	}
	s.bridge.token = token
	return token, nil
}

func aboutToken(expect func(context.Context, *session, *bridgeToken) error) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		token, err := s.fetchToken(ctx)
		if err != nil {
			return err
		}
		return expect(ctx, s, token)
	}
}

func aboutClaims(expect func(*bridgeToken) error) func(context.Context, *session) error {
	return aboutToken(func(_ context.Context, _ *session, t *bridgeToken) error {
		if t.parsed == nil {
			return unknown("the token is no JWT: see token-jwt")
		}
		return expect(t)
	})
}

func hasHostedClaims(t *bridgeToken) error {
	for _, name := range []string{"iss", "sub", "aud", "iat", "exp", "scope"} {
		if t.claims()[name] == nil {
			return fmt.Errorf("the claim %s is missing", name)
		}
	}
	scope, _ := t.claims()["scope"].(string)
	if n := count(strings.Fields(scope), "push:write"); n == 0 {
		return fmt.Errorf("the claim scope is %q", scope)
	}
	return nil
}

func (s *session) refusesToken(ctx context.Context, body any) error {
	r, answer, err := s.askForToken(ctx, body)
	if err != nil {
		return err
	}
	if answer.AccessToken != "" {
		return fmt.Errorf("answered %d with a token", r.status)
	}
	return r.refused()
}

func saysInvalidClient(ctx context.Context, s *session) error {
	for _, id := range []string{s.target.Bridge.ClientID, "nobody-" + randomHex(16)} {
		r, _, err := s.askForToken(ctx, map[string]any{"client_id": id, "client_secret": randomHex(32)})
		if err != nil {
			return err
		}
		if body := r.decodeBridge(); r.status != http.StatusUnauthorized || body.failed() != "invalid_client" {
			return fmt.Errorf("answered %v", r)
		}
	}
	return nil
}

// minKeyBits is the smallest RSA key for RS256 (RFC 7518, section 3.3).
const minKeyBits = 2048

// publicKey fetches the key of the token service by which t is signed.
func (s *session) publicKey(ctx context.Context, t *bridgeToken) (*rsa.PublicKey, error) {
	r, err := s.send(ctx, request{method: http.MethodGet, url: s.target.Bridge.TokenURL + "/.well-known/jwks.json"})
	if err != nil {
		return nil, err
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(r.body, &set); err != nil || r.status != http.StatusOK {
		return nil, fmt.Errorf("the JWK set was answered %v", r)
	}
	for _, raw := range set.Keys {
		jwk, err := jwkset.NewJWKFromRawJSON(raw, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
		if err != nil || jwk.Marshal().KID != t.parsed.Header["kid"] {
			continue
		}
		if key, isRSA := jwk.Key().(*rsa.PublicKey); isRSA {
			return key, nil
		}
	}
	return nil, fmt.Errorf("the JWK set has %d keys, and no RSA key under the token's kid", len(set.Keys))
}

func publishesKey(ctx context.Context, s *session, t *bridgeToken) error {
	if t.parsed == nil {
		return unknown("the token is no JWT: see token-jwt")
	}
	key, err := s.publicKey(ctx, t)
	if err != nil {
		return err
	}
	if bits := key.N.BitLen(); bits < minKeyBits {
		return fmt.Errorf("the key has %d bits; want %d", bits, minKeyBits)
	}
	if err := jwt.SigningMethodRS256.Verify(t.signed(), t.parsed.Signature, key); err != nil {
		return errors.New("the token is not signed with RS256 by the key that its kid names")
	}
	return nil
}
