package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sealpush/sealpush/internal/transport"
	"github.com/sealpush/sealpush/pushauth"
)

const (
	// DefaultCooldown is the time between two notifications (debouncing).
	DefaultCooldown = 30 * time.Second

	// callTimeout bounds one call whatever the caller's context says: 10 s for a token and 10 s for the relay.
	callTimeout = 20 * time.Second
)

// Client calls a push relay in a bridge's name: it registers and unregisters the phones' device tokens and wakes the
// phones. Make one with [New]. It keeps the debounce of its client id, so make exactly one for each client id: two
// would notify twice as often.
//
// A Client is safe for concurrent use. It starts no goroutine, so there is nothing to close.
type Client struct {
	clientConfig
	config Config
	source *pushauth.Source     // nil when push is disabled
	origin string               // the relay's, for the observer
	gate   atomic.Pointer[gate] // never nil

	registering chan struct{} // holds one token while a registration is under way
}

// clientConfig is what the options set.
type clientConfig struct {
	http     *http.Client
	logger   *slog.Logger // nil for slog.Default
	cooldown time.Duration
	observer func(context.Context, Observation)
}

// Option changes how a [Client] works.
type Option func(*clientConfig) error

// WithHTTPClient sets the client that calls the relay and the token service, instead of one that drops a dead
// connection within seconds. It is copied; the copy adds the bearer token and follows no redirects.
func WithHTTPClient(client *http.Client) Option {
	return func(c *clientConfig) error {
		if client == nil {
			return errors.New("bridge: WithHTTPClient: the client is nil")
		}
		c.http = client
		return nil
	}
}

// WithLogger sets the logger. The default, and nil, is what [slog.Default] returns at the time of each line.
func WithLogger(logger *slog.Logger) Option {
	return func(c *clientConfig) error {
		c.logger = logger
		return nil
	}
}

// WithCooldown sets the time from the start of one notification to the next, instead of [DefaultCooldown]. With 0 only
// notifications during a running one are dropped.
func WithCooldown(d time.Duration) Option {
	return func(c *clientConfig) error {
		if d < 0 {
			return fmt.Errorf("bridge: WithCooldown: %v is negative", d)
		}
		c.cooldown = d
		return nil
	}
}

// New returns a Client for the configuration. It makes no request.
//
// When push is disabled (see [Config.Enabled]) New logs which fields are missing, at Info when all are and at Warn when
// only some are, and the Client does nothing: Notify returns [StatusDisabled], Register and Unregister return nil, and
// HandleMessage keeps the phone's push messages from the agent all the same.
//
// Plain http URLs are taken, for services on the same machine; elsewhere they show tokens to everyone on the way.
func New(config Config, opts ...Option) (*Client, error) {
	config, err := config.cleaned()
	if err != nil {
		return nil, fmt.Errorf("bridge: %w", err)
	}
	c := &Client{config: config, clientConfig: clientConfig{http: &http.Client{Transport: transport.New()}, cooldown: DefaultCooldown}}
	c.gate.Store(&gate{})
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("bridge: an option is nil")
		}
		if err := opt(&c.clientConfig); err != nil {
			return nil, err
		}
	}
	if len(config.lookalikes) > 0 {
		c.log().Warn("the configuration has names like those of push notifications, which are not read", "names", config.lookalikes, "table", "["+table+"]")
	}
	if missing := config.missing(); len(missing) > 0 {
		level := slog.LevelWarn
		if len(missing) == len(configKeys) {
			level = slog.LevelInfo
		}
		c.log().Log(context.Background(), level, "push notifications disabled", "missing", missing)
		return c, nil
	}
	if err := c.connect(); err != nil {
		return nil, err
	}
	c.log().Info("push notifications enabled", "client_id", config.ClientID, "relay", config.URL)
	return c, nil
}

// connect checks an enabled configuration and prepares the HTTP client.
func (c *Client) connect() error {
	if err := cmp.Or(checkURL("url", c.config.URL), checkURL("token_url", c.config.TokenURL)); err != nil {
		return fmt.Errorf("bridge: %w", err)
	}
	opts := []pushauth.Option{pushauth.WithHTTPClient(c.http)}
	if c.logger != nil {
		opts = append(opts, pushauth.WithLogger(c.logger))
	}
	source, err := pushauth.NewSource(pushauth.Credentials{
		TokenURL:     c.config.TokenURL,
		ClientID:     c.config.ClientID,
		ClientSecret: c.config.ClientSecret,
	}, opts...)
	if err != nil {
		return fmt.Errorf("bridge: %w", err)
	}
	client := *c.http
	client.Transport = &pushauth.Transport{Source: source, Base: lossRecorder{client.Transport}}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.source, c.http, c.registering = source, &client, make(chan struct{}, 1)
	c.origin = originOf(c.config.URL)
	return nil
}

// Enabled says whether the configuration was complete. It is false for a nil and for a zero Client, which do nothing.
func (c *Client) Enabled() bool { return c != nil && c.source != nil }

func (c *Client) log() *slog.Logger {
	if c != nil && c.logger != nil {
		return c.logger
	}
	return slog.Default()
}
