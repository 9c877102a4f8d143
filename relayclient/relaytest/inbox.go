package relaytest

import (
	"context"
	"strings"
)

// deviceKey is what a device token is known by: hex digits mean the same in
// either case.
func deviceKey(token string) string { return strings.ToLower(token) }

// inbox keeps the messages that were forwarded, for phones to fetch.
type inbox struct {
	monitor
	id        string // tells this inbox's numbers from another's
	forwarded int    // messages so far
	messages  history[Message]
}

// Forward makes an inbox the push service behind a relay.
func (b *inbox) Forward(_ context.Context, m Message) error {
	b.Lock()
	defer b.Unlock()
	b.forwarded++
	b.messages.add(m)
	b.notify()
	return nil
}

// of returns the messages to one device; the caller holds the mutex.
func (b *inbox) of(device string) []Message {
	var found []Message
	key := deviceKey(device)
	for _, m := range b.messages.latest() {
		if deviceKey(m.Device) == key {
			found = append(found, m)
		}
	}
	return found
}

// Inbox returns the messages forwarded to a device token so far, oldest first.
// The relay keeps the latest ones of all devices together, as many as
// [WithHistory] says.
func (r *Relay) Inbox(deviceToken string) []Message {
	r.inbox.Lock()
	defer r.inbox.Unlock()
	return r.inbox.of(deviceToken)
}

// WaitInbox waits until at least n messages were forwarded to a device token
// and returns what [Relay.Inbox] does. When ctx is done first, the error is its
// cause and the messages are those that came.
func (r *Relay) WaitInbox(ctx context.Context, deviceToken string, n int) ([]Message, error) {
	var found []Message
	err := r.inbox.await(ctx, func() bool {
		found = r.inbox.of(deviceToken)
		return len(found) >= n
	})
	return found, err
}
