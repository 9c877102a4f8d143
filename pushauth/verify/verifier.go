// Package verify is the relay's half of the bridge protocol: it decides whether the bearer token of a request was
// issued by the token service, for this relay, and for what the request asks.
//
// A [Verifier] holds what one relay demands, and its handlers ask it first:
//
//	verifier, err := verify.New(verify.Config{
//		JWKSURL:  "https://token.example/.well-known/jwks.json",
//		Issuer:   "https://token.example",
//		Audience: "https://push.example",
//		Scope:    "push:write",
//	})
//	if err != nil {
//		return err
//	}
//	// in a handler
//	claims, err := verifier.Authenticate(r)
//	if err != nil {
//		http.Error(w, "not allowed", verify.StatusCode(err))
//		return
//	}
//
// It accepts RS256 alone (RFC 7518 section 3.3), picks the key by the
// token's "kid" from the token service's JWK set (RFC 7517), and requires the issuer, the audience, an expiry, a
// subject and a scope. A relay keeps what it stores under [Claims.Subject], the client id of the bridge: no other part
// of a request says who is calling.
//
// It is separate from package pushauth so that a bridge, which only presents tokens, does not carry this code.
//
// A [Verifier] is safe for concurrent use. [Config], [Claims] and errors are plain values: several goroutines may read
// one, and nobody may change it meanwhile.
package verify

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sealpush/sealpush/internal/answer"
	"github.com/sealpush/sealpush/internal/transport"
)

// MaxTokenSize is the size in bytes of the longest token that is looked at. The token service's own are about 600 bytes
// long.
const MaxTokenSize = 8 << 10

// MinKeyBits is the smallest RSA modulus that is trusted, from RFC 7518 section 3.3. Smaller keys of a JWK set are
// ignored, as are those above MaxKeyBits, which would make a verification slow.
const (
	MinKeyBits = 2048
	MaxKeyBits = 8192
)

// Config is what a token must say to be accepted. Every field is required.
type Config struct {
	JWKSURL  string // where the token service publishes its keys, http or https
	Issuer   string // the "iss" claim, compared byte for byte
	Audience string // must be among the "aud" claim
	Scope    string // must be among the space-separated "scope" claim, such as "push:write"
}

// Verifier verifies bearer tokens. It is safe for concurrent use, and it starts no goroutine that outlives the fetch of
// a key set (at most 5 s).
//
// The key set is fetched when it is first needed and held for an hour. A token whose "kid" is not in it, or that no key
// of its "kid" has signed, makes the set be fetched again, which is how a rotation is noticed. At most one fetch in 10
// s is made, however many forged tokens arrive, and all who need it share one.
//
// When the hour is over, the set is fetched again, and no token whose key is known waits for that. While the token
// service does not answer, the old set stays in use for at most 5 minutes; after that every token is
// [ErrKeysUnavailable]. A newer set replaces the old one whole: a key that it lacks is no longer trusted. Redirects are
// not followed.
type Verifier struct {
	config Config
	keys   *keySet
	parser *jwt.Parser
}

// New returns a Verifier. It makes no request: a relay can start before its token service does. The error says which
// field of config is missing or wrong.
func New(config Config, opts ...Option) (*Verifier, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	o := verifierConfig{client: &http.Client{Transport: transport.New()}, leeway: defaultLeeway, lifetime: defaultKeyLifetime}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("verify: an option is nil")
		}
		if err := opt(&o); err != nil {
			return nil, err
		}
	}
	return &Verifier{
		config: config,
		keys:   &keySet{url: config.JWKSURL, client: withoutRedirects(o.client), logger: o.logger, lifetime: o.lifetime},
		parser: jwt.NewParser(
			jwt.WithValidMethods([]string{jwt.SigningMethodRS256.Name}),
			jwt.WithExpirationRequired(),
			jwt.WithIssuedAt(),
			jwt.WithIssuer(config.Issuer),
			jwt.WithAudience(config.Audience),
			jwt.WithLeeway(o.leeway),
		),
	}, nil
}

// withoutRedirects returns a client that takes a redirect for the answer: keys are trusted because of the URL that they
// come from, and of its TLS certificate.
func withoutRedirects(client *http.Client) *http.Client {
	c := *client
	c.Transport = answer.Transport{Base: client.Transport}
	return &c
}

func (c Config) validate() error {
	for _, field := range []struct{ name, value string }{
		{"JWKSURL", c.JWKSURL}, {"Issuer", c.Issuer}, {"Audience", c.Audience}, {"Scope", c.Scope},
	} {
		if field.value == "" {
			return fmt.Errorf("verify: Config.%s is empty: all four fields are required", field.name)
		}
	}
	if strings.ContainsAny(c.Scope, " \t\r\n") {
		return errors.New("verify: Config.Scope names more than one scope: give the one that every request needs")
	}
	// The URL is not quoted, in case it carries credentials.
	u, err := url.Parse(c.JWKSURL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("verify: Config.JWKSURL is not an absolute http or https URL")
	case u.User != nil:
		return errors.New("verify: Config.JWKSURL carries credentials: key sets are public")
	}
	return nil
}

// Verify reports what token says, if all of it is right. Otherwise the error is one of
//   - [ErrInvalidToken]: not a token, not signed by the token service, expired or from the future, for another audience
//     or of another issuer;
//   - [ErrInsufficientScope]: a genuine token that does not carry the scope;
//   - [ErrKeysUnavailable]: the token cannot be judged, because the key set could not be fetched before ctx ended and
//     no earlier one in use has its key.
//
// Claim names are case-sensitive, and "exp", "nbf" and "iat" are JSON numbers, of dates from 1970 to 9999. No error
// quotes any part of the token. A nil ctx is [context.Background].
func (v *Verifier) Verify(ctx context.Context, token string) (Claims, error) {
	if len(token) > MaxTokenSize {
		return Claims{}, fmt.Errorf("%w: longer than %d bytes", ErrInvalidToken, MaxTokenSize)
	}
	if v == nil || v.parser == nil {
		return Claims{}, errors.New("verify: this Verifier was not made by New")
	}
	if ctx == nil {
		ctx = context.Background()
	}
	c, err := v.parse(ctx, token)
	if err != nil {
		return Claims{}, classify(err)
	}
	if c.Subject == "" {
		return Claims{}, fmt.Errorf("%w: no subject", ErrInvalidToken)
	}
	claims := Claims{
		Subject:   c.Subject,
		Issuer:    c.Issuer,
		Audience:  c.Audience,
		Scopes:    strings.Fields(c.Scope),
		ExpiresAt: c.ExpiresAt.Time,
	}
	if c.IssuedAt != nil {
		claims.IssuedAt = c.IssuedAt.Time
	}
	if !claims.HasScope(v.config.Scope) {
		return Claims{}, fmt.Errorf("%w: %q is required", ErrInsufficientScope, v.config.Scope)
	}
	return claims, nil
}

// parse checks the token's signature and its claims.
func (v *Verifier) parse(ctx context.Context, token string) (tokenClaims, error) {
	var claims tokenClaims
	var kid string
	var tried *heldKeys
	_, err := v.parser.ParseWithClaims(token, &claims, func(t *jwt.Token) (any, error) {
		var err error
		if kid, err = keyID(t); err != nil {
			return nil, err
		}
		if tried, err = v.keys.lookup(ctx, kid); err != nil {
			return nil, err
		}
		return jwt.VerificationKeySet{Keys: tried.byID[kid]}, nil
	})
	if tried == nil || !errors.Is(err, jwt.ErrTokenSignatureInvalid) {
		return claims, err
	}
	// The key may have been replaced under the same id.
	newer := v.keys.newer(ctx, tried)
	if newer == nil {
		return claims, err
	}
	claims = tokenClaims{}
	_, err = v.parser.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) {
		if !newer.has(kid) {
			return nil, errUnknownKey
		}
		return jwt.VerificationKeySet{Keys: newer.byID[kid]}, nil
	})
	return claims, err
}

// keyID returns the id of the key that t must be signed with.
func keyID(t *jwt.Token) (string, error) {
	// An extension marked critical must be understood (RFC 7515, section 4.1.11), and none is.
	if _, critical := t.Header["crit"]; critical {
		return "", errCriticalHeader
	}
	kid, _ := t.Header["kid"].(string)
	if kid == "" {
		return "", errNoKeyID
	}
	return kid, nil
}
