// Package jobpage pages paired phones about the runs of scheduled jobs. It is what the integrations with schedulers
// share.
package jobpage

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
)

// Defaults of a [Pager].
const (
	DefaultQueue     = 32 // pages
	DefaultPanicWait = 10 * time.Second
)

// Config is what a [Pager] is made of.
type Config struct {
	Queue     int           // how many pages may wait to be sent
	PanicWait time.Duration // how long a panic waits for its page
	Logger    *slog.Logger  // nil for slog.Default
	Now       func() time.Time
	AfterFunc func(d time.Duration, f func()) (stop func())
}

// DefaultConfig has the defaults and the real clock.
func DefaultConfig() Config {
	return Config{
		Queue:     DefaultQueue,
		PanicWait: DefaultPanicWait,
		Now:       time.Now,
		AfterFunc: func(d time.Duration, f func()) func() {
			timer := time.AfterFunc(d, f)
			return func() { timer.Stop() }
		},
	}
}

// SetQueue sets Queue, if it can be used.
func (c *Config) SetQueue(n int) error {
	if n < 1 {
		return fmt.Errorf("WithQueue: %d: must be at least 1", n)
	}
	c.Queue = n
	return nil
}

// SetPanicWait sets PanicWait, if it can be used.
func (c *Config) SetPanicWait(d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("WithPanicWait: %v: must be positive", d)
	}
	c.PanicWait = d
	return nil
}

// A Pager sends pages, one after the other. It is safe for concurrent use.
type Pager struct {
	notifier *relayclient.Notifier
	config   Config
	suffix   string         // of the run ids, so that those of two processes differ
	direct   sync.WaitGroup // pages of panics that are being sent
	done     chan struct{}  // closed when all of the queue has been sent

	mu      sync.Mutex
	queue   chan payload.Alert
	closed  bool
	waiting int // pages that are queued or being sent
	dropped int // since the last page that had room
}

// New starts a pager, which the caller closes.
func New(notifier *relayclient.Notifier, config Config) (*Pager, error) {
	if notifier == nil {
		return nil, errors.New("New needs a Notifier")
	}
	suffix := make([]byte, 4)
	rand.Read(suffix)
	p := &Pager{
		notifier: notifier, config: config, suffix: hex.EncodeToString(suffix),
		done: make(chan struct{}), queue: make(chan payload.Alert, config.Queue),
	}
	go p.run()
	return p, nil
}

// Logger is where what went wrong is said.
func (p *Pager) Logger() *slog.Logger {
	if p.config.Logger == nil {
		return slog.Default()
	}
	return p.config.Logger
}

// Close lets no further page in and waits for those under way. The error says how many were given up when ctx ended. It
// may be called more than once.
func (p *Pager) Close(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background()
	}
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.queue)
	}
	p.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		<-p.done
		p.direct.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		p.mu.Lock()
		defer p.mu.Unlock()
		return fmt.Errorf("%d pages were not sent: %w", p.waiting, context.Cause(ctx))
	}
}

// enqueue never waits.
func (p *Pager) enqueue(alert payload.Alert) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	select {
	case p.queue <- alert:
		p.waiting++
	default:
		p.dropped++
	}
}

// sendNow waits until the page has been sent, but no longer than a panic may be held up.
func (p *Pager) sendNow(alert payload.Alert) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.waiting++
	p.direct.Add(1)
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), p.config.PanicWait)
	defer cancel()
	sent := make(chan struct{})
	go func() { // a registry may hang, whatever the context says
		defer p.direct.Done()
		defer close(sent)
		p.notify(ctx, alert)
	}()
	select {
	case <-sent:
	case <-ctx.Done():
	}
}

func (p *Pager) run() {
	defer close(p.done)
	for alert := range p.queue {
		p.notify(context.Background(), alert)
		p.mu.Lock()
		dropped := p.dropped
		p.dropped = 0
		p.mu.Unlock()
		if dropped > 0 {
			p.Logger().Warn("pages dropped: more runs have failed than can be sent", "dropped", dropped)
		}
	}
}

func (p *Pager) notify(ctx context.Context, alert payload.Alert) {
	p.notifier.Notify(ctx, alert) // what went wrong is in the log
	p.mu.Lock()
	p.waiting--
	p.mu.Unlock()
}
