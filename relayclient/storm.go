package relayclient

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/maphash"
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

// How long it takes a relay to give a device's bucket of alerts one back: the hosted one (live protocol, "Relay"), and at
// most what WithRefillInterval takes.
const (
	relayRefill    = 2 * time.Second
	maxRelayRefill = time.Minute
)

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
	maxHeldRuns      = 1024             // alerts of a summary that are known again when they are repeated
	maxTold          = 16               // summaries of which that is remembered
)

// summaryName is the name of the alert that sums up.
const summaryName = "alerts held back"

// A NotifierOption changes a default of [NewNotifier].
type NotifierOption func(*notifierConfig) error

type notifierConfig struct {
	stormBurst int           // 0 for no guard
	refill     time.Duration // 0 for the hosted relay's
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
// A caller may repeat an alert that is held back, with the same run id: it is counted once. When the relay has accepted
// its summary, and there is still no room, Notify returns the outcomes of that summary, for 10 minutes; after that, it
// is held back anew. Of a summary 1024 alerts are known again.
//
// Never held back are test alerts, [payload.EventQuorumLoss], and what [WithCritical] marks. So leave them room: 30 is
// half of the bucket, and where several daemons page the same phones, each should have its part of that. A relay counts
// the copies of an alert that several nodes report as one; the guard of each node counts its own.
//
// A relay of your own may have another bucket: see [WithRefillInterval].
//
// At exit, [Notifier.Close] sends what is owed. What is kept of the alerts is some hundred kilobytes at most, however
// many they are.
func WithStormGuard(burst int) NotifierOption {
	return func(c *notifierConfig) error {
		if burst < minStormBurst || burst > maxStormBurst {
			return fmt.Errorf("relayclient: WithStormGuard: a burst of %d alerts: must be %d to %d", burst, minStormBurst, maxStormBurst)
		}
		c.stormBurst = burst
		return nil
	}
}

// WithRefillInterval says how long the relay takes to give a phone's bucket one alert back, where it is not the hosted
// relay's 2 s: relay.Policy.RefillInterval of a relay of your own, at most a minute. [WithStormGuard] reckons with it.
func WithRefillInterval(d time.Duration) NotifierOption {
	return func(c *notifierConfig) error {
		if d <= 0 || d > maxRelayRefill {
			return fmt.Errorf("relayclient: WithRefillInterval: %v: must be positive, and at most %v", d, maxRelayRefill)
		}
		c.refill = d
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

// Close sends the summary that a storm guard owes, and waits for it until ctx ends. The error says how many alerts nobody
// was told of, because of that or because the relay accepted the summary for no phone. A Notify that comes later gives
// [ErrClosed]. One that is running goes on, but what the relay
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
	refill   time.Duration // in which the relay's bucket gets one back
	burst    time.Duration // what it may post in a row, as the time in which the bucket gets that back
	seed     maphash.Seed  // of the hashes by which alerts are known again

	life    context.Context // until Close has given up
	giveUp  context.CancelCauseFunc
	closing chan struct{} // closed by Close: no more waiting

	mu     sync.Mutex
	closed bool
	fullAt time.Time     // when the relay's bucket has got back all that alerts took; burst ahead at most
	held   *heldAlerts   // for the next summary; nil for nothing
	dueAt  time.Time     // when that is sent
	done   chan struct{} // closed when the goroutine ends; nil while none runs
	owed   *heldAlerts   // of the summary that is being sent, or nil
	told   []told        // the summaries that were accepted last, oldest first
	untold error         // what Close says when it was too late to tell anybody; nil otherwise
}

// told is a summary that the relay accepted for one phone at least.
type told struct {
	at       time.Time
	runs     map[uint64]struct{} // of its alerts
	outcomes []Outcome
}

func newStormGuard(n *Notifier, burst int, refill time.Duration) *stormGuard {
	s := &stormGuard{
		client: n.client, registry: n.registry, host: n.host, refill: refill, burst: time.Duration(burst) * refill,
		seed: maphash.MakeSeed(), closing: make(chan struct{}),
	}
	s.life, s.giveUp = context.WithCancelCause(context.Background())
	return s
}

// admit returns nil for an alert that is to be posted now. Of any other it keeps what the summary needs, or returns what
// became of the summary that told of it.
func (s *stormGuard) admit(alert payload.Alert, config notifyConfig) ([]Outcome, error) {
	if s.client.closed.Load() || alert.Validate() != nil {
		return nil, nil // Send says so
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	now := time.Now()
	room := s.fullAt.Sub(now) <= s.burst-s.refill
	critical := config.critical || alert.Kind == payload.KindTest || alert.Kind == payload.KindEvent && alert.Event == payload.EventQuorumLoss
	if critical || room && s.done == nil {
		s.take(now, s.refill)
		return nil, nil
	}
	run := s.runOf(alert)
	if s.held.has(run) || s.owed.has(run) {
		return nil, ErrHeldBack
	}
	if outcomes := s.toldOf(now, run); outcomes != nil {
		return outcomes, ErrHeldBack
	}
	s.take(now, s.refill)
	s.hold(now, alert, run, config.priority)
	return nil, ErrHeldBack
}

// runOf is a hash of what makes an alert the same as another for a relay (see payload.Alert.CollapseID), or 0 for one
// without a run: two of those may be different failures.
func (s *stormGuard) runOf(a payload.Alert) uint64 {
	if a.RunID == "" && a.RunKey == "" {
		return 0
	}
	type identity struct{ kind, name, runID, event, dag, runKey, taskKey, slaCheck string }
	return max(1, maphash.Comparable(s.seed, identity{string(a.Kind), a.Name, a.RunID, a.Event, a.DAG, a.RunKey, a.TaskKey, a.SLACheck}))
}

// toldOf returns what became of the summary that told of a run, or nil.
func (s *stormGuard) toldOf(now time.Time, run uint64) []Outcome {
	s.told = slices.DeleteFunc(s.told, func(t told) bool { return now.Sub(t.at) >= payload.FreshFor })
	for _, t := range s.told {
		if _, ok := t.runs[run]; ok {
			return slices.Clone(t.outcomes)
		}
	}
	return nil
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
	s.hold(now, alert, s.runOf(alert), config.priority)
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

func (s *stormGuard) hold(now time.Time, alert payload.Alert, run uint64, priority Priority) {
	if s.held == nil {
		s.held = &heldAlerts{since: now, priority: Passive, names: make(map[string]int), runs: make(map[uint64]struct{})}
		s.dueAt = now.Add(s.burst)
	}
	if !s.held.has(run) {
		s.held.add(alert, run, priority)
	}
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
		s.held, s.owed = nil, held
		s.mu.Unlock()
		outcomes, err := s.report(held)
		s.mu.Lock()
		s.owed = nil
		s.reported(held, outcomes, err)
		s.mu.Unlock()
	}
}

// reported notes what became of a summary: the outcomes, or why there are none.
func (s *stormGuard) reported(held *heldAlerts, outcomes []Outcome, err error) {
	for _, outcome := range outcomes {
		if outcome.Err == nil {
			s.told = append(s.told, told{time.Now(), held.runs, outcomes})
			s.told = s.told[max(0, len(s.told)-maxTold):]
			return
		}
		err = outcome.Err
	}
	if s.closed && err != nil {
		s.untold = errors.Join(s.untold, fmt.Errorf("relayclient: nobody was told of %d alerts that were held back: %w", held.count, err))
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

// report sends one summary to every phone, and returns the last outcome of each, or why there was nobody to send it to.
// What went wrong is in the log.
func (s *stormGuard) report(held *heldAlerts) (last []Outcome, err error) {
	var left []string // the devices that are still to be told; nil for all
	for tries := 1; ; tries++ {
		summary, retryAfter := held.summary(s.host), time.Duration(0)
		recipients := s.registry.Recipients(s.life)
		if err = nobody(recipients); err == nil {
			devices := slices.DeleteFunc(recipients.Devices, func(device pairing.Device) bool {
				return left != nil && !slices.Contains(left, device.ID)
			})
			outcomes := s.client.Send(s.life, Push{Alert: summary, Salt: recipients.Salt, Priority: held.priority}, devices)
			s.mu.Lock()
			s.take(time.Now(), s.refill)
			s.mu.Unlock()
			last = append(slices.DeleteFunc(last, func(o Outcome) bool { return slices.Contains(left, o.DeviceID) }), outcomes...)
			if left = unseen(outcomes); len(left) == 0 {
				return last, nil
			}
			_, retryAfter = rateLimited(outcomes)
		}
		if tries == maxSummaries || err != nil && !errors.Is(err, pairing.ErrUnavailable) ||
			ended(s.closing, max(retryAfter, s.burst)) && ended(s.life.Done(), cmp.Or(retryAfter, s.refill)) {
			if err != nil {
				s.client.log(context.WithoutCancel(s.life), slog.LevelError, "alert not sent", summary, slog.Any("error", err))
			}
			return last, err
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
		return s.untold // which nobody changes any more
	}
	select {
	case <-done:
		return s.untold
	case <-ctx.Done():
	}
	s.giveUp(context.Cause(ctx))
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for _, held := range []*heldAlerts{s.owed, s.held} {
		if held != nil {
			count += held.count
		}
	}
	if count == 0 { // it has just ended
		return s.untold
	}
	return fmt.Errorf("relayclient: the summary of %d alerts was not sent: %w", count, context.Cause(ctx))
}

// heldAlerts is what is kept of the alerts for one summary.
type heldAlerts struct {
	since    time.Time
	count    int
	names    map[string]int      // at most maxHeldNames
	runs     map[uint64]struct{} // at most maxHeldRuns
	priority Priority            // the loudest

	newest payload.Alert // a failure if there was one; bounded
}

// has reports whether a run is among them. Of 0, which is no run, nobody knows.
func (h *heldAlerts) has(run uint64) bool {
	if h == nil {
		return false
	}
	_, ok := h.runs[run]
	return ok
}

func (h *heldAlerts) add(alert payload.Alert, run uint64, priority Priority) {
	h.count++
	if run != 0 && len(h.runs) < maxHeldRuns {
		h.runs[run] = struct{}{}
	}
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
	alert.FailReason = oneLine(fmt.Sprintf("%d alert%s held back since %s: %s", h.count, plural, h.since.UTC().Format("15:04:05 UTC"), strings.Join(shown, ", ")))
	newest := fmt.Sprintf("newest: %s of %s on %s", h.newest.Kind, h.newest.Name, h.newest.Host)
	if h.newest.FailReason != "" {
		newest += ": " + h.newest.FailReason
	}
	alert.LogTail = append(slices.Clone(h.newest.LogTail), oneLine(newest))
	return alert
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
