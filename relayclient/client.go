package relayclient

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sealpush/sealpush/internal/answer"
)

// MaxInFlight is how many POSTs a relay must be ready to see at once for one alert, and how many connections (relay
// protocol, "Inbound request"); no [Client.Send] goes over it. Sends that run at the same time each have their own
// limit: none waits for the connections of another.
const MaxInFlight = 100

// DefaultTimeout bounds each POST unless [WithTimeout] says otherwise.
const DefaultTimeout = 10 * time.Second

// maxPatience is below the 10 minutes after which a phone shows an alert as outdated (relay protocol, "Replay
// protection").
const maxPatience = 9 * time.Minute

// ErrClosed is the error of every [Outcome] of a Send after [Client.Close], and of a Notify after [Notifier.Close].
var ErrClosed = errors.New("relayclient: client or notifier is closed")

// A Client posts sealed alerts to one relay. It keeps its connections between alerts, so make one and keep it. It is
// safe for concurrent use.
type Client struct {
	config
	relay   *relay // behind a pointer, which fmt does not follow; it holds secrets
	pool    *pool  // nil with an HTTP client of the caller's
	short   shortRelay
	tooLate error // why a POST was abandoned after timeout
	clock   relayClock
	closed  atomic.Bool
}

// config is what the options set.
type config struct {
	http          *http.Client // the caller's; nil without WithHTTPClient
	tls           *tls.Config  // of the pool; nil for the default
	timeout       time.Duration
	patience      time.Duration
	maxCiphertext int // characters
	maxInFlight   int
	logger        *slog.Logger // nil for slog.Default at the time of a line
	observer      func(context.Context, Observation)
	observeNames  bool
}

// An Option changes a default of [New].
type Option func(*config) error

// WithTimeout bounds each POST, from the moment it has a connection until the relay's answer has been read; how long it
// may wait for the connection is [WithPatience]. The default is [DefaultTimeout]. The context given to Send bounds the
// whole alert.
func WithTimeout(d time.Duration) Option {
	return func(c *config) error {
		if d <= 0 {
			return fmt.Errorf("relayclient: WithTimeout: %v: must be positive", d)
		}
		c.timeout = d
		return nil
	}
}

// WithPatience bounds how long a Send waits for its first connection to the relay, while names are looked up, dials
// fail, or the relay hangs up before anything was sent. It is one wait for the whole Send: when it ends, every device
// that waits has its error. An answer of the relay starts it anew. The default is the timeout of a POST, the longest 9
// minutes. TLS errors and a proxy's refusal end it at once, because another attempt would fail in the same way.
func WithPatience(d time.Duration) Option {
	return func(c *config) error {
		if d <= 0 || d > maxPatience {
			return fmt.Errorf("relayclient: WithPatience: %v: must be positive, and at most %v", d, maxPatience)
		}
		c.patience = d
		return nil
	}
}

// WithTLSConfig sets the TLS configuration of the connections to the relay: for a private certificate authority or a
// client certificate. It is cloned. It cannot be combined with [WithHTTPClient], whose transport has its own.
func WithTLSConfig(tlsConfig *tls.Config) Option {
	return func(c *config) error {
		if tlsConfig == nil {
			return errors.New("relayclient: WithTLSConfig: the configuration is nil")
		}
		c.tls = tlsConfig.Clone()
		return nil
	}
}

// WithMaxInFlight bounds how many POSTs of one alert are in flight at once, from 1 to [MaxInFlight], which is the
// default.
func WithMaxInFlight(n int) Option {
	return func(c *config) error {
		if n < 1 || n > MaxInFlight {
			return fmt.Errorf("relayclient: WithMaxInFlight: %d: must be 1 to %d", n, MaxInFlight)
		}
		c.maxInFlight = n
		return nil
	}
}

// WithHTTPClient posts through a client of the caller's: for a transport of one's own, or a test server. It is copied,
// and follows no redirect whatever its CheckRedirect says.
//
// What a Client does for its own connections, it does not do for this client's: a failed dial is not repeated
// ([WithPatience] has no effect), connections on which a POST timed out or that the relay may be closing are used
// again, and their number is not bounded. For a proxy set HTTPS_PROXY, for a private certificate authority use
// [WithTLSConfig] instead.
func WithHTTPClient(client *http.Client) Option {
	return func(c *config) error {
		if client == nil {
			return errors.New("relayclient: WithHTTPClient: the client is nil")
		}
		own := *client
		c.http = &own
		return nil
	}
}

// WithLogger logs failures to logger. Without it, or when it is nil, they are logged to [slog.Default] at the time of
// each line.
func WithLogger(logger *slog.Logger) Option {
	return func(c *config) error {
		c.logger = logger
		return nil
	}
}

// New returns a client for the relay at relayURL, http or https with a host. Credentials in the URL are sent as HTTP
// Basic authentication, and appear in no error and no log.
func New(relayURL string, opts ...Option) (*Client, error) {
	relay, err := parseRelay(relayURL)
	if err != nil {
		return nil, err
	}
	c := &Client{relay: relay, config: config{timeout: DefaultTimeout, maxCiphertext: ciphertextFloor, maxInFlight: MaxInFlight}}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("relayclient: an option is nil")
		}
		if err := opt(&c.config); err != nil {
			return nil, err
		}
	}
	c.tooLate = fmt.Errorf("no answer within %v: %w", c.timeout, context.DeadlineExceeded)
	c.patience = cmp.Or(c.patience, min(c.timeout, maxPatience))
	if c.http != nil {
		if c.tls != nil {
			return nil, errors.New("relayclient: WithTLSConfig and WithHTTPClient: set the TLS configuration of the client's transport instead")
		}
		// A redirect would carry the envelope to a host that nobody chose.
		c.http.Transport = answer.Transport{Base: c.http.Transport}
		return c, nil
	}
	dialer, err := newDialer(relay.url, c.timeout, c.tls, newResolver().dial)
	if err != nil {
		return nil, err
	}
	c.pool = newPool(dialer, c.patience)
	return c, nil
}

// Close lets go of the connections. A Send that is running goes on to its end; later ones give [ErrClosed]. Close
// always returns at once. It does not touch the connections of a client that came with [WithHTTPClient].
func (c *Client) Close() {
	if c == nil {
		return
	}
	c.closed.Store(true)
	if c.pool != nil {
		c.pool.close()
	}
}

// String names the relay's host and nothing that could be secret.
func (c *Client) String() string {
	if c == nil || c.relay == nil {
		return "relayclient.Client(not made by New)"
	}
	return "relayclient.Client(" + c.relay.display + ")"
}

// Format prints what [Client.String] returns, whatever the verb.
func (c *Client) Format(s fmt.State, _ rune) { io.WriteString(s, c.String()) }

// LogValue logs what [Client.String] returns.
func (c *Client) LogValue() slog.Value { return slog.StringValue(c.String()) }
