package relaytest

import (
	"context"
	"strings"
	"time"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relay/apns"
	"github.com/sealpush/sealpush/secret"
)

// inbox keeps the messages that were forwarded, for phones to fetch.
type inbox struct {
	monitor
	id        string // tells this inbox's numbers from another's
	forwarded int    // messages so far
	messages  history[apns.Message]
}

// Device makes an inbox the push service behind a relay; it takes Apple's tokens.
func (b *inbox) Device(token string) (string, error) { return apns.DeviceName(token) }

// Forward keeps the message that Apple's push service would get.
func (b *inbox) Forward(_ context.Context, e relay.Envelope) error {
	return b.add(apns.NewMessage(e, time.Now()))
}

// ForwardDigest keeps the message that a phone over its quota would get.
func (b *inbox) ForwardDigest(_ context.Context, device secret.Text) error {
	return b.add(apns.NewDigest(device, time.Now()))
}

func (b *inbox) add(m apns.Message) error {
	b.Lock()
	defer b.Unlock()
	b.forwarded++
	b.messages.add(m)
	b.notify()
	return nil
}

// of returns the messages to one device; the caller holds the mutex.
func (b *inbox) of(device string) []apns.Message {
	var found []apns.Message
	token := secret.New(strings.ToLower(device))
	for _, m := range b.messages.latest() {
		if m.Device.Equal(token) {
			found = append(found, m)
		}
	}
	return found
}

// Inbox returns the messages forwarded to a device token so far, oldest first. The relay keeps the latest ones of all
// devices together, as many as [WithHistory] says.
func (r *Relay) Inbox(deviceToken string) []apns.Message {
	r.inbox.Lock()
	defer r.inbox.Unlock()
	return r.inbox.of(deviceToken)
}

// WaitInbox waits until at least n messages were forwarded to a device token and returns what [Relay.Inbox] does. When
// ctx is done first, the error is its cause and the messages are those that came.
func (r *Relay) WaitInbox(ctx context.Context, deviceToken string, n int) ([]apns.Message, error) {
	var found []apns.Message
	err := r.inbox.await(ctx, func() bool {
		found = r.inbox.of(deviceToken)
		return len(found) >= n
	})
	return found, err
}
