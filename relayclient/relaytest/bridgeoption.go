package relaytest

import (
	"crypto/rsa"
	"time"
)

// A BridgeOption changes how a [BridgeService] works. Every [ServerOption] is
// one too. It is a plain value.
type BridgeOption interface{ applyBridge(*bridgeConfig) }

type bridgeConfig struct {
	server        serverConfig
	tokenLifetime time.Duration
	hashRounds    int
	signingKey    *rsa.PrivateKey // nil to make one
}

func newBridgeConfig(opts []BridgeOption) bridgeConfig {
	config := bridgeConfig{tokenLifetime: time.Hour, hashRounds: 100_000}
	for _, opt := range opts {
		opt.applyBridge(&config)
	}
	return config
}

func (o ServerOption) applyBridge(c *bridgeConfig) { o(&c.server) }

type bridgeOption func(*bridgeConfig)

func (o bridgeOption) applyBridge(c *bridgeConfig) { o(c) }

// WithTokenLifetime sets how long tokens are valid: an hour unless it is set.
// Tokens count in whole seconds, so it panics on less than one.
func WithTokenLifetime(d time.Duration) BridgeOption {
	if d < time.Second {
		panic("relaytest: WithTokenLifetime: tokens live for at least a second")
	}
	return bridgeOption(func(c *bridgeConfig) { c.tokenLifetime = d.Truncate(time.Second) })
}

// WithHashRounds sets the PBKDF2 rounds that client secrets are hashed with:
// 100 000 unless it is set, as deployed. They take some 30 ms for each client and
// each token, and five times as long under the race detector, so that tests may
// want fewer. It panics on less than one.
func WithHashRounds(n int) BridgeOption {
	if n < 1 {
		panic("relaytest: WithHashRounds: at least one round is needed")
	}
	return bridgeOption(func(c *bridgeConfig) { c.hashRounds = n })
}

// WithSigningKey signs tokens with key, until [BridgeService.RotateKey], instead
// of with one that is made when it is first needed. That takes a tenth of a
// second or more, which adds up in a test that starts many services. It panics
// on a key of fewer than 2048 bits, whose tokens no relay accepts.
func WithSigningKey(key *rsa.PrivateKey) BridgeOption {
	if key.N.BitLen() < signingKeyBits {
		panic("relaytest: WithSigningKey: the key has fewer than 2048 bits")
	}
	return bridgeOption(func(c *bridgeConfig) { c.signingKey = key })
}
