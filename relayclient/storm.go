package relayclient

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient/pairing"
)

// ErrHeldBack is the error of a [Notifier.Notify] whose alert was not posted, but counted: the next summary of the
// storm guard tells of it. See [WithStormGuard].
var ErrHeldBack = errors.New("relayclient: held back in a storm of alerts, for a summary")

// relayRefill is how long it takes the hosted relay to give a device's bucket of 60 alerts one back (live protocol,
// "Relay").
const relayRefill = 2 * time.Second

// The bursts that WithStormGuard takes. Fewer would be summed up more often than the bucket refills, more would leave
// it empty.
const (
	minStormBurst = 5
	maxStormBurst = 50
)

const (
	maxHeldNames     = 64               // names that are counted each for itself
	maxShownNames    = 6                // names that a summary shows
	maxHeldName      = 48               // bytes of each
	maxHeldReason    = 160              // bytes of the newest failure's reason
	maxHeldTail      = 3000             // bytes of its tail: more than any message holds
	maxSummaries     = 5                // attempts at telling a phone of the same alerts
	maxRelayPatience = 10 * time.Minute // of a Retry-After, which a relay could make as long as it likes
)

// summaryName is the name of the alert that sums up.
const summaryName = "alerts held back"

// A NotifierOption changes a default of [NewNotifier].
type NotifierOption func(*notifierConfig) error

type notifierConfig struct {
	stormBurst int // 0 for no guard
}

// WithStormGuard keeps a storm of alerts from using up what a relay takes for one phone, so that the last and most
// important alert is not the one that it refuses. The hosted relay's bucket holds 60 alerts a phone, and gets one back
// every 2 s (live protocol, "Relay"). Without a guard, what it refuses (429) is in the log and nowhere else.
//
// The notifier posts up to burst alerts in a row, 5 to 50, and one more for each 2 s that pass. Alerts beyond that are
// held back: their Notify returns [ErrHeldBack]. So are, from then on, all alerts until the summary, which is sent
// burst times 2 s later, when the relay's bucket has got back what the notifier took from it. It is one alert of kind
// failure, under a run id of its own, named "alerts held back": how many they were, under which names, and the newest
// failure's reason and tail. If the storm goes on, so does this: then the phone gets one summary after the other, and
// nothing else.
//
// An alert that is refused with a 429 is counted as well, whatever its kind, and starts to hold back what follows; the
// summary then waits for the relay's Retry-After, if that is longer, up to 10 minutes. What a relay refused of a
// summary, or could not be reached for, is summed up anew for the phones that it was for, up to 4 times.
//
// Never held back are test alerts, [payload.EventQuorumLoss], and what [WithCritical] marks. So leave them room: 30 is
// half of the bucket, and where several daemons page the same phones, each should have its part of that. A relay counts
// the copies of an alert that several nodes report as one; the guard of each node counts its own.
//
// At exit, [Notifier.Close] sends what is owed. What is kept of the alerts is a few kilobytes, however many they are.
func WithStormGuard(burst int) NotifierOption {
	return func(c *notifierConfig) error {
		if burst < minStormBurst || burst > maxStormBurst {
			return fmt.Errorf("relayclient: WithStormGuard: a burst of %d alerts: must be %d to %d", burst, minStormBurst, maxStormBurst)
		}
		c.stormBurst = burst
		return nil
	}
}

// WithCritical marks an alert that a storm guard never holds back. See [WithStormGuard].
func WithCritical() NotifyOption {
	return func(c *notifyConfig) error {
		c.critical = true
		return nil
	}
}

// Close sends the summary that a storm guard owes, and waits for it until ctx ends. Then the error says how many alerts
// nobody was told of. A Notify that comes later gives [ErrClosed]. One that is running goes on, but what the relay
// refuses of it is not summed up any more, so wait for those first. Close may be called more than once. The client is
// the caller's to close, after the notifier.
func (n *Notifier) Close(ctx context.Context) error {
	if n == nil || n.client == nil {
		return nil
	}
	if ctx == nil {
		ctx = context.Background()
	}
	n.closed.Store(true)
	if n.storm == nil {
		return nil
	}
	return n.storm.close(ctx)
}

// A stormGuard counts what it holds back and sends summaries. It is safe for concurrent use. While anything is held
// back, one goroutine runs.
type stormGuard struct {
	client   *Client
	registry *pairing.Registry
	host     string
	burst    time.Duration // what it may post in a row, as the time in which the relay's bucket gets that back

	life    context.Context // until Close has given up
	giveUp  context.CancelCauseFunc
	closing chan struct{} // closed by Close: no more waiting

	mu     sync.Mutex
	closed bool
	fullAt time.Time     // when the relay's bucket has got back all that alerts took; burst ahead at most
	held   *heldAlerts   // for the next summary; nil for nothing
	dueAt  time.Time     // when that is sent
	done   chan struct{} // closed when the goroutine ends; nil while none runs
	owed   int           // the alerts of the summary that is being sent
}

func newStormGuard(n *Notifier, burst int) *stormGuard {
	s := &stormGuard{client: n.client, registry: n.registry, host: n.host, burst: time.Duration(burst) * relayRefill, closing: make(chan struct{})}
	s.life, s.giveUp = context.WithCancelCause(context.Background())
	return s
}

// admit returns nil for an alert that is to be posted now. Of any other it keeps what the summary needs.
func (s *stormGuard) admit(alert payload.Alert, config notifyConfig) error {
	if s.client.closed.Load() || alert.Validate() != nil {
		return nil // Send says so
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	now := time.Now()
	room := s.fullAt.Sub(now) <= s.burst-relayRefill
	s.take(now, relayRefill)
	critical := config.critical || alert.Kind == payload.KindTest || alert.Kind == payload.KindEvent && alert.Event == payload.EventQuorumLoss
	if critical || room && s.done == nil {
		return nil
	}
	s.hold(now, alert, config.priority)
	return ErrHeldBack
}

// take counts what alerts take from the bucket, also those that are held back: so the storm is over when they cease.
func (s *stormGuard) take(now time.Time, refill time.Duration) {
	if s.fullAt.Before(now) {
		s.fullAt = now
	}
	s.fullAt = s.fullAt.Add(refill)
	if latest := now.Add(s.burst); s.fullAt.After(latest) {
		s.fullAt = latest
	}
}

// refused counts an alert that the relay's bucket had no room for, and holds back what follows.
func (s *stormGuard) refused(alert payload.Alert, config notifyConfig, outcomes []Outcome) {
	limited, retryAfter := rateLimited(outcomes)
	if !limited {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	now := time.Now()
	s.take(now, s.burst) // the bucket is empty, whoever emptied it
	s.hold(now, alert, config.priority)
	if earliest := now.Add(retryAfter); s.dueAt.Before(earliest) {
		s.dueAt = earliest
	}
}

// rateLimited reports whether the relay refused one of the outcomes for its rate, and for how long it is to be left
// alone.
func rateLimited(outcomes []Outcome) (limited bool, retryAfter time.Duration) {
	for _, outcome := range outcomes {
		if refused, ok := errors.AsType[*StatusError](outcome.Err); ok && errors.Is(refused, ErrRateLimited) {
			limited, retryAfter = true, max(retryAfter, min(refused.RetryAfter, maxRelayPatience))
		}
	}
	return limited, retryAfter
}

func (s *stormGuard) hold(now time.Time, alert payload.Alert, priority Priority) {
	if s.held == nil {
		s.held = &heldAlerts{since: now, priority: Passive, names: make(map[string]int)}
		s.dueAt = now.Add(s.burst)
	}
	s.held.add(alert, priority)
	if s.done == nil {
		s.done = make(chan struct{})
		go s.run()
	}
}

// run sends summaries until one has been sent and nothing was held back meanwhile.
func (s *stormGuard) run() {
	for {
		s.mu.Lock()
		held, wait := s.held, time.Until(s.dueAt)
		if held == nil {
			close(s.done)
			s.done = nil
			s.mu.Unlock()
			return
		}
		if wait > 0 && !s.closed {
			s.mu.Unlock()
			ended(s.closing, wait)
			continue
		}
		s.held, s.owed = nil, held.count
		s.mu.Unlock()
		s.report(held)
		s.mu.Lock()
		s.owed = 0
		s.mu.Unlock()
	}
}

// ended waits, for d at most, and reports whether the channel was closed by then.
func ended(closed <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-closed:
		return true
	case <-timer.C:
		return false
	}
}

// report sends one summary to every phone. What went wrong is in the log.
func (s *stormGuard) report(held *heldAlerts) {
	var left []string // the devices that are still to be told; nil for all
	for tries := 1; ; tries++ {
		summary := held.summary(s.host)
		recipients := s.registry.Recipients(s.life)
		if err := nobody(recipients); err != nil {
			s.client.log(s.life, slog.LevelError, "alert not sent", summary, slog.Any("error", err))
			return
		}
		devices := slices.DeleteFunc(recipients.Devices, func(device pairing.Device) bool {
			return left != nil && !slices.Contains(left, device.ID)
		})
		outcomes := s.client.Send(s.life, Push{Alert: summary, Salt: recipients.Salt, Priority: held.priority}, devices)
		s.mu.Lock()
		s.take(time.Now(), relayRefill)
		s.mu.Unlock()
		left = unseen(outcomes)
		if len(left) == 0 || tries == maxSummaries {
			return
		}
		_, retryAfter := rateLimited(outcomes)
		if ended(s.closing, max(retryAfter, s.burst)) && ended(s.life.Done(), cmp.Or(retryAfter, relayRefill)) {
			return
		}
	}
}

// unseen returns the devices for which the relay took nothing, for certain: it said so, or had no connection.
func unseen(outcomes []Outcome) (devices []string) {
	for _, outcome := range outcomes {
		unsent, ok := errors.AsType[*TransportError](outcome.Err)
		if errors.Is(outcome.Err, ErrRateLimited) || ok && unsent.Unsent {
			devices = append(devices, outcome.DeviceID)
		}
	}
	return devices
}

func (s *stormGuard) close(ctx context.Context) error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.closing)
	}
	done := s.done
	s.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.giveUp(context.Cause(ctx))
	s.mu.Lock()
	defer s.mu.Unlock()
	count := s.owed
	if s.held != nil {
		count += s.held.count
	}
	return fmt.Errorf("relayclient: the summary of %d alerts was not sent: %w", count, context.Cause(ctx))
}

// heldAlerts is what is kept of the alerts for one summary.
type heldAlerts struct {
	since    time.Time
	count    int
	names    map[string]int // at most maxHeldNames
	priority Priority       // the loudest

	newest payload.Alert // a failure if there was one; bounded
}

func (h *heldAlerts) add(alert payload.Alert, priority Priority) {
	h.count++
	name := firstBytes(alert.Name, maxHeldName)
	if _, known := h.names[name]; known || len(h.names) < maxHeldNames {
		h.names[strings.Clone(name)]++
	}
	h.priority = min(h.priority, priority)
	if alert.Kind != payload.KindFailure && h.newest.Kind == payload.KindFailure {
		return
	}
	h.newest = payload.Alert{
		Kind:       alert.Kind,
		Name:       strings.Clone(name),
		Host:       strings.Clone(firstBytes(alert.Host, maxHeldName)),
		FailReason: strings.Clone(firstBytes(cmp.Or(alert.FailReason, alert.Subject, alert.Message), maxHeldReason)),
	}
	for i, size := len(alert.LogTail)-1, 0; i >= 0 && len(h.newest.LogTail) < payload.MaxLogLines-1; i-- {
		if size += len(alert.LogTail[i]); size > maxHeldTail {
			break
		}
		h.newest.LogTail = append(h.newest.LogTail, strings.Clone(alert.LogTail[i]))
	}
	slices.Reverse(h.newest.LogTail)
}

// summary returns a new alert about what is held. The names are in the reason, which a phone shows first and which is
// shortened last; the newest failure's line is the last of the tail, which goes last.
func (h *heldAlerts) summary(host string) payload.Alert {
	alert := payload.NewFailure(host, summaryName)
	alert.RunID = rand.Text()
	names := slices.SortedFunc(maps.Keys(h.names), func(a, b string) int {
		return cmp.Or(cmp.Compare(h.names[b], h.names[a]), cmp.Compare(a, b))
	})
	others := h.count
	var shown []string
	for _, name := range names[:min(len(names), maxShownNames)] {
		shown = append(shown, fmt.Sprintf("%d × %s", h.names[name], name))
		others -= h.names[name]
	}
	if others > 0 {
		shown = append(shown, fmt.Sprintf("%d under other names", others))
	}
	plural := "s"
	if h.count == 1 {
		plural = ""
	}
	alert.FailReason = fmt.Sprintf("%d alert%s held back since %s: %s", h.count, plural, h.since.UTC().Format("15:04:05 UTC"), strings.Join(shown, ", "))
	newest := fmt.Sprintf("newest: %s of %s on %s", h.newest.Kind, h.newest.Name, h.newest.Host)
	if h.newest.FailReason != "" {
		newest += ": " + strings.Join(strings.Fields(h.newest.FailReason), " ")
	}
	alert.LogTail = append(slices.Clone(h.newest.LogTail), newest)
	return alert
}
