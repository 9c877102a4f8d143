package relayclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient/pairing"
)

// A Notifier pages every paired phone: a [Client], a [pairing.Registry] and the
// name of this host. It is what a daemon embeds, and is safe for concurrent use.
type Notifier struct {
	client   *Client
	registry *pairing.Registry
	host     string
}

// Format writes the host and the relay, without credentials, whatever the verb.
func (n *Notifier) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "relayclient.Notifier{host: %q, %v}", n.host, n.client)
}

// NewNotifier returns a notifier for alerts from host, which is what the phone
// shows as their origin; an empty host is the machine's own name.
func NewNotifier(client *Client, registry *pairing.Registry, host string) (*Notifier, error) {
	if client == nil || registry == nil {
		return nil, errors.New("relayclient: a Notifier needs a Client and a Registry")
	}
	if host == "" {
		name, err := os.Hostname()
		if err != nil {
			return nil, errors.New("relayclient: the machine does not know its name; pass a host name to NewNotifier")
		}
		host = name
	}
	return &Notifier{client: client, registry: registry, host: host}, nil
}

// A NotifyOption changes one call of [Notifier.Notify]. It is a plain value.
type NotifyOption func(*Push)

// WithPriority sets the priority, which is TimeSensitive otherwise.
func WithPriority(p Priority) NotifyOption {
	return func(push *Push) { push.Priority = p }
}

// Notify sends the alert to every paired phone and returns an [Outcome] for
// each. An alert without a host gets the notifier's.
//
// It has no error that a caller would have to handle. The registry is read from
// a mirror at most a minute old, so a store that is down costs no page; see
// [pairing.Registry.Recipients]. Nobody to page means no outcomes, and one line
// in the log that says whether nobody is paired or the registry could not be
// read yet.
func (n *Notifier) Notify(ctx context.Context, alert payload.Alert, opts ...NotifyOption) []Outcome {
	if n == nil || n.client == nil {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	if alert.Host == "" {
		alert.Host = n.host
	}
	recipients := n.registry.Recipients(ctx)
	kind := slog.String("alert", string(alert.Kind))
	switch {
	case len(recipients.Devices) > 0:
	case recipients.Err != nil:
		n.client.log(ctx, slog.LevelError, "alert not sent: registry unavailable, and no phone is known", kind)
	default:
		n.client.log(ctx, slog.LevelWarn, "alert not sent: no phone is paired", kind)
	}
	push := Push{Alert: alert, Salt: recipients.Salt}
	for _, opt := range opts {
		if opt != nil {
			opt(&push)
		}
	}
	return n.client.Send(ctx, push, recipients.Devices)
}

// Test sends one phone a test alert, under a fresh collapse id, so that no relay
// coalesces it. The error says that there is no such phone
// ([pairing.ErrUnknownDevice]) or that the registry could not be asked
// ([pairing.ErrUnavailable]); what became of the alert is in the [Outcome]. It waits for a
// connection to the relay for 3 s at most, whatever [WithPatience] says.
func (n *Notifier) Test(ctx context.Context, deviceID string) (Outcome, error) {
	if n == nil || n.client == nil {
		return Outcome{}, errors.New("relayclient: this Notifier was not made by NewNotifier")
	}
	if ctx == nil {
		ctx = context.Background()
	}
	device, err := n.registry.Device(ctx, deviceID)
	if err != nil {
		return Outcome{}, err
	}
	push := Push{Alert: payload.NewTest(n.host), CollapseID: payload.NewCollapseID()}
	return n.client.send(ctx, push, []pairing.Device{device}, testPatience)[0], nil
}

// testPatience is how long somebody who tests a phone waits for a connection to the relay.
const testPatience = 3 * time.Second

// TestStatus is for [pairing.Handler], which wants a [pairing.Tester]: it is
// [Notifier.Test] in that form.
func (n *Notifier) TestStatus(ctx context.Context, deviceID string) (status int, err error) {
	outcome, err := n.Test(ctx, deviceID)
	if err != nil {
		return 0, err
	}
	return outcome.Status, outcome.Err
}
