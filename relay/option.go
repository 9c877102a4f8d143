package relay

import (
	"errors"
	"fmt"
	"log/slog"
)

// An Option sets up a [Relay]. [New] returns its error.
type Option func(*config) error

type config struct {
	forwarder Forwarder
	policy    *Policy // nil for none
	state     State
	maxCap    int // characters of ciphertext
	logger    *slog.Logger
	observer  func(Observation)
}

func newConfig(opts []Option) (config, error) {
	policy, _ := Policy{}.withDefaults()
	c := config{policy: &policy, maxCap: maxCap}
	for _, opt := range opts {
		if opt == nil {
			return config{}, errors.New("relay: an option is nil")
		}
		if err := opt(&c); err != nil {
			return config{}, err
		}
	}
	if c.forwarder == nil {
		return config{}, errors.New("relay: WithForwarder is missing: say which push service to forward to, such as relay/apns")
	}
	if _, ok := c.forwarder.(Digester); !ok && c.policy != nil && c.policy.MonthlyQuota > 0 {
		return config{}, errors.New("relay: the policy has a quota, and the forwarder cannot send digests: it must be a Digester")
	}
	if c.state == nil {
		state, err := NewMemoryState(DefaultMaxDevices)
		if err != nil {
			return config{}, err
		}
		c.state = state
	}
	return c, nil
}

// WithForwarder says which push service to forward to. There is no default.
func WithForwarder(f Forwarder) Option {
	return func(c *config) error {
		if f == nil {
			return errors.New("relay: WithForwarder: the forwarder is nil")
		}
		c.forwarder = f
		return nil
	}
}

// WithPolicy sets how often the relay lets a device be paged. Without it the relay does as the hosted one: see
// [Policy]. It refuses what [Policy] says.
func WithPolicy(p Policy) Option {
	return func(c *config) error {
		p, err := p.withDefaults()
		if err != nil {
			return err
		}
		c.policy = &p
		return nil
	}
}

// WithoutPolicy forwards every envelope that is right, however often it comes: for tests that send one alert again and
// again, or many to one phone.
func WithoutPolicy() Option {
	return func(c *config) error {
		c.policy = nil
		return nil
	}
}

// WithMaxCiphertext sets how long a ciphertext may be, in characters: 3800 unless it is set, which is what fits a
// message to Apple, and never less than the 3000 that every relay takes. A daemon that sends more is answered 400.
func WithMaxCiphertext(n int) Option {
	return func(c *config) error {
		if n < minCap || n > maxCap {
			return fmt.Errorf("relay: WithMaxCiphertext: %d is not between %d and %d characters", n, minCap, maxCap)
		}
		c.maxCap = n
		return nil
	}
}

// WithState keeps what the policy has to know somewhere else than in a [MemoryState] of the relay's own.
func WithState(s State) Option {
	return func(c *config) error {
		if s == nil {
			return errors.New("relay: WithState: the state is nil")
		}
		c.state = s
		return nil
	}
}

// WithLogger logs forwards that fail, at Warn: the collapse id and the error, never the device token. Without it, or
// when it is nil, they are logged to [slog.Default] at the time of each line.
func WithLogger(logger *slog.Logger) Option {
	return func(c *config) error {
		c.logger = logger
		return nil
	}
}

func (c *config) log() *slog.Logger {
	if c.logger == nil {
		return slog.Default()
	}
	return c.logger
}
