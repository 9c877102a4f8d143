package relay_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

func TestPolicyCoalesces(t *testing.T) {
	inBubble(t, func(t *testing.T, relay *relaytest.Relay) {
		other := device + "ff"
		steps := []struct {
			after time.Duration
			token string
			id    int
			want  string
		}{
			{0, device, 1, "forwarded"},
			{0, device, 1, "coalesced"},
			{0, strings.ToUpper(device), 1, "coalesced"},
			{0, device, 2, "forwarded"},
			{0, other, 1, "forwarded"},
			{40 * time.Second, device, 1, "coalesced"},
			{35*time.Second - 1, device, 1, "coalesced"},
			{1, device, 1, "forwarded"}, // 75 s after the last forward, not the last post
			{0, other, 1, "forwarded"},
			{75*time.Second - 1, device, 1, "coalesced"},
		}
		for i, step := range steps {
			advance(step.after) // in the bubble's time
			if got := outcomeOf(t, relay, "device", step.token, "collapseId", id(step.id)); got != step.want {
				t.Errorf("step %d: %s, want %s", i+1, got, step.want)
			}
		}
		if got := len(relay.Inbox(device)); got != 3 {
			t.Errorf("%d messages, want 3", got)
		}
	})
}

func TestPolicySuppressesFlapping(t *testing.T) {
	inBubble(t, func(t *testing.T, relay *relaytest.Relay) {
		expect := func(after time.Duration, id int, want string) {
			t.Helper()
			advance(after) // in the bubble's time
			if got := outcomeOf(t, relay, "collapseId", fmt.Sprintf("%032x", id)); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		for range 7 { // more than six
			expect(80*time.Second, 1, "forwarded")
		}
		expect(time.Second, 1, "coalesced")
		expect(79*time.Second, 1, "suppressed")
		expect(0, 2, "forwarded") // another id is not cooled
		expect(28*time.Minute, 1, "suppressed")
		expect(40*time.Second-1, 1, "suppressed")
		expect(1, 1, "forwarded") // a reminder, 30 min after the last forward
		expect(80*time.Second, 1, "suppressed")
		for range 3 {
			expect(45*time.Minute, 1, "forwarded") // reminders as long as it is posted
		}
		expect(80*time.Second, 1, "suppressed")
		expect(2*time.Hour-1, 1, "forwarded") // still a reminder: not silent for two hours
		expect(80*time.Second, 1, "suppressed")
		expect(2*time.Hour, 1, "forwarded") // silent for two hours: as new
		for range 6 {
			expect(80*time.Second, 1, "forwarded")
		}
		expect(80*time.Second, 1, "suppressed")
	})
}

func TestPolicyLeavesSlowRepeatsAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, relay *relaytest.Relay) {
		for i := range 50 {
			if got := outcomeOf(t, relay); got != "forwarded" {
				t.Fatalf("post %d, five minutes after the one before: %s", i, got)
			}
			advance(5 * time.Minute) // in the bubble's time
		}
	})
}

func TestPolicyLimitsTheRate(t *testing.T) {
	inBubble(t, func(t *testing.T, relay *relaytest.Relay) {
		next := 0
		fill := func(want int) {
			t.Helper()
			for got := 0; ; got++ {
				next++
				if o := outcomeOf(t, relay, "collapseId", id(next)); o != "forwarded" {
					if o != "429" || got != want {
						t.Errorf("%d forwarded, then %s; want %d, then 429", got, o, want)
					}
					return
				}
				if o := outcomeOf(t, relay, "collapseId", id(next)); o != "coalesced" {
					t.Errorf("repeated: %s", o) // and costs nothing
				}
			}
		}
		fill(60)
		limited := post(t, relay, envelope(t, "collapseId", id(0)))
		if limited.status != 429 || limited.header.Get("Retry-After") != "2" || limited.body["error"] == nil {
			t.Errorf("answered %+v", limited)
		}
		if got := outcomeOf(t, relay, "device", device+"ff"); got != "forwarded" {
			t.Errorf("another device: %s", got)
		}
		advance(2*time.Second - 1) // in the bubble's time
		fill(0)
		advance(time.Nanosecond)
		fill(1)
		advance(10 * time.Second)
		fill(5)
		advance(time.Hour)
		fill(60)
	})
}

func TestPolicyNumbers(t *testing.T) {
	policy := relay.Policy{
		CoalesceWindow: time.Second, FlapLimit: 1, FlapWindow: 10 * time.Second,
		ReminderInterval: 20 * time.Second, QuietPeriod: 30 * time.Second,
		Burst: 5, RefillInterval: time.Minute,
	}
	inBubble(t, func(t *testing.T, relay *relaytest.Relay) {
		steps := []struct {
			after time.Duration
			want  string
		}{
			{0, "forwarded"}, {time.Second - 1, "coalesced"}, {1, "forwarded"},
			{time.Second, "suppressed"}, {19 * time.Second, "forwarded"}, {30 * time.Second, "forwarded"},
			{time.Second, "forwarded"}, {2 * time.Second, "suppressed"},
		}
		for i, step := range steps {
			advance(step.after) // in the bubble's time
			if got := outcomeOf(t, relay); got != step.want {
				t.Errorf("step %d: %s, want %s", i+1, got, step.want)
			}
		}
		if got := outcomeOf(t, relay, "collapseId", id(1)); got != "429" {
			t.Errorf("past the burst: %s", got)
		}
	}, relaytest.WithRelay(relay.WithPolicy(policy)))
}

func TestPolicyRefusesMoreDevicesThanItCanCount(t *testing.T) {
	inBubble(t, func(t *testing.T, relay *relaytest.Relay) {
		token := func(n int) string { return fmt.Sprintf("%016x", n) }
		for i, want := range []string{"forwarded", "forwarded", "503", "503"} {
			if got := outcomeOf(t, relay, "device", token(i)); got != want {
				t.Errorf("device %d: %s, want %s", i, got, want)
			}
		}
		if got := outcomeOf(t, relay, "device", token(0), "collapseId", id(1)); got != "forwarded" {
			t.Errorf("a device known before: %s", got)
		}
		advance(30 * time.Minute) // in the bubble's time: until nothing about them matters
		for i, want := range []string{"forwarded", "forwarded", "503"} {
			if got := outcomeOf(t, relay, "device", token(10+i)); got != want {
				t.Errorf("later, device %d: %s, want %s", i, got, want)
			}
		}
	}, relaytest.WithRelay(relay.WithPolicy(relay.Policy{MaxDevices: 2})))
}

func TestPolicyOfManyNodesAtOnce(t *testing.T) {
	relay := start(t)
	all := make(chan struct{})
	relay.Script(100, relaytest.Answer{Hold: all})
	var mu sync.Mutex
	outcomes := map[string]int{}
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			got := outcomeOf(t, relay)
			mu.Lock()
			defer mu.Unlock()
			outcomes[got]++
		})
	}
	if err := relay.WaitInFlight(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	close(all)
	group.Wait()
	if outcomes["forwarded"] != 1 || outcomes["coalesced"] != 99 {
		t.Errorf("100 nodes with one alert: %v", outcomes)
	}
}

func TestWithoutPolicy(t *testing.T) {
	relay := start(t, relaytest.WithoutPolicy())
	for range 100 {
		if got := outcomeOf(t, relay); got != "forwarded" {
			t.Fatal(got)
		}
	}
	if got := len(relay.Inbox(device)); got != 100 {
		t.Errorf("%d messages", got)
	}
}

func TestPolicyRefusesNegativeNumbers(t *testing.T) {
	for _, p := range []relay.Policy{{CoalesceWindow: -1}, {FlapLimit: -1}, {MaxDevices: -1}} {
		if _, err := relay.New(relay.WithForwarder(forwarderFunc(nil)), relay.WithPolicy(p)); err == nil {
			t.Errorf("%+v was taken", p)
		}
	}
}
