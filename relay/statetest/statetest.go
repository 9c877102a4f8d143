// Package statetest tests a [relay.State]: relays that keep their devices in it must decide as the relay protocol says,
// together and at every moment.
//
//	func TestState(t *testing.T) {
//		statetest.Run(t, func(t *testing.T) statetest.Opener {
//			name := newDatabase(t)
//			return func(t *testing.T) relay.State { return openState(t, name) }
//		})
//	}
//
// Each test runs in a testing/synctest bubble, where hours pass in no time.
package statetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/secret"
)

// An Opener opens one state, each time anew: every relay of a test gets a value of its own, as in processes of their
// own. It is called inside of the bubble. What it opens it closes in t's Cleanup.
type Opener func(t *testing.T) relay.State

// Run runs every test on an empty state: on what newState returns, which is called once for each test, outside of the
// bubble.
func Run(t *testing.T, newState func(t *testing.T) Opener) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, f *fixture)
	}{
		{"Coalesces", coalesces},
		{"SuppressesFlapping", suppressesFlapping},
		{"CountsForwardsAtArrival", countsAtArrival},
		{"CoalescedPostsDoNotProlongTheCooling", coalescedDoNotProlong},
		{"LeavesSlowRepeatsAlone", leavesSlowRepeatsAlone},
		{"LimitsTheRate", limitsTheRate},
		{"SpendsATokenOnWhatIsRefused", spendsOnRefusals},
		{"FailuresLeaveNoTrace", failuresLeaveNoTrace},
		{"CopiesWaitForTheForward", copiesWait},
		{"CopiesGetItsFailure", copiesFail},
		{"GoesOnWhenAProcessDies", goesOnAfterDeath},
		{"WindowRunsFromTheStart", windowRunsFromTheStart},
		{"DigestsPastTheQuota", digestsPastTheQuota},
		{"MonthsBeginAtMidnight", monthsBeginAtMidnight},
		{"RefusedPagesDoNotUseTheQuota", refusedDoNotCount},
		{"QuotaComesAfterTheRate", quotaComesAfterTheRate},
		{"DigestsThatFail", digestsThatFail},
		{"ManyNodesAtOnce", manyNodesAtOnce},
	} {
		t.Run(test.name, func(t *testing.T) {
			open := newState(t)
			synctest.Test(t, func(t *testing.T) { test.run(t, &fixture{t: t, open: open}) })
		})
	}
}

const phone = "8f3a1b5577990024"

// A fixture has two relays on one state, whose push service it plays.
type fixture struct {
	t      *testing.T
	open   Opener
	relays []*relay.Relay
	next   int // the relay that is posted to next

	mu      sync.Mutex
	pages   []string // collapse ids that the push service was handed
	digests int
	page    func(id string) error // what the push service says; nil: takes all
	digest  func() error
}

// relay returns the relays in turn, so that every rule is held between two of them.
func (f *fixture) relay(opts ...relay.Option) *relay.Relay {
	f.t.Helper()
	if f.relays == nil {
		for range 2 {
			opts := append([]relay.Option{
				relay.WithForwarder(f), relay.WithState(f.open(f.t)), relay.WithLogger(quiet()),
			}, opts...)
			r, err := relay.New(opts...)
			if err != nil {
				f.t.Fatal(err)
			}
			f.t.Cleanup(r.Close)
			f.relays = append(f.relays, r)
		}
	}
	f.next++
	return f.relays[f.next%2]
}

func (f *fixture) Device(token string) (string, error) { return strings.ToLower(token), nil }

func (f *fixture) Forward(_ context.Context, e relay.Envelope) error {
	f.mu.Lock()
	page := f.page
	f.pages = append(f.pages, e.CollapseID)
	f.mu.Unlock()
	if page != nil {
		return page(e.CollapseID)
	}
	return nil
}

func (f *fixture) ForwardDigest(_ context.Context, device secret.Text) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.digests++
	if f.digest != nil {
		return f.digest()
	}
	return nil
}

func (f *fixture) handed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.pages)
}

func id(n int) string { return fmt.Sprintf("%032x", n) }

// outcome is what becomes of a post: an outcome or a status.
func outcome(r *relay.Relay, device string, n int) string {
	body := fmt.Sprintf(`{"v":1,"device":%q,"ciphertext":%q,"collapseId":%q,"priority":"passive","event":false}`,
		device, strings.Repeat("A", 68), id(n))
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
	var answer struct {
		Outcome string `json:"outcome"`
		Reason  string `json:"reason"`
	}
	json.Unmarshal(w.Body.Bytes(), &answer) // without an outcome there is a status
	if w.Code == http.StatusAccepted {
		return answer.Outcome
	}
	return strings.TrimSpace(fmt.Sprint(w.Code, " ", answer.Reason))
}

// expect lets time pass and posts an id.
func (f *fixture) expect(after time.Duration, n int, want string) {
	f.t.Helper()
	time.Sleep(after) // in the bubble's time
	if got := outcome(f.relay(), phone, n); got != want {
		f.t.Errorf("id %d at %s: %s, want %s", n, time.Now().UTC().Format(time.RFC3339Nano), got, want)
	}
}

func coalesces(t *testing.T, f *fixture) {
	const other = phone + "ff"
	steps := []struct {
		after time.Duration
		token string
		id    int
		want  string
	}{
		{0, phone, 1, "forwarded"},
		{0, phone, 1, "coalesced"},
		{0, strings.ToUpper(phone), 1, "coalesced"},
		{0, phone, 2, "forwarded"},
		{0, other, 1, "forwarded"},
		{40 * time.Second, phone, 1, "coalesced"},
		{35*time.Second - 1, phone, 1, "coalesced"},
		{1, phone, 1, "forwarded"}, // 75 s after the last forward, not the last post
		{0, other, 1, "forwarded"},
		{75*time.Second - 1, phone, 1, "coalesced"},
	}
	for i, step := range steps {
		time.Sleep(step.after)
		if got := outcome(f.relay(), step.token, step.id); got != step.want {
			t.Errorf("step %d: %s, want %s", i+1, got, step.want)
		}
	}
	if got := f.handed(); got != 5 {
		t.Errorf("%d pages, want 5", got)
	}
}

func suppressesFlapping(t *testing.T, f *fixture) {
	for range 6 {
		f.expect(80*time.Second, 1, "forwarded")
	}
	f.expect(time.Second, 1, "coalesced")
	f.expect(79*time.Second, 1, "suppressed") // the post that finds six
	f.expect(0, 2, "forwarded")               // another id is not cooled
	f.expect(28*time.Minute, 1, "suppressed")
	f.expect(40*time.Second-1, 1, "suppressed")
	f.expect(1, 1, "forwarded") // a reminder, 30 min after the last forward
	f.expect(80*time.Second, 1, "suppressed")
	for range 3 {
		f.expect(45*time.Minute, 1, "forwarded") // reminders as long as it is posted
	}
	f.expect(80*time.Second, 1, "suppressed")
	f.expect(2*time.Hour-1, 1, "forwarded") // still a reminder: not silent for two hours
	f.expect(80*time.Second, 1, "suppressed")
	f.expect(2*time.Hour, 1, "forwarded") // silent for two hours: as new
	for range 5 {
		f.expect(80*time.Second, 1, "forwarded")
	}
	f.expect(80*time.Second, 1, "suppressed")
}

// Six forwards count that are each younger than the window when the post arrives.
func countsAtArrival(t *testing.T, f *fixture) {
	f.relay(relay.WithPolicy(relay.Policy{CoalesceWindow: time.Second, FlapLimit: 3, FlapWindow: 100 * time.Second}))
	f.expect(0, 1, "forwarded")
	f.expect(20*time.Second, 1, "forwarded")
	f.expect(20*time.Second, 1, "forwarded")
	f.expect(115*time.Second, 1, "forwarded") // at 155 s: all three are too old
	f.expect(15*time.Second, 1, "forwarded")  // at 170 s

	f.expect(0, 2, "forwarded")
	f.expect(10*time.Second, 2, "forwarded")
	f.expect(10*time.Second, 2, "forwarded")
	f.expect(80*time.Second, 2, "forwarded") // the first is just too old

	f.expect(0, 3, "forwarded")
	f.expect(10*time.Second, 3, "forwarded")
	f.expect(10*time.Second, 3, "forwarded")
	f.expect(80*time.Second-1, 3, "suppressed")
}

func coalescedDoNotProlong(t *testing.T, f *fixture) {
	for range 6 {
		f.expect(80*time.Second, 1, "forwarded")
	}
	f.expect(80*time.Second, 1, "suppressed")
	f.expect(30*time.Minute, 1, "forwarded") // a reminder: the two hours begin
	f.expect(74*time.Second, 1, "coalesced")
	// Two hours after the reminder it is as new, and six more are forwarded.
	f.expect(2*time.Hour-74*time.Second, 1, "forwarded")
	for range 5 {
		f.expect(80*time.Second, 1, "forwarded")
	}
	f.expect(80*time.Second, 1, "suppressed")
}

func leavesSlowRepeatsAlone(t *testing.T, f *fixture) {
	for range 50 {
		f.expect(5*time.Minute, 1, "forwarded")
	}
}

// fill posts fresh ids until one is refused, and wants so many forwarded.
func (f *fixture) fill(first, want int) (next int) {
	f.t.Helper()
	for n := 0; ; n++ {
		switch got := outcome(f.relay(), phone, first+n); got {
		case "forwarded":
			if got := outcome(f.relay(), phone, first+n); got != "coalesced" { // and costs nothing
				f.t.Errorf("repeated: %s", got)
			}
		case "429":
			if n != want {
				f.t.Errorf("%d forwarded, want %d", n, want)
			}
			return first + n + 1
		default:
			f.t.Fatalf("post %d: %s", n, got)
		}
	}
}

func limitsTheRate(t *testing.T, f *fixture) {
	next := f.fill(1000, 60)
	if got := outcome(f.relay(), phone+"ff", 1); got != "forwarded" {
		t.Errorf("another device: %s", got)
	}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{2*time.Second - 1, 0}, {1, 1}, {10 * time.Second, 5}, {time.Hour, 60}} {
		time.Sleep(step.after)
		next = f.fill(next, step.want)
	}
}

func spendsOnRefusals(t *testing.T, f *fixture) {
	f.page = func(string) error { return &relay.ForwardError{Status: http.StatusGone, Reason: "Unregistered"} }
	for n := range 60 {
		f.expect(0, n, "410 Unregistered")
	}
	for n := range 5 {
		f.expect(0, n, "429")
	}
	f.expect(2*time.Second, 0, "410 Unregistered")
	f.expect(0, 0, "429")
}

// But for the token.
func failuresLeaveNoTrace(t *testing.T, f *fixture) {
	fail := func(string) error { return errors.New("no route to the push service") }
	f.page = fail
	for range 20 {
		f.expect(time.Second, 1, "502") // not coalesced with one that failed
	}
	f.page = nil
	for range 6 {
		f.expect(80*time.Second, 1, "forwarded") // none of the twenty counts
	}
	f.expect(80*time.Second, 1, "suppressed")
	f.page = fail
	f.expect(30*time.Minute, 1, "502")
	f.page = nil
	f.expect(0, 1, "forwarded") // the reminder that failed
	f.expect(80*time.Second, 1, "suppressed")
}

// post posts in the background.
func (f *fixture) post(n int) <-chan string {
	r := f.relay()
	answered := make(chan string, 1)
	go func() { answered <- outcome(r, phone, n) }()
	return answered
}

func (f *fixture) slow(d time.Duration, end error) {
	f.page = func(string) error {
		time.Sleep(d) // in the bubble's time
		return end
	}
}

func copiesWait(t *testing.T, f *fixture) {
	f.slow(20*time.Second, nil)
	begin := time.Now()
	first := f.post(1)
	time.Sleep(time.Second)
	for _, copied := range []<-chan string{f.post(1), f.post(1)} { // one at each relay
		if got := <-copied; got != "coalesced" || time.Since(begin) < 20*time.Second {
			t.Errorf("%s after %v", got, time.Since(begin))
		}
	}
	if got := <-first; got != "forwarded" || f.handed() != 1 {
		t.Errorf("%s, %d pages", got, f.handed())
	}
	if waited := time.Since(begin); waited > 21*time.Second {
		t.Errorf("a copy waited %v for a forward of 20 s", waited)
	}
}

func copiesFail(t *testing.T, f *fixture) {
	f.slow(20*time.Second, &relay.ForwardError{Status: http.StatusGone, Reason: "Unregistered"})
	answers := []<-chan string{f.post(1)}
	time.Sleep(time.Second)
	answers = append(answers, f.post(1), f.post(1))
	for i, answer := range answers {
		if got := <-answer; got != "410 Unregistered" {
			t.Errorf("post %d: %s", i, got)
		}
	}
	if f.handed() != 1 {
		t.Errorf("%d pages", f.handed())
	}
	f.page = nil
	f.expect(0, 1, "forwarded")
}

// A forward that nobody ends holds its copies for 30 s and no longer.
func goesOnAfterDeath(t *testing.T, f *fixture) {
	dead := f.relay()
	living := f.relay()
	gone := make(chan struct{})
	t.Cleanup(func() { close(gone) })
	f.page = func(string) error {
		<-gone // for good: it does not even end with its context
		return errors.New("gone")
	}
	go outcome(dead, phone, 1)
	synctest.Wait()
	time.Sleep(time.Second)
	f.mu.Lock()
	f.page = nil
	f.mu.Unlock()
	begin := time.Now()
	if got := outcome(living, phone, 1); got != "forwarded" {
		t.Errorf("the living one: %s", got)
	}
	if waited := time.Since(begin); waited < 28*time.Second || waited > 30*time.Second {
		t.Errorf("after %v", waited)
	}
}

func windowRunsFromTheStart(t *testing.T, f *fixture) {
	f.slow(20*time.Second, nil)
	f.expect(0, 1, "forwarded")
	f.page = nil
	f.expect(55*time.Second-1, 1, "coalesced")
	f.expect(1, 1, "forwarded")
}

func quota(n int) relay.Option { return relay.WithPolicy(relay.Policy{MonthlyQuota: n}) }

func digestsPastTheQuota(t *testing.T, f *fixture) {
	f.relay(quota(2))
	f.expect(0, 1, "forwarded")
	f.expect(0, 1, "coalesced") // does not count
	f.expect(0, 2, "forwarded")
	f.expect(0, 2, "coalesced") // coalescing comes first
	f.expect(0, 3, "digested")
	f.expect(0, 3, "digested") // its repeat is not coalesced
	f.expect(time.Hour-1, 4, "digested")
	if f.digests != 1 {
		t.Errorf("%d digests within the hour", f.digests)
	}
	f.expect(1, 5, "digested")
	if f.digests != 2 || f.handed() != 2 {
		t.Errorf("%d digests and %d pages", f.digests, f.handed())
	}
	if got := outcome(f.relay(), phone+"ff", 1); got != "forwarded" {
		t.Errorf("another device: %s", got)
	}
	// A digested post spends no token: the bucket that is full after an hour lets 60 of next month's pages pass.
	for n := range 100 {
		f.expect(0, 100+n, "digested")
	}
}

func monthsBeginAtMidnight(t *testing.T, f *fixture) {
	f.relay(quota(1))
	february := time.Date(2000, time.February, 1, 0, 0, 0, 0, time.UTC) // the bubble begins in January
	time.Sleep(time.Until(february) - time.Hour)
	f.expect(0, 1, "forwarded")
	f.expect(time.Hour-1, 2, "digested") // the last nanosecond of January
	f.expect(1, 3, "forwarded")
	f.expect(0, 4, "digested") // a new month's first digest, though the last was sent a nanosecond ago
	if f.digests != 2 {
		t.Errorf("%d digests", f.digests)
	}
	// Through a leap year's February, and into another year.
	for _, month := range []time.Time{
		time.Date(2000, time.March, 1, 0, 0, 0, 0, time.UTC), time.Date(2001, time.January, 1, 0, 0, 0, 0, time.UTC),
	} {
		time.Sleep(time.Until(month) - 1)
		if month.Month() == time.March { // until then the quota of February is used up
			f.expect(0, 5, "digested")
		}
		f.expect(time.Until(month), 6, "forwarded")
		f.expect(0, 7, "digested")
	}
}

func refusedDoNotCount(t *testing.T, f *fixture) {
	f.relay(quota(1))
	f.page = func(string) error { return errors.New("refused") }
	for n := range 5 {
		f.expect(0, n, "502")
	}
	f.page = nil
	f.expect(0, 10, "forwarded")
	f.expect(0, 11, "digested")
	// One that is refused in the next month takes nothing off that month's count.
	february := time.Date(2000, time.February, 1, 0, 0, 0, 0, time.UTC)
	march := february.AddDate(0, 1, 0)
	time.Sleep(time.Until(march) - time.Second)
	f.slow(10*time.Second, errors.New("refused late"))
	late := f.post(20)
	time.Sleep(2 * time.Second)
	f.mu.Lock()
	f.page = nil
	f.mu.Unlock()
	f.expect(0, 21, "forwarded")
	if got := <-late; got != "502" {
		t.Errorf("the late one: %s", got)
	}
	f.expect(0, 22, "digested")
}

// An empty bucket is 429 even past the quota.
func quotaComesAfterTheRate(t *testing.T, f *fixture) {
	f.relay(relay.WithPolicy(relay.Policy{MonthlyQuota: 1, Burst: 1}))
	f.expect(0, 1, "forwarded")
	f.expect(0, 2, "429")
	f.expect(2*time.Second-1, 2, "429")
	f.expect(1, 2, "digested")
	f.expect(0, 3, "digested") // and spends no token
}

func digestsThatFail(t *testing.T, f *fixture) {
	f.relay(quota(1))
	f.expect(0, 1, "forwarded")
	f.digest = func() error { return errors.New("no route") }
	f.expect(0, 2, "digested")
	f.expect(0, 3, "digested")
	if f.digests != 1 {
		t.Errorf("%d digests: the one that failed uses up the hour", f.digests)
	}
	f.digest = func() error { return &relay.ForwardError{Status: http.StatusGone, Reason: "Unregistered"} }
	f.expect(time.Hour, 4, "410 Unregistered")
	f.expect(0, 5, "digested")
}

// The push service is handed one page, whatever the order in which a hundred nodes report it to two relays.
func manyNodesAtOnce(t *testing.T, f *fixture) {
	f.slow(time.Second, nil)
	var answers []<-chan string
	for range 100 {
		answers = append(answers, f.post(1))
	}
	outcomes := map[string]int{}
	for _, answer := range answers {
		outcomes[<-answer]++
	}
	if outcomes["forwarded"] != 1 || outcomes["coalesced"] != 99 || f.handed() != 1 {
		t.Errorf("%v, %d pages", outcomes, f.handed())
	}
}

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
