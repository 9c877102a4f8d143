package relay

import (
	"errors"
	"log/slog"
	"net/http"
)

// A BridgeOption sets up a [Bridge]. [NewBridge] returns its error.
type BridgeOption func(*bridgeConfig) error

type bridgeConfig struct {
	forwarder     BridgeForwarder
	authenticator Authenticator
	onPush        func(BridgePush)
	logger        *slog.Logger
	maxDevices    int
	maxBody       int
	outageStatus  int
	pushData      bool
}

func newBridgeConfig(opts []BridgeOption) (bridgeConfig, error) {
	c := bridgeConfig{maxDevices: 256, maxBody: maxBridgeBody, outageStatus: http.StatusServiceUnavailable}
	for _, opt := range opts {
		if opt == nil {
			return bridgeConfig{}, errors.New("relay: an option is nil")
		}
		if err := opt(&c); err != nil {
			return bridgeConfig{}, err
		}
	}
	switch {
	case c.authenticator == nil:
		return bridgeConfig{}, errors.New("relay: WithAuthenticator is missing: say whose tokens the relay takes")
	case c.forwarder == nil:
		return bridgeConfig{}, errors.New("relay: WithBridgeForwarder is missing: say which push service to forward to")
	}
	return c, nil
}

// WithBridgeForwarder says which push service to forward to. There is no default.
func WithBridgeForwarder(f BridgeForwarder) BridgeOption {
	return func(c *bridgeConfig) error {
		if f == nil {
			return errors.New("relay: WithBridgeForwarder: the forwarder is nil")
		}
		c.forwarder = f
		return nil
	}
}

// WithAuthenticator says whose tokens the relay takes, usually by a [verify.Verifier] for the scope "push:write". There
// is no default.
func WithAuthenticator(a Authenticator) BridgeOption {
	return func(c *bridgeConfig) error {
		if a == nil {
			return errors.New("relay: WithAuthenticator: the authenticator is nil")
		}
		c.authenticator = a
		return nil
	}
}

// WithBridgeLogger logs forwards that fail, at Warn: the client id, the platform and the error, never the device token.
// Without it, or when it is nil, they are logged to [slog.Default] at the time of each line.
func WithBridgeLogger(logger *slog.Logger) BridgeOption {
	return func(c *bridgeConfig) error {
		c.logger = logger
		return nil
	}
}

// WithMaxDevices sets how many devices one client may have: 256 unless it is set. The registration of one more is
// answered 409. Less than one is an error.
func WithMaxDevices(n int) BridgeOption {
	return func(c *bridgeConfig) error {
		if n < 1 {
			return errors.New("relay: WithMaxDevices: a client needs at least one device")
		}
		c.maxDevices = n
		return nil
	}
}

// WithMaxBody sets how many bytes a request's body may have: 8192 unless it is set, which is twice what Apple and
// Google take. The deployed relay takes 1 MiB. It is from 4096 bytes to 1 MiB.
func WithMaxBody(bytes int) BridgeOption {
	return func(c *bridgeConfig) error {
		if bytes < 4<<10 || bytes > 1<<20 {
			return errors.New("relay: WithMaxBody: must be from 4096 bytes to 1 MiB")
		}
		c.maxBody = bytes
		return nil
	}
}

// WithPushData forwards the member "data" of a push too. The deployed relay drops it, and so does this one without the
// option.
func WithPushData() BridgeOption {
	return func(c *bridgeConfig) error {
		c.pushData = true
		return nil
	}
}

// WithOutageStatus sets what a request is answered while the token service's keys cannot be fetched: 503 unless it is
// set. The deployed relay answers 401, after which a bridge drops a good token and fetches another one.
func WithOutageStatus(status int) BridgeOption {
	return func(c *bridgeConfig) error {
		if status != http.StatusUnauthorized && status != http.StatusServiceUnavailable {
			return errors.New("relay: WithOutageStatus: must be 401 or 503")
		}
		c.outageStatus = status
		return nil
	}
}

// OnPush calls f with each push and its results, once they are known, those included that met no device. It is called
// by many goroutines at once.
func OnPush(f func(BridgePush)) BridgeOption {
	return func(c *bridgeConfig) error {
		c.onPush = f
		return nil
	}
}
