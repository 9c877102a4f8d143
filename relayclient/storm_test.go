package relayclient_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// guarded is a notifier with a storm guard, its relay and its phones.
type guarded struct {
	*relayclient.Notifier
	client *relayclient.Client
	relay  *relaytest.Relay
	phones []*relaytest.Phone
	log    *logbook
}

// newGuarded is for a bubble.
func newGuarded(t *testing.T, phones, burst int) *guarded {
	t.Helper()
	relay := relaytest.NewRelay(relaytest.InMemory())
	t.Cleanup(relay.Close)
	client, log := newClient(t, relay)
	registry := registryFile(t, "", pairing.WithLogger(log.logger()))
	g := &guarded{client: client, relay: relay, log: log, phones: pairPhones(t, registry, phones)}
	var err error
	if g.Notifier, err = relayclient.NewNotifier(client, registry, "node-a", relayclient.WithStormGuard(burst)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close(context.Background()) })
	return g
}

// fail reports the n-th failure of a job.
func (g *guarded) fail(t *testing.T, job string, n int) error {
	t.Helper()
	alert := payload.NewFailure("", job)
	alert.RunID = fmt.Sprint(job, "-", n)
	alert.FailReason = fmt.Sprint("exit code ", n)
	alert.LogTail = []string{fmt.Sprint("gave up on ", n)}
	outcomes, err := g.Notify(t.Context(), alert)
	if (err != nil) != (outcomes == nil) {
		t.Errorf("outcomes %v beside %v", outcomes, err)
	}
	return err
}

// received returns what the n-th phone shows, summaries apart.
func (g *guarded) received(t *testing.T, n int) (alerts, summaries []payload.Alert) {
	t.Helper()
	shown, err := g.phones[n].Received(g.relay)
	if err != nil {
		t.Fatal(err)
	}
	for _, notification := range shown {
		if notification.Alert.Name == "alerts held back" {
			summaries = append(summaries, notification.Alert)
			continue
		}
		alerts = append(alerts, notification.Alert)
	}
	return alerts, summaries
}

// 200 jobs fail within a second, and then the quorum is lost: that arrives, at the relay's real policy, and the phone has
// one summary that counts the rest.
func TestAStormLeavesRoomForTheQuorumLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 2, 30)
		held := 0
		for i := range 200 {
			switch err := g.fail(t, fmt.Sprint("job", i%20), i); err {
			case nil:
			case relayclient.ErrHeldBack:
				held++
			default:
				t.Fatal(err)
			}
			time.Sleep(5 * time.Millisecond)
		}
		loss := payload.NewEvent("", "node-a", payload.EventQuorumLoss)
		loss.Subject = "2 of 5 nodes"
		outcomes, err := g.Notify(t.Context(), loss)
		if err != nil || len(outcomes) != 2 || outcomes[0].Relay != relayclient.Forwarded || outcomes[1].Relay != relayclient.Forwarded {
			t.Fatalf("the quorum loss: %v, %v", outcomes, err)
		}
		time.Sleep(time.Hour)
		for phone := range g.phones {
			alerts, summaries := g.received(t, phone)
			if len(alerts)+held != 201 || len(alerts) != 31 || alerts[30].Event != payload.EventQuorumLoss {
				t.Errorf("%d alerts arrived, %d were held back", len(alerts), held)
			}
			if len(summaries) != 1 {
				t.Fatalf("%d summaries", len(summaries))
			}
			summary := summaries[0]
			if summary.Kind != payload.KindFailure || summary.RunID == "" || summary.Host != "node-a" ||
				!strings.HasPrefix(summary.FailReason, "170 alerts held back since 00:00:00 UTC: 9 × job10, 9 × job11, ") ||
				!strings.HasSuffix(summary.FailReason, ", 116 under other names") {
				t.Errorf("the summary says %q", summary.FailReason)
			}
			if tail := strings.Join(summary.LogTail, "\n"); tail != "gave up on 199\nnewest: failure of job19 on node-a: exit code 199" {
				t.Errorf("its tail is %q", tail)
			}
		}
		for _, line := range g.log.lines() {
			if strings.Contains(line, "status=429") {
				t.Errorf("the relay refused one: %s", line)
			}
		}
	})
}

// Whoever does not ask for a guard has none.
func TestWithoutAGuardNothingIsHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewRelay(relaytest.InMemory())
		defer relay.Close()
		notifier, _, phones, _ := newNotifier(t, relay, 1)
		for i := range 70 {
			if _, err := notifier.Notify(t.Context(), payload.NewFailure("", fmt.Sprint("job", i))); err != nil {
				t.Fatal(err)
			}
		}
		if received, err := phones[0].Received(relay); err != nil || len(received) != 60 {
			t.Errorf("%d alerts arrived, %v", len(received), err)
		}
		if err := notifier.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := notifier.Notify(t.Context(), failure()); !errors.Is(err, relayclient.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	})
}

// A rate that the relay can keep up with for ever holds nothing back.
func TestASteadyRateIsNoStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 1, 5)
		for i := range 300 {
			if err := g.fail(t, "job", i); err != nil {
				t.Fatalf("alert %d: %v", i, err)
			}
			time.Sleep(2 * time.Second)
		}
	})
}

// While a storm lasts, the phone gets summaries alone, and each alert is in one of them. Once it is over, alerts are
// posted as before.
func TestALongStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 1, 10)
		const rate, minutes = 5, 5 // a second
		posted := 0
		for i := range rate * 60 * minutes {
			if g.fail(t, "job", i) == nil {
				posted++
			}
			time.Sleep(time.Second / rate)
		}
		time.Sleep(time.Minute)
		if err := g.fail(t, "job", -1); err != nil {
			t.Errorf("after the storm: %v", err)
		}
		alerts, summaries := g.received(t, 0)
		counted := 0
		for _, summary := range summaries {
			var n int
			if _, err := fmt.Sscanf(summary.FailReason, "%d alert", &n); err != nil {
				t.Fatal(err)
			}
			counted += n
		}
		if len(alerts) != posted+1 || posted+counted != rate*60*minutes {
			t.Errorf("%d alerts arrived of %d posted, %d are in summaries, of %d", len(alerts), posted+1, counted, rate*60*minutes)
		}
		if len(summaries) < 14 || len(summaries) > 17 || posted > 10+2*len(summaries) {
			t.Errorf("%d summaries, and %d alerts beside them", len(summaries), posted)
		}
	})
}

// What the relay refuses for its rate, because others emptied the bucket, is in a summary, which waits as long as the
// relay asks for.
func TestARefusalStartsToHoldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 1, 10)
		g.relay.Script(1, relaytest.Answer{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"45"}}})
		if err := g.fail(t, "job", 1); err != nil { // it was posted
			t.Fatal(err)
		}
		if err := g.fail(t, "job", 2); err != relayclient.ErrHeldBack {
			t.Errorf("after a 429: %v", err)
		}
		critical := payload.NewFailure("", "backup of the keys")
		if outcomes, err := g.Notify(t.Context(), critical, relayclient.WithCritical()); err != nil || outcomes[0].Err != nil {
			t.Errorf("a critical one: %v, %v", outcomes, err)
		}
		if outcomes, err := g.Notify(t.Context(), payload.NewTest("node-a")); err != nil || outcomes[0].Err != nil {
			t.Errorf("a test alert: %v, %v", outcomes, err)
		}
		time.Sleep(45*time.Second - 1)
		synctest.Wait()
		if _, summaries := g.received(t, 0); len(summaries) != 0 {
			t.Errorf("a summary before its time: %+v", summaries)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if _, summaries := g.received(t, 0); len(summaries) != 1 || !strings.HasPrefix(summaries[0].FailReason, "2 alerts held back since ") {
			t.Errorf("summaries %+v", summaries)
		}
		if err := g.fail(t, "job", 3); err != nil {
			t.Errorf("after the summary: %v", err)
		}
	})
}

// A relay that asks for a day is asked again after ten minutes.
func TestARelayCannotSilenceForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 1, 10)
		g.relay.Script(1, relaytest.Answer{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"86400"}}})
		g.fail(t, "job", 1)
		time.Sleep(10*time.Minute + time.Second)
		if _, summaries := g.received(t, 0); len(summaries) != 1 {
			t.Errorf("%d summaries", len(summaries))
		}
	})
}

// A phone whose relay refuses the summary gets another later, and the other phone gets one all the same.
func TestARefusedSummaryComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 2, 5)
		for i := range 8 {
			g.fail(t, "job", i)
		}
		g.relay.ScriptDevice(g.phones[0].PushToken(), 2, relaytest.Answer{Status: http.StatusTooManyRequests})
		time.Sleep(11 * time.Second)
		_, first := g.received(t, 0)
		_, second := g.received(t, 1)
		if len(first) != 0 || len(second) != 1 {
			t.Fatalf("%d and %d summaries", len(first), len(second))
		}
		g.fail(t, "other", 1) // which is in the next
		time.Sleep(2 * time.Minute)
		_, first = g.received(t, 0)
		_, second = g.received(t, 1)
		if len(first) != 2 || len(second) != 2 {
			t.Fatalf("%d and %d summaries", len(first), len(second))
		}
		for i, want := range []string{"3 alerts held back since 00:00:00 UTC: 3 × job", "1 alert held back since 00:00:11 UTC: 1 × other"} {
			if first[i].FailReason != want || second[i].FailReason != want {
				t.Errorf("%q and %q, want %q", first[i].FailReason, second[i].FailReason, want)
			}
		}
		if first[0].RunID == second[0].RunID {
			t.Error("one run id for what was posted twice")
		}
	})
}

// A relay that fails on the summary may have taken it: no second one is posted.
func TestAFailedSummaryIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 1, 5)
		for i := range 8 {
			g.fail(t, "job", i)
		}
		g.relay.Script(1, relaytest.Answer{Status: http.StatusBadGateway})
		time.Sleep(time.Hour)
		if n := g.relay.Stats().Requests; n != 6 {
			t.Errorf("%d requests", n)
		}
		if err := g.fail(t, "job", 9); err != nil {
			t.Error(err)
		}
	})
}

// What is owed goes out at Close, at once, and also when the relay's bucket is empty.
func TestCloseSendsWhatIsOwed(t *testing.T) {
	for _, refusals := range []int{0, 1, 2} {
		synctest.Test(t, func(t *testing.T) {
			g := newGuarded(t, 1, 5)
			for i := range 8 {
				g.fail(t, "job", i)
			}
			g.relay.Script(refusals, relaytest.Answer{Status: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"3"}}})
			start := time.Now()
			var background context.Context
			if err := g.Close(background); err != nil {
				t.Error(err)
			}
			if took := time.Since(start); took != time.Duration(refusals)*3*time.Second {
				t.Errorf("Close took %v", took)
			}
			if _, summaries := g.received(t, 0); len(summaries) != 1 || !strings.HasPrefix(summaries[0].FailReason, "3 alerts") {
				t.Errorf("summaries %v", summaries)
			}
			if err := g.fail(t, "job", 9); !errors.Is(err, relayclient.ErrClosed) {
				t.Errorf("after Close: %v", err)
			}
			if err := g.Close(t.Context()); err != nil {
				t.Errorf("again: %v", err)
			}
		})
	}
}

func TestCloseGivesUpInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 1, 5)
		for i := range 8 {
			g.fail(t, "job", i)
		}
		g.relay.Script(relaytest.Always, relaytest.Answer{Status: http.StatusTooManyRequests})
		why := errors.New("the daemon is stopping")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Second, why)
		defer cancel()
		start := time.Now()
		err := g.Close(ctx)
		if !errors.Is(err, why) || !strings.Contains(err.Error(), "3 alerts") {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// Alerts, refusals and Close at the same time: each alert is posted, in a summary, or refused as closed. Run it with -race.
func TestCloseDuringAStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 1, 20)
		var mu sync.Mutex
		counts := map[error]int{}
		var storm sync.WaitGroup
		for i := range 200 {
			storm.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				err := g.fail(t, "job", i)
				mu.Lock()
				defer mu.Unlock()
				counts[err]++
			})
		}
		time.Sleep(100 * time.Millisecond)
		for range 3 {
			storm.Go(func() {
				if err := g.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		storm.Wait()
		alerts, summaries := g.received(t, 0)
		counted := 0
		for _, summary := range summaries {
			var n int
			fmt.Sscanf(summary.FailReason, "%d", &n)
			counted += n
		}
		if len(alerts) != counts[nil] || counted != counts[relayclient.ErrHeldBack] || counts[relayclient.ErrClosed] < 50 ||
			counts[nil]+counts[relayclient.ErrHeldBack]+counts[relayclient.ErrClosed] != 200 {
			t.Errorf("%d arrived and %d are summed up, of %v", len(alerts), counted, counts)
		}
	})
}

// What is kept is bounded, whatever is held back.
func TestAStormTakesLittleMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 1, 5)
		alert := payload.NewFailure("", "x")
		alert.FailReason = strings.Repeat("because ", 1<<10)
		before := heap()
		for i := range 2000 {
			alert.Name = fmt.Sprint("job ", i, strings.Repeat("日", 1<<10))
			alert.LogTail = []string{strings.Repeat("x", 1<<20), fmt.Sprint(strings.Repeat("y", 1<<10), i)}
			if _, err := g.Notify(t.Context(), alert); i < 5 && err == relayclient.ErrHeldBack || i >= 5 && err != relayclient.ErrHeldBack {
				t.Fatal(err)
			}
			g.log.reset()
		}
		alert = payload.Alert{}
		if grown := heap() - before; grown > 512<<10 {
			t.Errorf("%d kB are kept", grown>>10)
		}
		if err := g.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, summaries := g.received(t, 0)
		if len(summaries) != 1 || !strings.HasPrefix(summaries[0].FailReason, "1995 alerts") || !strings.HasSuffix(summaries[0].FailReason, "under other names") ||
			len(summaries[0].LogTail) != 2 || !strings.HasSuffix(summaries[0].LogTail[0], "y1999") {
			t.Errorf("the phone reads %+v", summaries)
		}
	})
}

func heap() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// Names of several lines make a summary of one.
func TestASummaryIsOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 1, 5)
		for i := range 7 {
			g.fail(t, "job\r\nof the\tnight", i)
		}
		if err := g.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, summaries := g.received(t, 0)
		if reason := summaries[0].FailReason; !strings.HasSuffix(reason, ": 2 × job of the night") {
			t.Errorf("the summary says %q", reason)
		}
		if tail := summaries[0].LogTail; tail[len(tail)-1] != "newest: failure of job of the night on node-a: exit code 6" {
			t.Errorf("its tail is %q", tail)
		}
	})
}

// Passive alerts are summed up quietly, and an alert that nobody could be sent is refused, not counted.
func TestHeldAlertsKeepTheirPriority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 1, 5)
		quietly := func(kind payload.Kind) error {
			alert := payload.NewFailure("", "job")
			alert.Kind = kind
			alert.RunID = randomID()
			_, err := g.Notify(t.Context(), alert, relayclient.WithPriority(relayclient.Passive))
			return err
		}
		for range 7 {
			quietly(payload.KindFailure)
		}
		if err := quietly("party"); !errors.Is(err, relayclient.ErrInvalidAlert) {
			t.Errorf("an invalid alert: %v", err)
		}
		if err := g.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		requests := g.relay.Requests()
		envelope, err := requests[len(requests)-1].Envelope()
		if err != nil || len(requests) != 6 || envelope.Priority != "passive" {
			t.Errorf("%d requests, the last %v, %v", len(requests), envelope, err)
		}
	})
}

func TestStormGuardBounds(t *testing.T) {
	client, _ := newClientAt(t, "https://relay.example")
	for _, burst := range []int{-1, 0, 4, 51} {
		if _, err := relayclient.NewNotifier(client, registryFile(t, ""), "node-a", relayclient.WithStormGuard(burst)); err == nil {
			t.Errorf("a burst of %d was accepted", burst)
		}
	}
	for _, refill := range []time.Duration{-1, 0, time.Hour} {
		if _, err := relayclient.NewNotifier(client, registryFile(t, ""), "node-a", relayclient.WithStormGuard(5), relayclient.WithRefillInterval(refill)); err == nil {
			t.Errorf("a refill interval of %v was accepted", refill)
		}
	}
	if _, err := relayclient.NewNotifier(client, registryFile(t, ""), "node-a", nil); err == nil {
		t.Error("a nil option was accepted")
	}
}

// Three nodes share the phones and their buckets. With a part each, none empties them, and the quorum loss arrives once.
func TestAStormOnThreeNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewRelay(relaytest.InMemory())
		defer relay.Close()
		registry := registryFile(t, "")
		phone := pairPhones(t, registry, 1)[0]
		var nodes sync.WaitGroup
		for node := range 3 {
			client, log := newClient(t, relay)
			notifier, err := relayclient.NewNotifier(client, registry, fmt.Sprint("node-", node), relayclient.WithStormGuard(15))
			if err != nil {
				t.Fatal(err)
			}
			nodes.Go(func() {
				for i := range 200 {
					notifier.Notify(t.Context(), payload.NewFailure("", fmt.Sprint("job ", node, " ", i)))
					time.Sleep(5 * time.Millisecond)
				}
				if _, err := notifier.Notify(t.Context(), payload.NewEvent("", "cluster", payload.EventQuorumLoss)); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute)
				if text := strings.Join(log.lines(), "\n"); strings.Contains(text, "status=429") {
					t.Errorf("the relay refused one: %s", text)
				}
			})
		}
		nodes.Wait()
		received, err := phone.Received(relay)
		if err != nil {
			t.Fatal(err)
		}
		losses, summaries := 0, 0
		for _, n := range received {
			switch {
			case n.Alert.Event == payload.EventQuorumLoss:
				losses++
			case strings.HasPrefix(n.Alert.FailReason, "185 alerts held back"):
				summaries++
			}
		}
		if losses != 1 || summaries != 3 || len(received) != 3*15+4 {
			t.Errorf("%d quorum losses and %d summaries in %d alerts", losses, summaries, len(received))
		}
	})
}

// A summary for which there was no connection comes when there is one.
func TestASummaryOutlivesAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewRelay(relaytest.InMemory())
		defer relay.Close()
		client, _ := newClientAt(t, relay.URL, relayclient.WithPatience(time.Second))
		var down atomic.Bool
		dial := relay.Client().Transport.(*http.Transport).DialContext
		relayclient.SetDial(client, func(ctx context.Context, network, address string) (net.Conn, error) {
			if down.Load() {
				return nil, errors.New("network is unreachable")
			}
			return dial(ctx, network, address)
		}, nil)
		registry := registryFile(t, "")
		g := &guarded{client: client, relay: relay, phones: pairPhones(t, registry, 1)}
		var err error
		if g.Notifier, err = relayclient.NewNotifier(client, registry, "node-a", relayclient.WithStormGuard(5)); err != nil {
			t.Fatal(err)
		}
		for i := range 8 {
			g.fail(t, "job", i)
		}
		down.Store(true)
		time.Sleep(25 * time.Second)
		if _, summaries := g.received(t, 0); len(summaries) != 0 {
			t.Errorf("summaries %v through no connection", summaries)
		}
		down.Store(false)
		time.Sleep(15 * time.Second)
		if _, summaries := g.received(t, 0); len(summaries) != 1 || !strings.HasPrefix(summaries[0].FailReason, "3 alerts") {
			t.Errorf("summaries %v", summaries)
		}
		client.Close()
	})
}

// A caller that repeats what is held back, as Alertmanager does, is counted once, and is told what became of the summary.
func TestARepeatedAlertIsCountedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 2, 5)
		for i := range 5 {
			g.fail(t, "job", i)
		}
		for range 50 {
			if err := g.fail(t, "again", 1); err != relayclient.ErrHeldBack {
				t.Fatal(err)
			}
		}
		for range 3 { // without a run id nobody knows
			g.Notify(t.Context(), payload.NewFailure("", "other"))
		}
		g.relay.ScriptDevice(g.phones[1].PushToken(), relaytest.Always, relaytest.Answer{Status: http.StatusGone})
		time.Sleep(9 * time.Second)
		g.fail(t, "again", 1)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		_, summaries := g.received(t, 0)
		if len(summaries) != 1 || summaries[0].FailReason != "4 alerts held back since 00:00:00 UTC: 3 × other, 1 × again" {
			t.Fatalf("summaries %+v", summaries)
		}
		for i := 10; g.fail(t, "job", i) == nil; i++ {
		}
		again := payload.NewFailure("", "again")
		again.RunID = "again-1"
		outcomes, err := g.Notify(t.Context(), again)
		if err != nil || len(outcomes) != 2 || (outcomes[0].Err == nil) == (outcomes[1].Err == nil) ||
			!errors.Is(errors.Join(outcomes[0].Err, outcomes[1].Err), relayclient.ErrDeviceGone) {
			t.Errorf("after the summary: %v, %v", outcomes, err)
		}
		again.Kind, again.Success = payload.KindSuccess, true
		if _, err := g.Notify(t.Context(), again); err != relayclient.ErrHeldBack {
			t.Errorf("another alert of the run: %v", err)
		}
	})
}

// Callers that repeat until they have been heard do not keep a storm alive.
func TestAStormOfRepetitionsEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 1, 10)
		start := time.Now()
		var callers sync.WaitGroup
		for i := range 500 {
			callers.Go(func() {
				for g.fail(t, fmt.Sprint("job", i), i) != nil {
					if time.Since(start) > time.Hour {
						t.Errorf("nobody was told of %d", i)
						return
					}
					time.Sleep(time.Second)
				}
			})
		}
		callers.Wait()
		if took := time.Since(start); took > time.Minute {
			t.Errorf("it took %v", took)
		}
		if _, summaries := g.received(t, 0); len(summaries) != 1 || !strings.HasPrefix(summaries[0].FailReason, "490 alerts") {
			t.Errorf("summaries %+v", summaries)
		}
	})
}

// A summary that no phone was told of is no success of Close.
func TestCloseSaysThatNobodyWasTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuarded(t, 2, 5)
		for i := range 8 {
			g.fail(t, "job", i)
		}
		g.relay.Script(2, relaytest.Answer{Status: http.StatusBadGateway})
		for range 2 {
			var refused *relayclient.StatusError
			if err := g.Close(t.Context()); !errors.As(err, &refused) || refused.StatusCode != http.StatusBadGateway || !strings.Contains(err.Error(), " 3 alerts ") {
				t.Errorf("error %v", err)
			}
		}
	})
}

// A relay may give back less often. The guard then reckons with that, and the relay refuses nothing.
func TestAStormAtARelayThatRefillsSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const refill = 15 * time.Second
		server := relaytest.NewRelay(relaytest.InMemory(), relaytest.WithRelay(relay.WithPolicy(relay.Policy{RefillInterval: refill})))
		defer server.Close()
		client, log := newClient(t, server)
		registry := registryFile(t, "")
		g := &guarded{client: client, relay: server, phones: pairPhones(t, registry, 1)}
		var err error
		if g.Notifier, err = relayclient.NewNotifier(client, registry, "node-a", relayclient.WithStormGuard(30), relayclient.WithRefillInterval(refill)); err != nil {
			t.Fatal(err)
		}
		for i := range 3600 {
			g.fail(t, "job", i)
			time.Sleep(time.Second)
		}
		if err := g.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if text := strings.Join(log.lines(), "\n"); strings.Contains(text, "status=429") {
			t.Errorf("the relay refused one: %s", text)
		}
	})
}

// A brokenStore cannot be read as long as it is broken.
type brokenStore struct {
	pairing.Store
	broken atomic.Bool
}

func (s *brokenStore) Load(ctx context.Context) (pairing.Snapshot, error) {
	if s.broken.Load() {
		return pairing.Snapshot{}, errors.New("the database is starting up")
	}
	return s.Store.Load(ctx)
}

// When no phone is known yet because the registry cannot be read, the summary comes once it can.
func TestASummaryOutlivesAnUnreadableRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewRelay(relaytest.InMemory())
		defer relay.Close()
		client, _ := newClient(t, relay)
		file, err := pairing.OpenFile(t.TempDir() + "/devices.json")
		if err != nil {
			t.Fatal(err)
		}
		paired, err := pairing.NewRegistry(file)
		if err != nil {
			t.Fatal(err)
		}
		store := &brokenStore{Store: file}
		store.broken.Store(true)
		registry, err := pairing.NewRegistry(store)
		if err != nil {
			t.Fatal(err)
		}
		g := &guarded{client: client, relay: relay, phones: pairPhones(t, paired, 1)}
		if g.Notifier, err = relayclient.NewNotifier(client, registry, "node-a", relayclient.WithStormGuard(5)); err != nil {
			t.Fatal(err)
		}
		for i := range 8 {
			if err := g.fail(t, "job", i); err == nil {
				t.Errorf("alert %d was posted", i)
			}
		}
		time.Sleep(25 * time.Second)
		store.broken.Store(false)
		time.Sleep(15 * time.Second)
		if _, summaries := g.received(t, 0); len(summaries) != 1 || !strings.HasPrefix(summaries[0].FailReason, "3 alerts") {
			t.Errorf("summaries %v", summaries)
		}
	})
}
