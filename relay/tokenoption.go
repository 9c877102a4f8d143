package relay

import (
	"crypto/rsa"
	"errors"
	"net/url"
	"strings"
	"time"
)

// A TokenOption sets up a [TokenService]. [NewTokenService] returns its error.
type TokenOption func(*tokenConfig) error

type tokenConfig struct {
	issuer, audience string
	lifetime         time.Duration
	hashRounds       int
	signingKey       *rsa.PrivateKey // nil to make one
}

func newTokenConfig(opts []TokenOption) (tokenConfig, error) {
	c := tokenConfig{lifetime: time.Hour, hashRounds: 100_000}
	for _, opt := range opts {
		if opt == nil {
			return tokenConfig{}, errors.New("relay: an option is nil")
		}
		if err := opt(&c); err != nil {
			return tokenConfig{}, err
		}
	}
	if c.issuer == "" || c.audience == "" {
		return tokenConfig{}, errors.New("relay: WithIssuer and WithAudience are missing: say who issues the tokens, and for which push relay")
	}
	return c, nil
}

// WithIssuer sets the base URL of the token service itself, which its tokens name as their issuer. There is no default.
func WithIssuer(baseURL string) TokenOption {
	return func(c *tokenConfig) (err error) {
		c.issuer, err = baseURLOf("WithIssuer", baseURL)
		return err
	}
}

// WithAudience sets the base URL of the push relay that the tokens are for. There is no default.
func WithAudience(baseURL string) TokenOption {
	return func(c *tokenConfig) (err error) {
		c.audience, err = baseURLOf("WithAudience", baseURL)
		return err
	}
}

func baseURLOf(option, base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return "", errors.New("relay: " + option + " needs an absolute http or https URL, without credentials or query")
	}
	return strings.TrimSuffix(base, "/"), nil
}

// WithTokenLifetime sets how long tokens are valid: an hour unless it is set. Tokens count in whole seconds, so less
// than one is an error.
func WithTokenLifetime(d time.Duration) TokenOption {
	return func(c *tokenConfig) error {
		if d < time.Second {
			return errors.New("relay: WithTokenLifetime: tokens live for at least a second")
		}
		c.lifetime = d.Truncate(time.Second)
		return nil
	}
}

// WithHashRounds sets the PBKDF2 rounds that client secrets are hashed with: 100 000 unless it is set, as deployed.
// They take some 30 ms for each client and each token, and five times as long under the race detector, so that tests
// may want fewer. Less than one is an error.
func WithHashRounds(n int) TokenOption {
	return func(c *tokenConfig) error {
		if n < 1 {
			return errors.New("relay: WithHashRounds: at least one round is needed")
		}
		c.hashRounds = n
		return nil
	}
}

// WithSigningKey signs tokens with key, until [TokenService.RotateKey], instead of with one that is made when it is
// first needed. A key of fewer than 2048 bits, whose tokens no relay accepts, is an error.
func WithSigningKey(key *rsa.PrivateKey) TokenOption {
	return func(c *tokenConfig) error {
		if key == nil || key.N.BitLen() < signingKeyBits {
			return errors.New("relay: WithSigningKey: the key has fewer than 2048 bits")
		}
		c.signingKey = key
		return nil
	}
}
