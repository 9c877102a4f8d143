// Package slogpage pages paired phones from log/slog: a [Handler] that wraps another one, hands every record on to it,
// and pages when a record is at Error or above.
//
//	pages, err := slogpage.New(notifier, slog.Default().Handler())
//	if err != nil {
//		return err
//	}
//	slog.SetDefault(slog.New(pages))
//	defer pages.Close(ctx) // sends what is still waiting
//
// A page is an alert of kind failure, with the record's message as its reason and the attributes as its log lines. Its
// run id is a hash of the message and of the place in the source, so that a message that comes again coalesces at the
// relay, and two different ones do not. Attributes are written as slog.TextHandler does. Pages do not use the wrapped
// handler's ReplaceAttr: if that removes secrets, also pass it to [WithReplaceAttr].
//
// # What never pages
//
// Records of this module, and records that are logged with the context of a page that is being sent (for example by a
// transport or a registry's database), so that a page that cannot be sent does not lead to the next one.
//
// # What a storm of errors costs
//
// The same message from the same place pages once in [DefaultInterval]; the next page says how many came in between. At
// most [DefaultQueue] pages wait to be sent. While the queue is full, further pages are dropped and counted, and the
// wrapped handler logs how many. Logging never waits for a page.
package slogpage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
)

// Defaults of a [Handler].
const (
	DefaultInterval = 75 * time.Second // the window in which the hosted relay coalesces
	DefaultQueue    = 32               // pages
)

const (
	maxRemembered = 1024 // messages that are remembered at once
	maxName       = 256  // bytes
	maxMessage    = 600  // bytes of a record's message: of more, fitting would leave nothing else on the page
	maxAttrs      = 1000 // bytes of its attributes
	maxLine       = 300  // bytes of a line of them: fitting drops whole lines
)

// ownPrefix is how the functions of this module begin.
const ownPrefix = "github.com/sealpush/sealpush/"

// An Option changes a default of [New].
type Option func(*config) error

type config struct {
	level    slog.Leveler
	name     string
	interval time.Duration
	queue    int
	replace  func(groups []string, attr slog.Attr) slog.Attr // or nil
}

// WithLevel sets the level from which on a record pages. It is slog.LevelError unless it is set.
func WithLevel(level slog.Leveler) Option {
	return func(c *config) error {
		if level == nil {
			return errors.New("slogpage: WithLevel: the level is nil")
		}
		c.level = level
		return nil
	}
}

// WithName sets the name that the phone shows, of at most 256 bytes. It is the program's file name unless it is set.
func WithName(name string) Option {
	return func(c *config) error {
		if name == "" || len(name) > maxName {
			return fmt.Errorf("slogpage: WithName: the name has %d bytes: must be 1 to %d", len(name), maxName)
		}
		c.name = name
		return nil
	}
}

// WithInterval sets how often the same message from the same place may page.
func WithInterval(d time.Duration) Option {
	return func(c *config) error {
		if d <= 0 {
			return fmt.Errorf("slogpage: WithInterval: %v: must be positive", d)
		}
		c.interval = d
		return nil
	}
}

// WithReplaceAttr calls replace for each attribute of a page, as slog.HandlerOptions.ReplaceAttr does, but for time,
// level, message and source, which are no attributes there: to take secrets out.
func WithReplaceAttr(replace func(groups []string, attr slog.Attr) slog.Attr) Option {
	return func(c *config) error {
		if replace == nil {
			return errors.New("slogpage: WithReplaceAttr: the function is nil")
		}
		c.replace = replace
		return nil
	}
}

// WithQueue sets how many pages may wait to be sent.
func WithQueue(n int) Option {
	return func(c *config) error {
		if n < 1 {
			return fmt.Errorf("slogpage: WithQueue: %d: must be at least 1", n)
		}
		c.queue = n
		return nil
	}
}

// A Handler is a [slog.Handler] that pages. The handlers that its WithAttrs and WithGroup return share its queue. It is
// safe for concurrent use.
type Handler struct {
	next  slog.Handler
	text  slog.Handler // writes the attributes to the pager's texts
	pager *pager
}

// pager is what all handlers of one New share.
type pager struct {
	notifier *relayclient.Notifier
	config   config
	texts    texts
	done     chan struct{} // closed when the last page has been sent

	mu      sync.Mutex
	seen    map[string]*sighting
	queue   chan payload.Alert
	closed  bool
	dropped int // since the last page that had room
}

// A sighting is a message that has paged, or is about to.
type sighting struct {
	at      time.Time // of the page; zero when it was dropped, and none came before
	repeats int       // since then
}

// New returns a handler that hands records to next and pages through notifier. The caller calls Close at exit.
func New(notifier *relayclient.Notifier, next slog.Handler, opts ...Option) (*Handler, error) {
	if notifier == nil || next == nil {
		return nil, errors.New("slogpage: New needs a Notifier and a slog.Handler to wrap")
	}
	c := config{level: slog.LevelError, name: filepath.Base(os.Args[0]), interval: DefaultInterval, queue: DefaultQueue}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("slogpage: an option is nil")
		}
		if err := opt(&c); err != nil {
			return nil, err
		}
	}
	p := &pager{
		notifier: notifier, config: c, done: make(chan struct{}),
		seen: make(map[string]*sighting), queue: make(chan payload.Alert, c.queue),
	}
	text := slog.NewTextHandler(&p.texts, &slog.HandlerOptions{ReplaceAttr: c.replaceAttr, Level: slog.Level(-1 << 30)})
	go p.run(next)
	return &Handler{next: next, text: text, pager: p}, nil
}

// replaceAttr leaves out the level, and leaves the message, which is the number of the text that it begins.
func (c config) replaceAttr(groups []string, attr slog.Attr) slog.Attr {
	if len(groups) == 0 && attr.Key == slog.LevelKey {
		if _, ok := attr.Value.Any().(slog.Level); ok {
			return slog.Attr{}
		}
	}
	if c.replace == nil || len(groups) == 0 && attr.Key == slog.MessageKey {
		return attr
	}
	return c.replace(groups, attr)
}

// Enabled reports whether the record would be logged by the wrapped handler, or pages.
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= h.pager.config.level.Level() || h.next.Enabled(ctx, level)
}

// Handle hands the record to the wrapped handler, whose error it returns, and queues a page if the record is one.
func (h *Handler) Handle(ctx context.Context, record slog.Record) error {
	if record.Level >= h.pager.config.level.Level() && !isPaging(ctx) {
		h.page(ctx, record)
	}
	if !h.next.Enabled(ctx, record.Level) {
		return nil
	}
	return h.next.Handle(ctx, record)
}

// WithAttrs is [slog.Handler]'s.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Handler{h.next.WithAttrs(attrs), h.text.WithAttrs(attrs), h.pager}
}

// WithGroup is [slog.Handler]'s.
func (h *Handler) WithGroup(name string) slog.Handler {
	return &Handler{h.next.WithGroup(name), h.text.WithGroup(name), h.pager}
}

// Close accepts no further pages, and sends those that wait. The error says how many were not sent when ctx ended. It
// may be called more than once, and on any of the handlers that share the queue. Records are still handed on.
func (h *Handler) Close(ctx context.Context) error {
	if ctx == nil {
		ctx = context.Background()
	}
	p := h.pager
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.queue)
	}
	p.mu.Unlock()
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("slogpage: %d pages were not sent: %w", len(p.queue)+1, context.Cause(ctx))
	}
}

type pagingKey struct{}

func isPaging(ctx context.Context) bool { return ctx != nil && ctx.Value(pagingKey{}) != nil }

// page queues the alert of a record, unless there is nothing new in it.
func (h *Handler) page(ctx context.Context, record slog.Record) {
	frame := runtime.Frame{}
	if record.PC != 0 {
		frame, _ = runtime.CallersFrames([]uintptr{record.PC}).Next()
	}
	if strings.HasPrefix(frame.Function, ownPrefix) && !strings.Contains(frame.Function, "_test.") { // tests are not the module
		return
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s:%d", record.Message, frame.File, frame.Line))
	id := hex.EncodeToString(sum[:8])
	p := h.pager
	s, before := p.sight(id, time.Now())
	if s == nil {
		return
	}
	// Values may write themselves, take their time, and log: nothing is locked meanwhile.
	alert := payload.NewFailure("", p.config.name)
	alert.RunID = id
	alert.FailReason = firstBytes(payload.CleanOutput([]byte(firstBytes(record.Message, maxMessage))), maxMessage)
	alert.LogTail = lines(payload.CleanOutput([]byte(h.attrs(ctx, record))))
	if frame.File != "" {
		alert.LogTail = append(alert.LogTail, fmt.Sprintf("at %s:%d", filepath.Base(frame.File), frame.Line))
	}
	if before.repeats > 0 && !before.at.IsZero() {
		alert.LogTail = append(alert.LogTail, fmt.Sprintf("%d more since %s", before.repeats, before.at.UTC().Format("15:04:05 UTC")))
	}
	p.enqueue(alert, s, before)
}

// lines breaks a text between two words, or within one that is long.
func lines(text string) (lines []string) {
	for text = strings.Join(strings.Fields(text), " "); text != ""; text = strings.TrimSpace(text) {
		line := firstBytes(text, maxLine)
		if end := strings.LastIndexByte(line, ' '); len(line) < len(text) && end > 0 {
			line = line[:end]
		}
		lines = append(lines, line)
		text = text[len(line):]
	}
	return lines
}

// attrs writes a record's attributes as one line.
func (h *Handler) attrs(ctx context.Context, record slog.Record) string {
	number := h.pager.texts.open()
	plain := slog.NewRecord(time.Time{}, record.Level, number, 0)
	record.Attrs(func(attr slog.Attr) bool {
		plain.AddAttrs(attr)
		return true
	})
	defer h.pager.texts.close(number)
	if h.text.Handle(ctx, plain) != nil {
		return ""
	}
	return h.pager.texts.close(number)
}

// texts are what text handlers write at the same time, each by the number that stands in place of its message.
type texts struct {
	mu       sync.Mutex
	last     uint64
	byNumber map[string]string
}

func (t *texts) open() (number string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byNumber == nil {
		t.byNumber = make(map[string]string)
	}
	t.last++
	number = strconv.FormatUint(t.last, 10)
	t.byNumber[number] = ""
	return number
}

// Write takes one record.
func (t *texts) Write(p []byte) (int, error) {
	number, text, _ := strings.Cut(strings.TrimSpace(string(p[:min(len(p), maxAttrs+64)])), " ")
	text = firstBytes(text, maxAttrs)
	t.mu.Lock()
	defer t.mu.Unlock()
	if number = strings.TrimPrefix(number, slog.MessageKey+"="); number != "" {
		t.byNumber[number] = text
	}
	return len(p), nil
}

func (t *texts) close(number string) (text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	text = t.byNumber[number]
	delete(t.byNumber, number)
	return text
}

// firstBytes cuts a text that is longer than n bytes.
func firstBytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "")
}

// sight notes that a message is about to page, and returns what was known of it before; nil if it may not page now.
func (p *pager) sight(id string, now time.Time) (s *sighting, before sighting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, before
	}
	if s = p.seen[id]; s == nil {
		s = p.remember(id, now)
	} else if now.Sub(s.at) < p.config.interval {
		s.repeats++
		return nil, before
	}
	before = *s
	*s = sighting{at: now}
	return s, before
}

// remember makes room for a message, and forgets those that may page again.
func (p *pager) remember(id string, now time.Time) *sighting {
	if len(p.seen) >= maxRemembered {
		for id, s := range p.seen {
			if now.Sub(s.at) >= p.config.interval {
				delete(p.seen, id)
			}
		}
		if len(p.seen) >= maxRemembered {
			clear(p.seen) // at worst, something pages again within the interval
		}
	}
	p.seen[id] = &sighting{}
	return p.seen[id]
}

// enqueue never waits. What finds no room may page when it comes again.
func (p *pager) enqueue(alert payload.Alert, s *sighting, before sighting) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	select {
	case p.queue <- alert:
	default:
		p.dropped++
		s.at, s.repeats = before.at, s.repeats+before.repeats
	}
}

// run sends pages until the queue is closed and empty.
func (p *pager) run(next slog.Handler) {
	defer close(p.done)
	ctx := context.WithValue(context.Background(), pagingKey{}, true)
	for alert := range p.queue {
		p.notifier.Notify(ctx, alert) // what went wrong is in the log
		p.mu.Lock()
		dropped := p.dropped
		p.dropped = 0
		p.mu.Unlock()
		if dropped > 0 && next.Enabled(ctx, slog.LevelWarn) {
			record := slog.NewRecord(time.Now(), slog.LevelWarn, "pages dropped: more errors than can be sent", 0)
			record.AddAttrs(slog.Int("dropped", dropped))
			next.Handle(ctx, record)
		}
	}
}
