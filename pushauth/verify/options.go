package verify

import (
	"errors"
	"log/slog"
	"net/http"
	"time"
)

const (
	defaultLeeway      = 30 * time.Second
	maxLeeway          = 5 * time.Minute
	defaultKeyLifetime = time.Hour
)

// An Option changes how a [Verifier] works. One that is nil or has a bad value is an error of [New].
type Option func(*verifierConfig) error

// verifierConfig is what the options set.
type verifierConfig struct {
	client   *http.Client
	logger   *slog.Logger
	leeway   time.Duration
	lifetime time.Duration
}

// WithHTTPClient fetches the key set with client instead of one that drops a dead connection within seconds. Its
// CheckRedirect is not called, because no redirect is followed.
func WithHTTPClient(client *http.Client) Option {
	return func(c *verifierConfig) error {
		if client == nil {
			return errors.New("verify: WithHTTPClient: the client is nil")
		}
		c.client = client
		return nil
	}
}

// WithLogger logs failed fetches of the key set to logger, at Warn. Nil means [slog.Default] at the time of each line,
// which is also what happens without this option.
func WithLogger(logger *slog.Logger) Option {
	return func(c *verifierConfig) error {
		c.logger = logger
		return nil
	}
}

// WithLeeway sets how far the clocks of relay and token service may be apart when "exp", "nbf" and "iat" are compared
// with the time: from 0 to 5 minutes, by default 30 s.
func WithLeeway(d time.Duration) Option {
	return func(c *verifierConfig) error {
		if d < 0 || d > maxLeeway {
			return errors.New("verify: WithLeeway: must be from 0 to 5 minutes")
		}
		c.leeway = d
		return nil
	}
}

// WithKeyLifetime sets for how long a fetched key set is used before it is fetched again: by default an hour, which is
// what the token service's Cache-Control says. A key that was withdrawn without a successor stays trusted for that
// long, and for at most 5 minutes more while the token service does not answer.
func WithKeyLifetime(d time.Duration) Option {
	return func(c *verifierConfig) error {
		if d <= 0 {
			return errors.New("verify: WithKeyLifetime: must be positive")
		}
		c.lifetime = d
		return nil
	}
}
