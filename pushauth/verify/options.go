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

// An Option changes how a [Verifier] works. It is a plain value.
type Option func(*options)

type options struct {
	client   *http.Client
	logger   *slog.Logger
	leeway   time.Duration
	lifetime time.Duration
}

func (o options) validate() error {
	switch {
	case o.client == nil:
		return errors.New("verify: WithHTTPClient needs a client")
	case o.leeway < 0 || o.leeway > maxLeeway:
		return errors.New("verify: WithLeeway takes from 0 to 5 minutes")
	case o.lifetime <= 0:
		return errors.New("verify: WithKeyLifetime needs a positive duration")
	}
	return nil
}

// WithHTTPClient fetches the key set with client instead of
// one that gives up dead connections soon.
func WithHTTPClient(client *http.Client) Option { return func(o *options) { o.client = client } }

// WithLogger logs failed fetches of the key set to logger, at Warn, instead of
// to [slog.Default].
func WithLogger(logger *slog.Logger) Option { return func(o *options) { o.logger = logger } }

// WithLeeway sets how far the clocks of relay and token service may be apart
// when "exp", "nbf" and "iat" are compared with the time: 30 s unless it is
// set, at most 5 min.
func WithLeeway(d time.Duration) Option { return func(o *options) { o.leeway = d } }

// WithKeyLifetime sets for how long a fetched key set is used before it is
// fetched again, and so how long a key that was withdrawn without a successor
// stays trusted: an hour unless it is set, which is what the token service's
// Cache-Control says.
func WithKeyLifetime(d time.Duration) Option { return func(o *options) { o.lifetime = d } }
