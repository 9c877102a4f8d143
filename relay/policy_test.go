package relay_test

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

func TestPolicyNumbers(t *testing.T) {
	policy := relay.Policy{
		CoalesceWindow: time.Second, FlapLimit: 1, FlapWindow: 10 * time.Second,
		ReminderInterval: 20 * time.Second, QuietPeriod: 30 * time.Second,
		Burst: 4, RefillInterval: time.Minute,
	}
	inBubble(t, func(t *testing.T, relay *relaytest.Relay) {
		steps := []struct {
			after time.Duration
			want  string
		}{
			{0, "forwarded"}, {time.Second - 1, "coalesced"}, {1, "suppressed"},
			{19 * time.Second, "forwarded"}, {30 * time.Second, "forwarded"},
			{10 * time.Second, "forwarded"}, {2 * time.Second, "suppressed"}, {2 * time.Second, "suppressed"},
			{16 * time.Second, "forwarded"},
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
	state, err := relay.NewMemoryState(2)
	if err != nil {
		t.Fatal(err)
	}
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
	}, relaytest.WithRelay(relay.WithState(state)))
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
	for _, p := range []relay.Policy{{CoalesceWindow: -1}, {FlapLimit: -1}, {MonthlyQuota: -1}} {
		if _, err := relay.New(relay.WithForwarder(forwarderFunc(nil)), relay.WithPolicy(p)); err == nil {
			t.Errorf("%+v was taken", p)
		}
	}
}

// What is meant as "no limit" would overflow and become the strictest one.
func TestPolicyRefusesWhatCannotBeCounted(t *testing.T) {
	for _, p := range []relay.Policy{
		{Burst: math.MaxInt}, {Burst: 1000, RefillInterval: 365 * 24 * time.Hour},
		{CoalesceWindow: math.MaxInt64}, {FlapWindow: math.MaxInt64}, {QuietPeriod: math.MaxInt64},
		{ReminderInterval: math.MaxInt64}, {RefillInterval: math.MaxInt64}, {DigestInterval: math.MaxInt64},
	} {
		if _, err := relay.New(relay.WithForwarder(forwarderFunc(nil)), relay.WithPolicy(p)); err == nil {
			t.Errorf("%+v was taken", p)
		}
	}
	most := relay.Policy{CoalesceWindow: 1, Burst: math.MaxInt32, QuietPeriod: 100 * 365 * 24 * time.Hour, RefillInterval: time.Second}
	inBubble(t, func(t *testing.T, relay *relaytest.Relay) {
		for i := range 5 {
			if got := outcomeOf(t, relay, "collapseId", id(i)); got != "forwarded" {
				t.Errorf("page %d: %s", i, got)
			}
		}
	}, relaytest.WithRelay(relay.WithPolicy(most)))
}
