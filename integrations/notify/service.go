// Package notifypage pages paired phones from github.com/nikoksr/notify, beside the services that come with that module
// or instead of them. A [Service] is a notify.Notifier; this package does not import that module.
//
//	service, err := notifypage.New(notifier)
//	if err != nil {
//		return err
//	}
//	notify.UseServices(service)
//	err = notify.Send(ctx, "Backup failed", "no space left on /srv")
//
// A message is an alert of kind event, with the subject as its headline. Its run id is a hash of both texts, so that a
// message that is sent again coalesces at the relay, and two different ones do not.
package notifypage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
)

// Event is the alerts' event.
const Event = "notification"

const maxName = 256 // bytes

// maxText bounds what is read of a subject or a message, in bytes; a phone gets about two kilobytes of both.
const maxText = 16 << 10

// An Option changes a default of [New].
type Option func(*config) error

type config struct {
	name   string
	notify []relayclient.NotifyOption
}

// WithName sets the name that the phone shows, of at most 256 bytes. It is the program's file name unless it is set.
func WithName(name string) Option {
	return func(c *config) error {
		if name == "" || len(name) > maxName {
			return fmt.Errorf("notifypage: WithName: the name has %d bytes: must be 1 to %d", len(name), maxName)
		}
		c.name = name
		return nil
	}
}

// WithPriority sets how loudly the phone is paged. It is relayclient.TimeSensitive unless it is set.
func WithPriority(priority relayclient.Priority) Option {
	return func(c *config) error {
		if priority != relayclient.TimeSensitive && priority != relayclient.Passive {
			return fmt.Errorf("notifypage: WithPriority: %v: no such priority", priority)
		}
		c.notify = []relayclient.NotifyOption{relayclient.WithPriority(priority)}
		return nil
	}
}

// A Service sends messages to the paired phones. It is safe for concurrent use.
type Service struct {
	notifier *relayclient.Notifier
	config   config
}

// New returns a service that pages through notifier.
func New(notifier *relayclient.Notifier, opts ...Option) (*Service, error) {
	if notifier == nil {
		return nil, errors.New("notifypage: New needs a Notifier")
	}
	s := &Service{notifier: notifier, config: config{name: filepath.Base(os.Args[0])}}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("notifypage: an option is nil")
		}
		if err := opt(&s.config); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Send pages every paired phone and returns nil when the relay has accepted the message for each: that is not yet a page
// on a phone. The error says for which phones it has not, or why nobody was paged, as of Notifier.Notify; all of it is in
// the log already. Text beyond what fits is cut at its end.
func (s *Service) Send(ctx context.Context, subject, message string) error {
	if ctx == nil {
		ctx = context.Background()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s%s", len(subject), subject, message))
	alert := payload.NewEvent("", s.config.name, Event)
	alert.RunID = hex.EncodeToString(sum[:8])
	alert.Subject = strings.Join(strings.Fields(text(subject)), " ")
	alert.Message = text(message)
	if alert.Subject == "" && alert.Message == "" {
		return errors.New("notifypage: there is neither a subject nor a message")
	}
	outcomes, err := s.notifier.Notify(ctx, alert, s.config.notify...)
	if err != nil {
		return fmt.Errorf("notifypage: %w", err)
	}
	var failed []error
	for _, outcome := range outcomes {
		if outcome.Err != nil {
			failed = append(failed, fmt.Errorf("notifypage: phone %s: %w", outcome.DeviceID, outcome.Err))
		}
	}
	return errors.Join(failed...)
}

// text is what a person reads.
func text(s string) string {
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "")
	}
	return payload.CleanOutput([]byte(s))
}
