package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
)

// DefaultOutboxSize is how many messages an [Outbox] keeps.
const DefaultOutboxSize = 10_000

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
// The bridge calls [Outbox.Send] for each message of the agent, and [Outbox.Attach] for each connection, for as long
// as it lasts. Messages are written in the order of Send, one at a time, and forgotten only once they were written:
// what a connection did not take is the first thing that the next one gets, before anything new. While no client is
// attached each Send wakes the phones with [Client.Notify], which debounces.
//
// An Outbox is safe for concurrent use. [Outbox.Close] it when its agent is gone. The zero Outbox is a closed one. It
// prints without its messages.
type Outbox struct {
	client       *Client
	notification Notification
	wakes        bool // whether Notify can do anything
	size         int

	ctx    context.Context // ends with Close; nil in a zero Outbox, which is closed
	cancel context.CancelFunc
	wg     sync.WaitGroup // notifications on their way

	turn chan struct{} // holds one token, which is the right to write

	mu       sync.Mutex
	queue    [][]byte
	dropped  int
	dropping bool               // the last message was dropped
	attached int                // Attach calls that run or wait for their turn
	detach   context.CancelFunc // of the attached client
	changed  chan struct{}      // closed and renewed when the queue or attached changes
}

// NewOutbox returns an Outbox for one agent that keeps up to size messages, or [DefaultOutboxSize] if size is not
// positive. It wakes the phones with the notification, for instance {"Agent Name", "New activity"}; one without title or
// body, which no relay takes, is logged at Error here and wakes nobody. A nil client wakes nobody either.
func NewOutbox(client *Client, notification Notification, size int) *Outbox {
	if size <= 0 {
		size = DefaultOutboxSize
	}
	o := &Outbox{
		client:       client,
		notification: notification,
		wakes:        client.Enabled(),
		size:         size,
		turn:         make(chan struct{}, 1),
		changed:      make(chan struct{}),
	}
	if err := notification.check(context.Background()); err != nil && o.wakes {
		client.log().Error("outbox cannot wake the phones", "error", err)
		o.wakes = false // rather than say so for each message
	}
	o.turn <- struct{}{}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o
}

// Send hands over one message of the agent; it is copied. While a client is attached it will be written after those
// before it. While none is, it is kept, and the phones are woken in the background.
//
// When size messages are kept and no client is attached, the message is dropped and counted, with the error
// [ErrOutboxFull]: those kept are what leads up to now, and the newer ones make no sense without them. When a client
// is attached but slow, Send waits for room, as a write to the connection would: the agent slows down and nothing
// is lost. ctx bounds that wait.
func (o *Outbox) Send(ctx context.Context, message []byte) error {
	for {
		wait, dropped, err := o.put(message)
		if dropped > 0 {
			o.client.log().WarnContext(ctx, "outbox is full, dropping the agent's messages", "kept", o.size, "dropped", dropped)
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
	full := len(o.queue) >= o.size
	if full && o.attached > 0 {
		return o.changed, 0, nil
	}
	if o.attached == 0 {
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
	o.change()
	return nil, 0, nil
}

// wake notifies the phones without keeping anyone waiting. o.mu is held.
func (o *Outbox) wake() {
	if !o.wakes {
		return
	}
	if o.client.gate.Load().closed() && !o.client.log().Enabled(o.ctx, slog.LevelDebug) {
		return // Notify would do nothing and log nothing, ten thousand times a second
	}
	o.wg.Go(func() { o.client.Notify(o.ctx, o.notification) })
}

// change tells those who wait. o.mu is held.
func (o *Outbox) change() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// Attach writes the messages to a client until the client drops: first those that are kept, then each as it is sent.
// It returns when write fails, with that error; when ctx ends, with its cause; when another client is attached, with
// [ErrReplaced]; or when the Outbox is closed, with [ErrOutboxClosed]. Call it from the connection's own goroutine:
// it starts none, and write is called by one goroutine at a time.
//
// A message whose write returned nil is done. One whose write failed is kept and written to the next client, and the
// phones are woken for it. What a socket had taken and the phone had not when the network broke is lost: where that
// must not be, the app acknowledges and write waits for it. write must return when its context ends; only then does the
// next client get its turn. It must not keep or change the message.
func (o *Outbox) Attach(ctx context.Context, write func(ctx context.Context, message []byte) error) error {
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

// enter makes the caller the attached client and sends the one before away.
func (o *Outbox) enter(detach context.CancelFunc) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.detach != nil {
		o.detach()
	}
	o.detach = detach
	o.attached++
}

// leave ends what enter began. Whatever the client did not take has become a reason to wake the phones.
func (o *Outbox) leave() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.attached--
	if o.attached > 0 {
		return // this one was replaced
	}
	o.detach = nil
	if len(o.queue) > 0 && !o.closed() {
		o.wake()
	}
	o.change() // a Send that waits for room waits in vain now
}

// next returns the oldest message, and waits until there is one.
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
	o.queue[0] = nil // for the garbage collector
	o.queue = o.queue[1:]
	if len(o.queue) == 0 {
		o.queue = nil
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

// Close ends Attach and Send with [ErrOutboxClosed], cancels a notification on its way and waits until it is gone.
// What is kept is lost. Closing twice is fine.
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

// String says how much is kept, and nothing of what an agent said.
func (o *Outbox) String() string {
	return fmt.Sprintf("bridge.Outbox{kept: %d, dropped: %d}", o.Len(), o.Dropped())
}

// Format implements [fmt.Formatter]: every verb prints what String returns.
func (o *Outbox) Format(f fmt.State, _ rune) { io.WriteString(f, o.String()) }

// LogValue implements [slog.LogValuer].
func (o *Outbox) LogValue() slog.Value { return slog.StringValue(o.String()) }
