package alertmanager

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/sealpush/sealpush/internal/input"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/secret"
)

// DefaultTimeout is how long a webhook waits at most until its page is sent. It is less than the 30 s that Grafana
// waits.
const DefaultTimeout = 25 * time.Second

// An Option changes a default of [New].
type Option func(*config) error

type config struct {
	rules
	token          secret.Text // or empty
	user, password secret.Text // or empty
	open           bool        // for whoever comes
	logger         *slog.Logger
	timeout        time.Duration
}

func newConfig(opts []Option) (*config, error) {
	c := &config{timeout: DefaultTimeout, rules: rules{
		nameLabels:    []string{"alertname"},
		hostLabels:    []string{"host", "hostname", "nodename", "node", "instance"},
		severityLabel: "severity",
		passive:       []string{"info", "none", "debug", "warning"},
		resolved:      relayclient.Passive,
	}}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("alertmanager: an option is nil")
		}
		if err := opt(c); err != nil {
			return nil, err
		}
	}
	if secured := !c.token.IsZero() || !c.password.IsZero(); secured == c.open {
		return nil, errors.New("alertmanager: New needs WithBearerToken or WithBasicAuth, or else WithoutAuth: anybody who can post could page")
	}
	return c, nil
}

// WithBearerToken accepts webhooks with this token in Authorization: Bearer. Together with [WithBasicAuth], either is
// enough.
func WithBearerToken(token secret.Text) Option {
	return func(c *config) error {
		if text, err := input.Text(token.Reveal()); err != nil || text == "" || text != token.Reveal() {
			return errors.New("alertmanager: WithBearerToken needs a token without white space")
		}
		c.token = token
		return nil
	}
}

// WithBasicAuth accepts webhooks with these credentials as HTTP Basic authentication.
func WithBasicAuth(user string, password secret.Text) Option {
	return func(c *config) error {
		if user == "" || strings.Contains(user, ":") || password.IsZero() {
			return errors.New("alertmanager: WithBasicAuth needs a user, without a colon, and a password")
		}
		c.user, c.password = secret.New(user), password
		return nil
	}
}

// WithoutAuth accepts webhooks without credentials. Use it if something in front of the handler checks them, or if only
// this machine can reach the handler. Requests of web pages in browsers are still refused.
func WithoutAuth() Option {
	return func(c *config) error {
		c.open = true
		return nil
	}
}

// WithNameLabels sets the labels that hold an alert's name; the first that an alert has is used. The default is
// alertname.
func WithNameLabels(labels ...string) Option {
	return func(c *config) (err error) {
		c.nameLabels, err = names("WithNameLabels", labels)
		return err
	}
}

// WithHostLabels sets the labels that hold an alert's host; the first that an alert has is used. The default is host,
// hostname, nodename, node and instance. An alert without any of them gets the Notifier's host.
func WithHostLabels(labels ...string) Option {
	return func(c *config) (err error) {
		c.hostLabels, err = names("WithHostLabels", labels)
		return err
	}
}

// WithSeverity sets the label that holds an alert's severity, and the values that make no sound, in whatever case. It is
// severity, with info, none, debug and warning, unless it is set. Without values, every alert makes a sound.
func WithSeverity(label string, passive ...string) Option {
	return func(c *config) error {
		if label == "" || slices.Contains(passive, "") {
			return errors.New("alertmanager: WithSeverity: a label or a value is empty")
		}
		c.severityLabel, c.passive = label, nil
		for _, value := range passive {
			c.passive = append(c.passive, strings.ToLower(value))
		}
		return nil
	}
}

// WithResolvedPriority sets the priority of a page that says that all alerts are resolved, or that some were resolved
// and none was added. It is passive unless it is set.
func WithResolvedPriority(p relayclient.Priority) Option {
	return func(c *config) error {
		if p != relayclient.TimeSensitive && p != relayclient.Passive {
			return fmt.Errorf("alertmanager: WithResolvedPriority: %v: use TimeSensitive or Passive", p)
		}
		c.resolved = p
		return nil
	}
}

// WithLogger logs to logger. The default is slog.Default at the time of each line.
func WithLogger(logger *slog.Logger) Option {
	return func(c *config) error {
		c.logger = logger
		return nil
	}
}

// WithTimeout sets how long a webhook waits at most until its page is sent. It is [DefaultTimeout] unless it is set.
func WithTimeout(d time.Duration) Option {
	return func(c *config) error {
		if d <= 0 {
			return fmt.Errorf("alertmanager: timeout %v: must be positive", d)
		}
		c.timeout = d
		return nil
	}
}

func names(option string, labels []string) ([]string, error) {
	if len(labels) == 0 || slices.Contains(labels, "") {
		return nil, fmt.Errorf("alertmanager: %s needs names of labels", option)
	}
	return slices.Clone(labels), nil
}
