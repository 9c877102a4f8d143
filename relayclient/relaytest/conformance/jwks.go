package conformance

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"
)

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
	signed := t.answer.AccessToken[:strings.LastIndex(t.answer.AccessToken, ".")]
	if err := jwt.SigningMethodRS256.Verify(signed, t.parsed.Signature, key); err != nil {
		return errors.New("the token is not signed with RS256 by the key that its kid names")
	}
	return nil
}
