package webpush

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	webpush "github.com/SherClockHolmes/webpush-go"

	"github.com/sealpush/sealpush/internal/answer"
	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/secret"
)

const (
	// sendTimeout bounds one message, from the dial to the end of the answer.
	sendTimeout = 20 * time.Second
	// storeTimeout bounds a call of the store.
	storeTimeout = 2 * time.Second
	// maxAnswer is how much of an answer is read, in bytes.
	maxAnswer = 4096
)

// A Forwarder sends messages to browsers through their push services. It is safe for concurrent use.
type Forwarder struct {
	config
	key     *Key
	contact string // without "mailto:", as the library wants it
	store   Store
	client  *client
}

// config is what the options set.
type config struct {
	services []string
	networks []netip.Prefix
	tls      *tls.Config
	fallback relay.Forwarder
}

var (
	_ relay.Digester = (*Forwarder)(nil)
	_ relay.Finder   = (*Forwarder)(nil)
)

// An Option sets up a [Forwarder]. [New] returns its error.
type Option func(*config) error

// WithPushService allows one more push service than those of the common browsers (Google's, Mozilla's, Apple's and
// Microsoft's): a host in lower case, with its port if that is not 443, or all subdomains of one: "*.push.example.com".
func WithPushService(host string) Option {
	return func(c *config) error {
		if err := checkService(host); err != nil {
			return fmt.Errorf("webpush: WithPushService: %w", err)
		}
		c.services = append(c.services, host)
		return nil
	}
}

// WithPrivateNetworks allows push services at addresses that are not of the public internet, such as 10.1.0.0/16.
// Without it, the forwarder connects to none: an endpoint comes from a stranger, and must not reach what the relay's
// host can.
func WithPrivateNetworks(networks ...netip.Prefix) Option {
	return func(c *config) error {
		if slices.ContainsFunc(networks, func(n netip.Prefix) bool { return !n.IsValid() || n.Addr().Is4In6() }) {
			return errors.New("webpush: WithPrivateNetworks: a network must be valid, such as 10.1.0.0/16 or fd00::/8")
		}
		c.networks = append(c.networks, networks...)
		return nil
	}
}

// WithTLSConfig sets up TLS towards push services, such as with a private CA. The configuration is cloned.
func WithTLSConfig(tlsConfig *tls.Config) Option {
	return func(c *config) error {
		if tlsConfig == nil {
			return errors.New("webpush: WithTLSConfig: the configuration is nil")
		}
		c.tls = tlsConfig.Clone()
		return nil
	}
}

// WithFallback passes alerts for device tokens that no browser has to another forwarder, such as that of relay/apns:
// one relay then serves both kinds of phones. Digests reach those of the fallback only if it is a [relay.Digester].
func WithFallback(f relay.Forwarder) Option {
	return func(c *config) error {
		if f == nil {
			return errors.New("webpush: WithFallback: the forwarder is nil")
		}
		c.fallback = f
		return nil
	}
}

// New makes a forwarder. The contact is a mailto: or https: address at which push services can reach the relay's
// operator; it is sent to them with each message.
func New(key *Key, contact string, store Store, opts ...Option) (*Forwarder, error) {
	switch {
	case key == nil:
		return nil, errors.New("webpush: no VAPID key: see GenerateKey and SQLStore.Key")
	case store == nil:
		return nil, errors.New("webpush: no store: see NewMemoryStore and NewSQLStore")
	case !isContact(contact):
		return nil, errors.New("webpush: the contact must be a mailto: or https: address on the internet, such as mailto:ops@example.com")
	}
	f := &Forwarder{key: key, contact: strings.TrimPrefix(contact, "mailto:"), store: store, config: config{services: slices.Clone(knownServices)}}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("webpush: an option is nil")
		}
		if err := opt(&f.config); err != nil {
			return nil, err
		}
	}
	f.client = &client{http: newClient(f.networks, f.tls)}
	return f, nil
}

// isContact reports whether an address is one that a push service can reach. Apple's refuses every message that names
// another, such as one at localhost.
func isContact(contact string) bool {
	u, err := url.Parse(contact)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	host := u.Hostname()
	switch {
	case strings.HasPrefix(contact, "mailto:"):
		user, domain, _ := strings.Cut(u.Opaque, "@")
		if user == "" || strings.HasPrefix(user, "https:") || strings.ContainsAny(u.Opaque, ":/") {
			return false
		}
		host = domain
	case !strings.HasPrefix(contact, "https://"):
		return false
	}
	host = strings.ToLower(host)
	return strings.Contains(strings.Trim(host, "."), ".") && !strings.HasSuffix(host, ".local") && !strings.HasSuffix(host, ".localhost")
}

// Close closes connections that are idle. A fallback is closed by its owner.
func (f *Forwarder) Close() { f.client.http.CloseIdleConnections() }

// Device takes device tokens of 64 hex digits, in either case, and those of the fallback.
func (f *Forwarder) Device(token string) (string, error) {
	name, err := deviceName(token)
	if err != nil && f.fallback != nil {
		return f.fallback.Device(token)
	}
	return name, err
}

// Find returns an error for a device token that the store does not have, unless the fallback may have it.
func (f *Forwarder) Find(ctx context.Context, name string) error {
	if ctx == nil {
		ctx = context.Background()
	}
	if _, err := deviceName(name); err != nil {
		return nil
	}
	stored, err := f.find(ctx, DeviceKey(name))
	if errors.Is(err, ErrNotFound) && f.fallback == nil || err == nil && stored.Ended() {
		return unregistered(nil)
	}
	return nil
}

// Forward makes the message for an envelope and sends it, once. The error is a [*relay.ForwardError] and holds neither
// the device token nor the endpoint.
func (f *Forwarder) Forward(ctx context.Context, e relay.Envelope) error {
	return f.route(ctx, e.Device, func() (message, error) { return newMessage(e) }, func() error { return f.fallback.Forward(ctx, e) })
}

// ForwardDigest is like Forward, for a digest.
func (f *Forwarder) ForwardDigest(ctx context.Context, device secret.Text) error {
	return f.route(ctx, device, newDigest, func() error {
		digester, ok := f.fallback.(relay.Digester)
		if !ok {
			return &relay.ForwardError{Err: errors.New("webpush: the fallback sends no digests")}
		}
		return digester.ForwardDigest(ctx, device)
	})
}

// route sends a message to a browser, or lets the fallback do what it does for a device token that no browser has.
func (f *Forwarder) route(ctx context.Context, token secret.Text, newMessage func() (message, error), fallback func() error) error {
	if ctx == nil {
		ctx = context.Background()
	}
	name, err := deviceName(token.Reveal())
	if err != nil {
		if f.fallback != nil {
			return fallback()
		}
		return unregistered(nil)
	}
	device := DeviceKey(name)
	stored, err := f.find(ctx, device)
	switch {
	case errors.Is(err, ErrNotFound) && f.fallback != nil:
		return fallback()
	case errors.Is(err, ErrNotFound):
		return unregistered(nil)
	case err != nil:
		return &relay.ForwardError{Err: err}
	case stored.Ended():
		return unregistered(nil)
	}
	m, err := newMessage()
	if err != nil {
		return &relay.ForwardError{Err: err}
	}
	resp, err := f.send(ctx, stored.Subscription, m)
	if err != nil {
		return &relay.ForwardError{Err: err}
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // cut short, it has no reason to give
	return f.judge(ctx, device, stored.Subscription, resp, body)
}

func (f *Forwarder) find(ctx context.Context, device string) (Stored, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return f.store.Get(ctx, device)
}

// send encrypts a message and posts it.
func (f *Forwarder) send(ctx context.Context, to Subscription, m message) (*http.Response, error) {
	endpoint := to.Endpoint.Reveal()
	if err := checkEndpoint(endpoint, f.services); err != nil { // services may have been allowed when it came
		return nil, fmt.Errorf("webpush: %w", err)
	}
	resp, err := webpush.SendNotificationWithContext(ctx,
		slices.Clip(m.payload), // the library appends to it
		&webpush.Subscription{Endpoint: endpoint, Keys: webpush.Keys{P256dh: to.P256DH, Auth: to.Auth.Reveal()}},
		&webpush.Options{
			HTTPClient:      f.client,
			Subscriber:      f.contact,
			Topic:           m.topic,
			TTL:             int(timeToLive / time.Second),
			Urgency:         m.urgency,
			VAPIDPublicKey:  f.key.public,
			VAPIDPrivateKey: f.key.private.Reveal(),
		})
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // without the endpoint
	}
	if err != nil { // it may quote what a push service sent in place of an answer
		secrets := []string{endpoint, to.Auth.Reveal()}
		if u, err := url.Parse(endpoint); err == nil {
			secrets = append(secrets, answer.URLSecrets(u)...)
		}
		return nil, answer.Error(err, secrets...)
	}
	return resp, nil
}

// judge says what the answer of a push service means for the daemon (RFC 8030, sections 5 and 7.3).
func (f *Forwarder) judge(ctx context.Context, device string, to Subscription, resp *http.Response, body []byte) error {
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return nil
	}
	var answer struct {
		Reason string `json:"reason"` // Apple's
	}
	json.Unmarshal(body, &answer) // without a reason, the status has to do
	failure := &relay.ForwardError{
		Status: http.StatusBadGateway,
		Reason: wordOf(answer.Reason),
		Err:    fmt.Errorf("webpush: %s answered %d", resp.Request.URL.Host, resp.StatusCode),
	}
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusGone:
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
		defer cancel()
		if err := f.store.End(ctx, device, to.Endpoint, time.Now()); err != nil {
			failure.Err = errors.Join(failure.Err, err)
		}
		return unregistered(failure.Err)
	case http.StatusRequestEntityTooLarge:
		failure.Reason = "PayloadTooLarge"
	case http.StatusTooManyRequests:
		failure.Status = resp.StatusCode
		failure.RetryAfter = retryAfter(resp.Header.Get("Retry-After"), time.Now())
	}
	return failure
}

// unregistered says that a device token is dead, in Apple's word for it.
func unregistered(cause error) error {
	return &relay.ForwardError{Status: http.StatusGone, Reason: "Unregistered", Err: cause}
}

// retryAfter reads a number of seconds or a date (RFC 9110, section 10.2.3); at most a day, and zero for none.
func retryAfter(value string, now time.Time) time.Duration {
	var wait time.Duration
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), 24*time.Hour)
}

// wordOf returns a reason if it is a word, as Apple's are: nothing else gets into answers and logs.
func wordOf(reason string) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	if len(reason) > 64 || strings.Trim(reason, letters) != "" {
		return ""
	}
	return reason
}

// Format prints the forwarder by its key, for every verb.
func (f *Forwarder) Format(s fmt.State, _ rune) { fmt.Fprintf(s, "Web Push forwarder with %v", f.key) }
