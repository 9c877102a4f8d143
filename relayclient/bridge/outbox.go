package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// DefaultOutboxMessages is how many messages an [Outbox] keeps.
	DefaultOutboxMessages = 10_000

	// DefaultOutboxBytes is how much an [Outbox] keeps: 64 MiB.
	DefaultOutboxBytes = 64 << 20

	// wakeFor is how long an Outbox goes on trying to wake the phones for the last message.
	wakeFor = time.Hour
)

var (
	// ErrOutboxFull is returned by [Outbox.Send] for a message that was dropped.
	ErrOutboxFull = errors.New("bridge: outbox is full, the message was dropped")

	// ErrOutboxClosed is returned by the methods of a closed [Outbox].
	ErrOutboxClosed = errors.New("bridge: outbox is closed")

	// ErrReplaced is returned by [Outbox.Attach] when another client was attached.
	ErrReplaced = errors.New("bridge: another client was attached")
)

// Outbox carries an agent's messages to the phone's connection, and keeps them while there is none.
//
// The bridge calls [Outbox.Send] for each message of the agent, and [Outbox.Attach] for each connection, for as long as
// it lasts. Messages are written in the order of Send, one at a time, and forgotten only once they were written: what a
// connection did not take is the first thing that the next one gets, before anything new.
//
// # Waking the phones
//
// An Outbox owes the phones a wake-up for each message that no client has taken. It sends one with [Client.Notify]
// while no client is attached: at once, or as soon as the cooldown is over. One that the relay accepted counts for all
// messages that had come when it was sent; only a later message needs another. After a failure the Outbox tries again,
// as soon as Notify does, until one is accepted or a client has taken all messages. When that has gone on for an hour
// since the last message, it waits for the next one.
//
// An Outbox is safe for concurrent use. [Outbox.Close] it when its agent is gone. The zero Outbox is a closed one. It
// prints without its messages.
type Outbox struct {
	outboxConfig
	client       *Client
	notification Notification

	ctx    context.Context // ends with Close; nil in a zero Outbox, which is closed
	cancel context.CancelFunc
	wg     sync.WaitGroup // of wakeUp

	turn chan struct{} // holds one token, which is the right to write

	mu       sync.Mutex
	queue    [][]byte
	bytes    int // in queue
	dropped  int
	dropping bool               // the last message was dropped
	attached int                // Attach calls that run or wait for their turn
	detach   context.CancelFunc // of the attached client
	changed  chan struct{}      // closed and renewed when the queue or attached changes
	owed     bool               // there is a message that no accepted wake-up was for
	waking   bool               // wakeUp runs
	failing  time.Time          // when the first wake-up since the last message failed; zero when none has
}

// outboxConfig is what the options set.
type outboxConfig struct {
	maxMessages, maxBytes int
	results               func(Result)
}

// OutboxOption changes how an [Outbox] works.
type OutboxOption func(*outboxConfig) error

// WithMaxMessages sets how many messages are kept, instead of [DefaultOutboxMessages].
func WithMaxMessages(n int) OutboxOption {
	return func(c *outboxConfig) error {
		if n < 1 {
			return fmt.Errorf("bridge: WithMaxMessages: %d: must be at least 1", n)
		}
		c.maxMessages = n
		return nil
	}
}

// WithMaxBytes sets how much is kept, the sum of the messages' lengths, instead of [DefaultOutboxBytes]. It must be no
// less than the longest message: a longer one is dropped.
func WithMaxBytes(n int) OutboxOption {
	return func(c *outboxConfig) error {
		if n < 1 {
			return fmt.Errorf("bridge: WithMaxBytes: %d: must be at least 1", n)
		}
		c.maxBytes = n
		return nil
	}
}

// WithResults has f called with what became of each wake-up that the outbox sends, to count them. It is called by one
// goroutine at a time, which sends the next wake-up once f has returned. f must not close the outbox.
func WithResults(f func(Result)) OutboxOption {
	return func(c *outboxConfig) error {
		if f == nil {
			return errors.New("bridge: WithResults: the function is nil")
		}
		c.results = f
		return nil
	}
}

// NewOutbox returns an Outbox for one agent. It wakes the phones with the notification, for instance {"Agent Name",
// "New activity"}; one that no relay takes is a [FieldError] here. A nil or disabled client wakes nobody.
func NewOutbox(client *Client, notification Notification, opts ...OutboxOption) (*Outbox, error) {
	if err := notification.check(); err != nil {
		return nil, err
	}
	o := &Outbox{
		outboxConfig: outboxConfig{maxMessages: DefaultOutboxMessages, maxBytes: DefaultOutboxBytes},
		client:       client,
		notification: notification,
		turn:         make(chan struct{}, 1),
		changed:      make(chan struct{}),
	}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("bridge: an option is nil")
		}
		if err := opt(&o.outboxConfig); err != nil {
			return nil, err
		}
	}
	o.turn <- struct{}{}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o, nil
}

// Send hands over one message of the agent; it is copied. While a client is attached it will be written after those
// before it. While none is, it is kept, and the phones are woken in the background.
//
// When there is no room for it and no client is attached, the message is dropped and counted, with the error
// [ErrOutboxFull]. The older messages are kept because the newer ones make no sense without them. When a client is
// attached but slow, Send waits for room, as a write to the connection would: the agent slows down and nothing is lost.
// ctx bounds that wait; nil is context.Background(). A message that is longer than all that may be kept is dropped
// always.
func (o *Outbox) Send(ctx context.Context, message []byte) error {
	if ctx == nil {
		ctx = context.Background()
	}
	for {
		wait, dropped, err := o.put(message)
		if dropped > 0 {
			o.client.log().WarnContext(ctx, "outbox is full, dropping the agent's messages", "kept", o.Len(), "bytes", len(message), "dropped", dropped)
		}
		if wait == nil {
			return err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		case <-o.ctx.Done():
			return ErrOutboxClosed
		}
	}
}

// put appends a copy of the message, or returns what to wait for before another try. The first of several messages in a
// row that are dropped is to be logged: then put returns how many have been dropped in all.
func (o *Outbox) put(message []byte) (wait <-chan struct{}, dropped int, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed() {
		return nil, 0, ErrOutboxClosed
	}
	full := len(o.queue) >= o.maxMessages || len(message) > o.maxBytes-o.bytes
	if full && o.attached > 0 && len(message) <= o.maxBytes {
		return o.changed, 0, nil
	}
	if !full || o.attached == 0 {
		o.owed, o.failing = true, time.Time{}
		o.wake()
	}
	if full {
		o.dropped++
		if !o.dropping {
			dropped = o.dropped
		}
		o.dropping = true
		return nil, dropped, ErrOutboxFull
	}
	o.dropping = false
	o.queue = append(o.queue, bytes.Clone(message))
	o.bytes += len(message)
	o.change()
	return nil, 0, nil
}

// wake starts wakeUp when there is something to do for it. o.mu is held.
func (o *Outbox) wake() {
	if o.waking || !o.owed || o.attached > 0 || o.closed() || !o.client.Enabled() {
		return
	}
	o.waking = true
	o.wg.Go(o.wakeUp)
}

// wakeUp wakes the phones until nothing is owed or a client is attached.
func (o *Outbox) wakeUp() {
	for o.owes() && o.client.awaitOpen(o.ctx) == nil {
		if !o.owes() {
			return // a client was attached during the wait
		}
		o.mu.Lock()
		o.owed = false // each message from now on needs another wake-up
		o.mu.Unlock()
		result := o.client.Notify(o.ctx, o.notification)
		if result.Status != StatusSent && !o.owesStill(result) {
			o.client.log().WarnContext(o.ctx, "no phone could be woken for an hour, waiting for the agent's next message", "kept", o.Len())
		}
		if o.results != nil && result.Status != StatusDebounced && o.ctx.Err() == nil {
			o.results(result)
		}
	}
}

// owes reports whether a wake-up is to be sent. If not, wakeUp ends.
func (o *Outbox) owes() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waking = o.owed && o.attached == 0 && !o.closed()
	return o.waking
}

// owesStill records that the wake-up failed and is still needed. It returns false when the Outbox stops trying.
func (o *Outbox) owesStill(result Result) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if result.Status == StatusFailed {
		if o.failing.IsZero() {
			o.failing = time.Now()
		}
		if time.Since(o.failing) >= wakeFor {
			return false
		}
	}
	o.owed = o.owed || len(o.queue) > 0 // or a client has taken all messages meanwhile
	return true
}

// change wakes the goroutines that wait for a change. o.mu is held.
func (o *Outbox) change() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// Attach writes the messages to a client until the client drops: first those that are kept, then each as it is sent. It
// returns when write fails, with that error; when ctx ends, with its cause; when another client is attached, with
// [ErrReplaced]; or when the Outbox is closed, with [ErrOutboxClosed]. Call it from the connection's own goroutine: it
// starts none, and write is called by one goroutine at a time.
//
// A message whose write returned nil is done. One whose write failed is kept and written to the next client, and the
// phones are woken for it unless they have been. A message that was in a socket's buffer when the network broke is
// lost. Where that must not happen, the app acknowledges each message and write waits for that. write must return when
// its context ends; only then does the next client get its turn. It must not keep or change the message.
func (o *Outbox) Attach(ctx context.Context, write func(ctx context.Context, message []byte) error) error {
	if ctx == nil {
		ctx = context.Background()
	}
	if o.closed() {
		return ErrOutboxClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(o.ctx, func() { cancel(ErrOutboxClosed) })()

	o.enter(func() { cancel(ErrReplaced) })
	defer o.leave()
	select {
	case <-o.turn:
		defer func() { o.turn <- struct{}{} }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		message, err := o.next(ctx)
		if err != nil {
			return err
		}
		if err := write(ctx, message); err != nil {
			if cause := context.Cause(ctx); cause != nil {
				return cause // the write failed because of it
			}
			return err
		}
		o.written()
	}
}

// enter makes the caller the attached client, and ends the Attach call of the one before.
func (o *Outbox) enter(detach context.CancelFunc) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.detach != nil {
		o.detach()
	}
	o.detach = detach
	o.attached++
}

// leave undoes enter. It wakes the phones if messages are left that need it.
func (o *Outbox) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.attached--
	if o.attached > 0 {
		return // this one was replaced
	}
	o.detach = nil
	o.wake()
	o.change() // a Send that waits for room must stop: nobody will take messages now
}

// next waits for a message and returns the oldest.
func (o *Outbox) next(ctx context.Context) ([]byte, error) {
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		o.mu.Lock()
		changed := o.changed
		if len(o.queue) > 0 {
			message := o.queue[0]
			o.mu.Unlock()
			return message, nil
		}
		o.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// written forgets the oldest message.
func (o *Outbox) written() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes -= len(o.queue[0])
	o.queue[0] = nil // for the garbage collector
	o.queue = o.queue[1:]
	if len(o.queue) == 0 {
		o.queue, o.owed = nil, false
	}
	o.change()
}

// Len returns how many messages are kept.
func (o *Outbox) Len() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue)
}

// Dropped returns how many messages have been dropped since the Outbox was made.
func (o *Outbox) Dropped() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.dropped
}

// Close ends Attach and Send with [ErrOutboxClosed], cancels a notification on its way and waits until it is gone. What
// is kept is lost. Closing twice is fine.
func (o *Outbox) Close() {
	if o.ctx == nil {
		return
	}
	o.mu.Lock()
	o.cancel()
	o.mu.Unlock()
	o.wg.Wait()
}

func (o *Outbox) closed() bool { return o.ctx == nil || o.ctx.Err() != nil }

// Format prints how much is kept, whatever the verb, and nothing of what an agent said.
func (o *Outbox) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "bridge.Outbox{kept: %d, dropped: %d}", o.Len(), o.Dropped())
}
