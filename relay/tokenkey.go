package relay

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"math/big"

	"github.com/golang-jwt/jwt/v5"
)

// signingKey is the RSA key that a token service signs with.
type signingKey struct {
	id      string
	private *rsa.PrivateKey
}

const signingKeyBits = 2048

func makeSigningKey() *signingKey {
	private, err := rsa.GenerateKey(rand.Reader, signingKeyBits)
	if err != nil {
		panic(err) // of that size only if the system has no randomness
	}
	return newSigningKey(private)
}

func newSigningKey(private *rsa.PrivateKey) *signingKey {
	sum := sha256.Sum256(private.N.Bytes())
	return &signingKey{id: hex.EncodeToString(sum[:])[:16], private: private}
}

// sign returns the compact form of an RS256 JWT with the key's id in its header.
func (k *signingKey) sign(claims map[string]any) string {
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims(claims))
	token.Header["kid"] = k.id
	signed, err := token.SignedString(k.private)
	if err != nil {
		panic(err)
	}
	return signed
}

// jwkSet is a JWK set of one public RSA key (RFC 7517, RFC 7518 section 6.3).
type jwkSet struct {
	Keys []jwk `json:"keys"`
}

type jwk struct {
	KeyType   string `json:"kty"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid"`
	Modulus   string `json:"n"`
	Exponent  string `json:"e"`
}

func (k *signingKey) public() jwkSet {
	return jwkSet{Keys: []jwk{{
		KeyType:   "RSA",
		Use:       "sig",
		Algorithm: "RS256",
		KeyID:     k.id,
		Modulus:   base64.RawURLEncoding.EncodeToString(k.private.N.Bytes()),
		Exponent:  base64.RawURLEncoding.EncodeToString(big.NewInt(int64(k.private.E)).Bytes()),
	}}}
}
