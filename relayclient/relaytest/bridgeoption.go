package relaytest

import (
	"crypto/rsa"
	"time"

	"github.com/sealpush/sealpush/relay"
)

// A BridgeOption changes how a [BridgeService] works. Every [ServerOption] is one too.
type BridgeOption interface{ applyBridge(*bridgeConfig) error }

type bridgeConfig struct {
	server serverConfig
	tokens []relay.TokenOption
	bridge []relay.BridgeOption
	lossy  bool
}

func newBridgeConfig(opts []BridgeOption) bridgeConfig {
	var config bridgeConfig
	for _, opt := range opts {
		if opt == nil {
			must(errNilOption)
		}
		must(opt.applyBridge(&config))
	}
	return config
}

func (o ServerOption) applyBridge(c *bridgeConfig) error {
	if o == nil {
		return errNilOption
	}
	return o(&c.server)
}

type bridgeOption func(*bridgeConfig) error

func (o bridgeOption) applyBridge(c *bridgeConfig) error { return o(c) }

// WithTokens sets up the token service.
func WithTokens(opts ...relay.TokenOption) BridgeOption {
	return bridgeOption(func(c *bridgeConfig) error {
		c.tokens = append(c.tokens, opts...)
		return nil
	})
}

// WithBridge sets up the push relay.
func WithBridge(opts ...relay.BridgeOption) BridgeOption {
	return bridgeOption(func(c *bridgeConfig) error {
		c.bridge = append(c.bridge, opts...)
		return nil
	})
}

// WithTokenLifetime is WithTokens of [relay.WithTokenLifetime].
func WithTokenLifetime(d time.Duration) BridgeOption { return WithTokens(relay.WithTokenLifetime(d)) }

// WithHashRounds is WithTokens of [relay.WithHashRounds]. Tests want few: the deployed 100 000 take some 30 ms for each
// client and each token, and five times as long under the race detector.
func WithHashRounds(n int) BridgeOption { return WithTokens(relay.WithHashRounds(n)) }

// WithSigningKey is WithTokens of [relay.WithSigningKey]. Making a key takes a tenth of a second or more, which adds up
// in a test that starts many services.
func WithSigningKey(key *rsa.PrivateKey) BridgeOption { return WithTokens(relay.WithSigningKey(key)) }
