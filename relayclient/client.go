package relayclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sealpush/sealpush/internal/answer"
)

// MaxInFlight is how many POSTs a relay must be ready to see at once for one
// alert (relay protocol, "Inbound request"); no [Client.Send] goes over it. Two
// that run at the same time may have 200 together.
const MaxInFlight = 100

// DefaultTimeout bounds each POST unless [WithTimeout] says otherwise.
const DefaultTimeout = 10 * time.Second

// ErrClosed is the error of every [Outcome] of a Send after [Client.Close].
var ErrClosed = errors.New("relayclient: client is closed")

// A Client posts sealed alerts to one relay. It keeps its connections between
// alerts, so make one and keep it. It is safe for concurrent use.
type Client struct {
	relay         *relay // behind a pointer, which fmt does not follow; it holds secrets
	http          *http.Client
	pool          *pool // behind http, nil with WithHTTPClient
	timeout       time.Duration
	maxCiphertext int
	short         shortRelay
	tooLate       error // why a POST was abandoned after timeout
	maxInFlight   int
	logger        *slog.Logger
	clock         relayClock
	closed        atomic.Bool
}

// An Option changes a default of [New]. It is a plain value.
type Option func(*Client) error

// WithTimeout bounds each POST, from the moment it has its slot among those in
// flight until the relay's answer has been read. The default is
// [DefaultTimeout]. The context given to Send bounds the whole alert.
func WithTimeout(d time.Duration) Option {
	return func(c *Client) error {
		if d <= 0 {
			return fmt.Errorf("relayclient: timeout %v: must be positive", d)
		}
		c.timeout = d
		return nil
	}
}

// WithMaxInFlight bounds how many POSTs of one alert are in flight at once, from
// 1 to [MaxInFlight], which is the default.
func WithMaxInFlight(n int) Option {
	return func(c *Client) error {
		if n < 1 || n > MaxInFlight {
			return fmt.Errorf("relayclient: %d POSTs in flight: must be 1 to %d", n, MaxInFlight)
		}
		c.maxInFlight = n
		return nil
	}
}

// WithHTTPClient posts through a client of the caller's: for a proxy, a private
// certificate authority, or a test server. It is copied, and follows no
// redirect whatever its CheckRedirect says.
func WithHTTPClient(client *http.Client) Option {
	return func(c *Client) error {
		if client == nil {
			return errors.New("relayclient: WithHTTPClient(nil): leave the option out for the default client")
		}
		own := *client
		c.http = &own
		return nil
	}
}

// WithLogger logs failures to logger. The default is [slog.Default] at the time
// of each failure.
func WithLogger(logger *slog.Logger) Option {
	return func(c *Client) error {
		c.logger = logger
		return nil
	}
}

// New returns a client for the relay at relayURL, http or https with a host.
// Credentials in the URL are sent as HTTP Basic authentication, and appear in
// no error and no log.
func New(relayURL string, opts ...Option) (*Client, error) {
	relay, err := parseRelay(relayURL)
	if err != nil {
		return nil, err
	}
	c := &Client{relay: relay, timeout: DefaultTimeout, maxCiphertext: ciphertextFloor, maxInFlight: MaxInFlight}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("relayclient: an Option is nil: leave it out")
		}
		if err := opt(c); err != nil {
			return nil, err
		}
	}
	c.tooLate = fmt.Errorf("no answer within %v: %w", c.timeout, context.DeadlineExceeded)
	if c.http == nil {
		c.pool = newPool(c.timeout)
		c.http = &http.Client{Transport: c.pool}
	}
	// A redirect would carry the envelope to a host that nobody chose.
	c.http.Transport = answer.Transport{Base: c.http.Transport}
	return c, nil
}

// Close lets go of the connections. A Send that is running goes on to its end;
// later ones give [ErrClosed]. Close always returns at once. It does not touch
// the connections of a client that came with [WithHTTPClient].
func (c *Client) Close() {
	if c == nil {
		return
	}
	c.closed.Store(true)
	c.pool.close()
}

// String names the relay's host and nothing that could be secret.
func (c *Client) String() string {
	if c == nil || c.http == nil {
		return "relayclient.Client(not made by New)"
	}
	return "relayclient.Client(" + c.relay.display + ")"
}

// Format prints what [Client.String] returns, whatever the verb.
func (c *Client) Format(s fmt.State, _ rune) { io.WriteString(s, c.String()) }

// LogValue logs what [Client.String] returns.
func (c *Client) LogValue() slog.Value { return slog.StringValue(c.String()) }
