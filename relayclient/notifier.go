package relayclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient/pairing"
)

// A Notifier pages every paired phone: a [Client], a [pairing.Registry] and the name of this host. It is what a daemon
// embeds, and is safe for concurrent use.
type Notifier struct {
	client   *Client
	registry *pairing.Registry
	host     string
	storm    *stormGuard // nil without WithStormGuard
	closed   atomic.Bool
}

// Format writes the host and the relay, without credentials, whatever the verb.
func (n *Notifier) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "relayclient.Notifier{host: %q, %v}", n.host, n.client)
}

// NewNotifier returns a notifier for alerts from host, which is what the phone shows as their origin; an empty host is
// the machine's own name.
func NewNotifier(client *Client, registry *pairing.Registry, host string, opts ...NotifierOption) (*Notifier, error) {
	if client == nil || registry == nil {
		return nil, errors.New("relayclient: a Notifier needs a Client and a Registry")
	}
	if host == "" {
		name, err := hostName(os.Hostname)
		if err != nil {
			return nil, err
		}
		host = name
	}
	var config notifierConfig
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("relayclient: an option is nil")
		}
		if err := opt(&config); err != nil {
			return nil, err
		}
	}
	n := &Notifier{client: client, registry: registry, host: host}
	if config.stormBurst > 0 {
		n.storm = newStormGuard(n, config.stormBurst, cmp.Or(config.refill, relayRefill))
	}
	return n, nil
}

func hostName(ask func() (string, error)) (string, error) {
	name, err := ask()
	if err != nil || name == "" {
		return "", errors.New("relayclient: the machine does not know its name; pass a host name to NewNotifier")
	}
	return name, nil
}

// A NotifyOption changes one call of [Notifier.Notify].
type NotifyOption func(*notifyConfig) error

type notifyConfig struct {
	priority Priority
	critical bool
}

// WithPriority sets the priority, which is [TimeSensitive] otherwise.
func WithPriority(p Priority) NotifyOption {
	return func(c *notifyConfig) error {
		if p != TimeSensitive && p != Passive {
			return fmt.Errorf("relayclient: WithPriority: %v: must be TimeSensitive or Passive", p)
		}
		c.priority = p
		return nil
	}
}

// Notify sends the alert to every paired phone and returns an [Outcome] for each. An alert without a host gets the
// notifier's.
//
// The error says why no POST was attempted: [ErrNobodyPaired], [pairing.ErrUnavailable] (the registry cannot be read,
// and no phone is known from before), [ErrInvalidAlert], [ErrClosed], [ErrHeldBack], or, when it is so for all phones,
// [ErrUnusableDevice] or [ErrNotAttempted]. It is nil when one phone's POST was attempted, whatever became of it, and
// for an alert that a summary of the storm guard has told of (see [WithStormGuard]). All that went wrong is in the log
// already.
//
// The registry is read from a copy at most a minute old, and a store that is down costs no page; see
// [pairing.Registry.Recipients].
func (n *Notifier) Notify(ctx context.Context, alert payload.Alert, opts ...NotifyOption) ([]Outcome, error) {
	if n == nil || n.client == nil {
		return nil, errNotifier
	}
	if ctx == nil {
		ctx = context.Background()
	}
	if alert.Host == "" {
		alert.Host = n.host
	}
	config, err := newNotifyConfig(opts)
	if err != nil {
		n.client.log(ctx, slog.LevelError, "alert not sent", alert, slog.Any("error", err))
		return nil, err
	}
	if told, err := n.admit(ctx, alert, config); err != nil {
		if told != nil {
			return told, nil
		}
		return nil, err
	}
	recipients := n.registry.Recipients(ctx)
	if err := nobody(recipients); err != nil {
		level := slog.LevelError
		if err == ErrNobodyPaired {
			level = slog.LevelWarn // no phone may be wanted
		}
		n.client.log(ctx, level, "alert not sent", alert, slog.Any("error", err))
		return nil, err
	}
	outcomes := n.client.Send(ctx, Push{Alert: alert, Salt: recipients.Salt, Priority: config.priority}, recipients.Devices)
	if n.storm != nil {
		n.storm.refused(alert, config, outcomes)
	}
	return outcomes, notAttempted(outcomes)
}

// admit returns why the alert is not to be posted now, which the log then has, and the outcomes of a summary that told of
// it.
func (n *Notifier) admit(ctx context.Context, alert payload.Alert, config notifyConfig) (told []Outcome, err error) {
	switch {
	case n.closed.Load():
		err = ErrClosed
	case n.storm != nil:
		told, err = n.storm.admit(alert, config)
	}
	switch {
	case err == nil:
		return nil, nil
	case told != nil:
		n.client.log(ctx, slog.LevelDebug, "alert held back: a summary has told of it", alert)
	case err == ErrHeldBack:
		n.client.log(ctx, slog.LevelWarn, "alert held back for a summary", alert)
	default:
		n.client.log(ctx, slog.LevelError, "alert not sent", alert, slog.Any("error", err))
	}
	n.client.observe(ctx, alert, Outcome{Err: err}, time.Time{}, 0)
	return told, err
}

func newNotifyConfig(opts []NotifyOption) (config notifyConfig, err error) {
	for _, opt := range opts {
		if opt == nil {
			return config, errors.New("relayclient: an option is nil")
		}
		if err := opt(&config); err != nil {
			return config, err
		}
	}
	return config, nil
}

// nobody returns why there is nobody to page, or nil if there is somebody.
func nobody(recipients pairing.Recipients) error {
	switch skipped := recipients.Skipped; {
	case len(recipients.Devices) > 0:
		return nil
	case recipients.Err != nil:
		return fmt.Errorf("relayclient: no phone is known: %w", recipients.Err)
	case len(skipped) > 0:
		return fmt.Errorf("%w: there is no other, of %d: %w", ErrUnusableDevice, len(skipped), skipped[0])
	}
	return ErrNobodyPaired
}

// notAttempted returns why none of the outcomes is that of a POST, or nil if one is.
func notAttempted(outcomes []Outcome) error {
	for _, outcome := range outcomes {
		if !isAny(outcome.Err, ErrUnusableDevice, ErrNotAttempted, ErrInvalidAlert, ErrClosed) {
			return nil
		}
	}
	return outcomes[0].Err
}

func isAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
}

// Test sends one phone a test alert, under a fresh collapse id, so that no relay coalesces it. It is a
// [pairing.Tester]: status is the relay's, or 0 when there was none, and err is that of an [Outcome]. It is
// [pairing.ErrUnknownDevice] when there is no such phone, and [pairing.ErrUnavailable] when the registry cannot be
// asked. Whatever [WithPatience] says, it waits at most 3 s for a connection.
func (n *Notifier) Test(ctx context.Context, deviceID string) (status int, err error) {
	if n == nil || n.client == nil {
		return 0, errNotifier
	}
	if ctx == nil {
		ctx = context.Background()
	}
	device, err := n.registry.Device(ctx, deviceID)
	if err != nil {
		return 0, err
	}
	outcome := n.client.send(ctx, Push{Alert: payload.NewTest(n.host)}, []pairing.Device{device}, testPatience)[0]
	return outcome.Status, outcome.Err
}

// testPatience is how long somebody who tests a phone waits for a connection to the relay.
const testPatience = 3 * time.Second

// errNotifier is the error of a zero Notifier.
var errNotifier = errors.New("relayclient: this Notifier was not made by NewNotifier")
