package relayclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/secret"
)

// A Sealed is an alert for one phone that waits to be posted. [Client.Seal] makes one and [Client.Post] posts it, which
// may be another process, later: a caller may store DeviceID and Envelope. It prints without its envelope.
type Sealed struct {
	// DeviceID is the device's id in the registry.
	DeviceID string
	// Envelope is the body of the POST (relay protocol, "Inbound request"). It holds the phone's push token, so keep it
	// like a secret; what the alert says is sealed.
	Envelope []byte

	alert payload.Alert // which the log names; zero for one that was stored
}

// Format prints the device's id, whatever the verb.
func (s Sealed) Format(f fmt.State, _ rune) { io.WriteString(f, "relayclient.Sealed for "+s.DeviceID) }

// MarshalJSON always fails: store DeviceID and Envelope by themselves.
func (s Sealed) MarshalJSON() ([]byte, error) {
	return nil, errors.New("relayclient: a Sealed holds a push token: store its fields")
}

// Seal seals a push to each device, for [Client.Post]. The alert keeps the time at which it was built. It is fitted to
// 3000 characters of ciphertext, which every relay takes, whatever [WithMaxCiphertext] says. The error joins why there
// is no Sealed for some of the devices: [ErrInvalidAlert], for all of them, or [ErrUnusableDevice].
func (c *Client) Seal(push Push, devices []pairing.Device) ([]Sealed, error) {
	message, err := newMessage(push, devices, ciphertextFloor)
	if err != nil {
		return nil, err
	}
	var sealed []Sealed
	var problems []error
	for _, device := range devices {
		e, err := c.seal(context.Background(), message, device)
		if err != nil {
			problems = append(problems, fmt.Errorf("device %s: %w", device.ID, err))
			continue
		}
		sealed = append(sealed, Sealed{DeviceID: device.ID, Envelope: e.body, alert: push.Alert})
	}
	return sealed, errors.Join(problems...)
}

// Post posts what [Client.Seal] has made, with the patience, the limits and the log lines of [Client.Send]. It returns
// an [Outcome] for each, in their order.
//
// If begin is not nil, it is called with an index right before the first byte of that POST may be written, and once
// more for another connection if nothing was written. So a caller that records it knows which POSTs a killed process
// has begun: of those, nobody knows whether the phone was paged. An error of begin keeps that one from being posted,
// and its outcome is [ErrNotAttempted]. Calls for different indexes come at the same time.
//
// When an outcome is ErrNotAttempted, or a [TransportError] that is Unsent, the relay has seen nothing, and the alert
// may be posted again. After any other outcome it must not be.
func (c *Client) Post(ctx context.Context, sealed []Sealed, begin func(i int) error) []Outcome {
	outcomes := make([]Outcome, len(sealed))
	for i, s := range sealed {
		outcomes[i] = Outcome{DeviceID: s.DeviceID, Err: errUnfinished}
	}
	if c == nil || c.relay == nil {
		return c.failAll(ctx, payload.Alert{}, outcomes, errNoClient)
	}
	if ctx == nil {
		ctx = context.Background()
	}
	message := message{limit: c.maxCiphertext}
	var err error
	switch {
	case c.closed.Load():
		err = ErrClosed
	case c.pool != nil:
		if message.sending, err = c.pool.begin(c.maxInFlight, c.patience); err == nil {
			defer message.sending.end()
		}
	}
	if err != nil {
		for i, s := range sealed {
			outcomes[i].Err = err
			c.logOutcome(ctx, s.alert, outcomes[i])
			c.observe(ctx, s.alert, outcomes[i], time.Time{}, 0)
		}
		return outcomes
	}
	var taken atomic.Int64
	var posters sync.WaitGroup
	for range min(c.maxInFlight, len(sealed)) {
		posters.Go(func() {
			for i := int(taken.Add(1) - 1); i < len(sealed); i = int(taken.Add(1) - 1) {
				start := c.observedNow()
				outcomes[i] = c.postSealed(ctx, message, sealed[i], func() error {
					if begin == nil {
						return nil
					}
					return begin(i)
				})
				c.logOutcome(ctx, sealed[i].alert, outcomes[i])
				c.observe(ctx, sealed[i].alert, outcomes[i], start, len(sealed[i].Envelope))
			}
		})
	}
	posters.Wait()
	return outcomes
}

func (c *Client) postSealed(ctx context.Context, message message, s Sealed, begin func() error) Outcome {
	var read struct {
		Device     string `json:"device"`
		Ciphertext string `json:"ciphertext"`
	}
	if err := json.Unmarshal(s.Envelope, &read); err != nil || read.Device == "" || read.Ciphertext == "" {
		return Outcome{DeviceID: s.DeviceID, Err: fmt.Errorf("%w: what was stored is no envelope", ErrInvalidAlert)}
	}
	device := pairing.Device{ID: s.DeviceID, PushToken: secret.New(read.Device)}
	return c.deliver(ctx, message, envelope{device: device, body: s.Envelope, begin: begin, final: true})
}
