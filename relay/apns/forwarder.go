package apns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sealpush/sealpush/internal/answer"
	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/secret"
)

// Apple's push service. Builds of an app that are run from Xcode have device tokens of the sandbox, those from
// TestFlight and the App Store of production.
const (
	Production = "https://api.push.apple.com"
	Sandbox    = "https://api.sandbox.push.apple.com"
)

// A Forwarder sends messages to Apple's push service for one app. It is safe for concurrent use and keeps one HTTP/2
// connection for as long as it can.
type Forwarder struct {
	topic  string
	tokens *tokenSource
	config
}

// config is what the options set.
type config struct {
	host   string
	client *http.Client
}

var _ relay.Digester = (*Forwarder)(nil)

// An Option sets up a [Forwarder]. [New] returns its error.
type Option func(*config) error

// WithHost sends to [Sandbox], or to the base URL of any service that speaks as Apple's does, instead of to
// [Production].
func WithHost(baseURL string) Option {
	return func(c *config) error {
		host, err := url.Parse(baseURL)
		if err != nil || host.Scheme != "https" || host.Host == "" || host.User != nil || strings.Trim(host.Path, "/") != "" || host.RawQuery != "" {
			return errors.New("apns: WithHost: the host must be an https URL without path or credentials, such as apns.Sandbox")
		}
		c.host = host.Scheme + "://" + host.Host
		return nil
	}
}

// WithHTTPClient sends with a client of your own, which must speak HTTP/2. The default one honours the usual proxy
// variables and notices a connection that has died.
func WithHTTPClient(client *http.Client) Option {
	return func(c *config) error {
		if client == nil {
			return errors.New("apns: WithHTTPClient: the client is nil")
		}
		c.client = client
		return nil
	}
}

// New makes a forwarder for the app whose bundle id is topic. It refuses an empty topic, no key, no client, and a host
// that is not an https URL without a path.
func New(key *Key, topic string, opts ...Option) (*Forwarder, error) {
	switch {
	case key == nil:
		return nil, fmt.Errorf("%w: no key", ErrInvalidKey)
	case topic == "":
		return nil, errors.New("apns: the topic must be the app's bundle id")
	}
	f := &Forwarder{topic: topic, tokens: &tokenSource{key: key}, config: config{host: Production, client: newClient()}}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("apns: an option is nil")
		}
		if err := opt(&f.config); err != nil {
			return nil, err
		}
	}
	return f, nil
}

func newClient() *http.Client {
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	return &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			Protocols:           &protocols,
			TLSHandshakeTimeout: 10 * time.Second,
			// A connection that a middlebox has dropped is found out between pages, not by the next one.
			HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 10 * time.Second},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Close closes connections that are idle.
func (f *Forwarder) Close() { f.client.CloseIdleConnections() }

// Forward makes the message for an envelope and sends it, once. The error is a [*relay.ForwardError] and holds neither
// the device token nor the provider token.
func (f *Forwarder) Forward(ctx context.Context, e relay.Envelope) error {
	return f.send(ctx, NewMessage(e, time.Now()))
}

// ForwardDigest is like Forward, for a digest.
func (f *Forwarder) ForwardDigest(ctx context.Context, device secret.Text) error {
	return f.send(ctx, NewDigest(device, time.Now()))
}

func (f *Forwarder) send(ctx context.Context, m Message) error {
	if ctx == nil {
		ctx = context.Background()
	}
	token, err := f.tokens.token(time.Now())
	if err != nil {
		return &relay.ForwardError{Err: err}
	}
	address := f.host + "/3/device/" + url.PathEscape(m.Device.Reveal())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(m.Payload))
	if err != nil {
		return &relay.ForwardError{Err: answer.Error(withoutURL(err), m.Device.Reveal())}
	}
	maps.Copy(req.Header, m.Header)
	req.Header.Set("apns-topic", f.topic)
	req.Header.Set("authorization", "bearer "+token)
	req.Header.Set("content-type", "application/json")
	resp, err := f.client.Do(req)
	if err != nil { // a caller's transport may quote the request
		return &relay.ForwardError{Err: answer.Error(withoutURL(err), m.Device.Reveal(), token)}
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // cut short, it has no reason to give
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return refusal(resp, body)
}

// withoutURL takes the address, which holds the device token, out of an error.
func withoutURL(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}

// Format prints the forwarder by its topic and host, for every verb.
func (f *Forwarder) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "APNs forwarder for %s at %s", f.topic, f.host)
}
