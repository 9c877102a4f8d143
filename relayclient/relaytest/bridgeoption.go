package relaytest

import "time"

// A BridgeOption changes how a [BridgeService] works. Every [ServerOption] is
// one too.
type BridgeOption interface{ applyBridge(*bridgeConfig) }

type bridgeConfig struct {
	server        serverConfig
	tokenLifetime time.Duration
	hashRounds    int
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
