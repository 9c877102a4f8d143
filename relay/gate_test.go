package relay

import (
	"fmt"
	"testing"
	"time"
)

// A gateAt drives a gate by a clock that goes wherever the test sets it.
type gateAt struct {
	*testing.T
	gate *gate
	now  time.Time
}

func defaults(t testing.TB, p Policy) Policy {
	t.Helper()
	p, err := p.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func newGateAt(t *testing.T) *gateAt {
	return &gateAt{t, newGate(defaults(t, Policy{})), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func (g *gateAt) expect(id string, want outcome) {
	g.Helper()
	if got := g.post(id); got != want {
		g.Errorf("%s at %s: %s, want %s", id, g.now.Format(time.TimeOnly), got, want)
	}
}

func (g *gateAt) post(id string) outcome {
	o, _ := g.gate.admit(g.now, "device", id)
	if o == forwarded {
		g.gate.settle(g.now, g.now, "device", id, true)
	}
	return o
}

func TestGateWhenTheClockIsSetBack(t *testing.T) {
	for _, back := range []time.Duration{time.Nanosecond, time.Minute, 3 * time.Hour, 10 * 365 * 24 * time.Hour} {
		t.Run(back.String(), func(t *testing.T) {
			t.Run("coalescing", func(t *testing.T) {
				g := newGateAt(t)
				g.expect("a", forwarded)
				g.now = g.now.Add(-back)
				g.expect("a", coalesced) // not lifted
				g.now = g.now.Add(75 * time.Second)
				g.expect("a", forwarded) // not silenced
			})
			t.Run("flapping", func(t *testing.T) {
				g := newGateAt(t)
				for range 7 {
					g.expect("a", forwarded)
					g.now = g.now.Add(80 * time.Second)
				}
				g.expect("a", suppressed)
				g.now = g.now.Add(-back)
				if got := g.post("a"); got == forwarded {
					t.Error("set back, the clock lifted the limit")
				}
				g.now = g.now.Add(80 * time.Second)
				g.expect("a", suppressed) // not lifted
				g.now = g.now.Add(30 * time.Minute)
				g.expect("a", forwarded) // not silenced
				g.now = g.now.Add(2 * time.Hour)
				g.expect("a", forwarded)
				g.now = g.now.Add(80 * time.Second)
				g.expect("a", forwarded) // as new
			})
			t.Run("rate", func(t *testing.T) {
				g := newGateAt(t)
				for i := range 60 {
					g.expect(fmt.Sprint(i), forwarded)
				}
				g.now = g.now.Add(-back)
				g.expect("x", limited) // not lifted
				for range 20 {
					g.now = g.now.Add(2 * time.Second)
					g.expect(fmt.Sprint("y", g.now), forwarded) // not silenced
					g.expect(fmt.Sprint("z", g.now), limited)
				}
			})
			t.Run("memory", func(t *testing.T) {
				g := newGateAt(t)
				for range 7 {
					g.expect("cooled", forwarded)
					g.now = g.now.Add(80 * time.Second)
				}
				g.expect("a", forwarded)
				g.now = g.now.Add(-back)
				g.gate.sweep(g.now)
				if left := g.gate.sweep(g.now.Add(2 * time.Hour)); left != 0 {
					t.Errorf("%d devices left", left)
				}
			})
		})
	}
}

func TestGateWhenTheClockIsSetBackDuringAForward(t *testing.T) {
	g := newGateAt(t)
	admitted := g.now
	if o, _ := g.gate.admit(admitted, "device", "slow"); o != forwarded {
		t.Fatal(o)
	}
	g.now = g.now.Add(-3 * time.Hour)
	g.expect("other", forwarded)
	g.gate.settle(g.now, admitted, "device", "slow", true)
	g.expect("slow", coalesced)
	g.now = g.now.Add(75 * time.Second)
	g.expect("slow", forwarded)
}

func TestGateAfterAFailedForward(t *testing.T) {
	g := newGateAt(t)
	fail := func(id string) {
		t.Helper()
		if o, _ := g.gate.admit(g.now, "device", id); o != forwarded {
			t.Fatalf("%s, want forwarded", o)
		}
		g.expect(id, coalesced) // while it is on its way, however long
		g.gate.settle(g.now.Add(time.Second), g.now, "device", id, false)
	}
	for range 200 {
		fail("a")
	}
	if len(g.gate.devices) != 0 {
		t.Error("a device that nothing reached is remembered")
	}
	// Not cooled, not coalesced and with a full bucket.
	g.expect("a", forwarded)
	for i := range 59 {
		g.expect(fmt.Sprint(i), forwarded)
	}
	g.expect("x", limited)

	// A failure forgets nothing either: six forwards stay six.
	g = newGateAt(t)
	for range 6 {
		g.expect("a", forwarded)
		g.now = g.now.Add(80 * time.Second)
	}
	for range 20 {
		fail("a")
	}
	g.expect("a", forwarded)
	g.now = g.now.Add(80 * time.Second)
	g.expect("a", suppressed)
	g.now = g.now.Add(30 * time.Minute)
	fail("a")
	g.expect("a", forwarded) // the reminder that failed
	g.now = g.now.Add(80 * time.Second)
	g.expect("a", suppressed)
}

func TestGateAfterTheRateLimit(t *testing.T) {
	g := newGateAt(t)
	g.expect("a", forwarded)
	g.now = g.now.Add(80 * time.Second)
	for i := range 60 {
		g.expect(fmt.Sprint(i), forwarded)
	}
	g.expect("a", limited)
	g.expect("a", limited) // not taken for on its way
	g.now = g.now.Add(2 * time.Second)
	g.expect("a", forwarded)
}

func TestGateCountsForwardsOnTheirWay(t *testing.T) {
	g := newGateAt(t)
	for i := range 60 {
		if o, _ := g.gate.admit(g.now, "device", fmt.Sprint(i)); o != forwarded {
			t.Fatalf("%d: %s", i, o)
		}
	}
	o, wait := g.gate.admit(g.now, "device", "x")
	if o != limited || wait != 2*time.Second {
		t.Errorf("%s, %v", o, wait)
	}
	if left := g.gate.sweep(g.now.Add(24 * time.Hour)); left != 1 {
		t.Error("forgotten on its way")
	}
	g.gate.settle(g.now, g.now, "device", "0", false)
	g.expect("x", forwarded)
	g.expect("y", limited)
}

// The window runs from when a forward began, however long it took.
func TestGateAfterASlowForward(t *testing.T) {
	g := newGateAt(t)
	if o, _ := g.gate.admit(g.now, "device", "a"); o != forwarded {
		t.Fatal(o)
	}
	g.gate.settle(g.now.Add(20*time.Second), g.now, "device", "a", true)
	g.now = g.now.Add(75*time.Second - 1)
	g.expect("a", coalesced)
	g.now = g.now.Add(1)
	g.expect("a", forwarded)
}

func TestGateCountsAHundredThousandDevices(t *testing.T) {
	g := newGateAt(t)
	post := func(i int) outcome {
		device := fmt.Sprint(i)
		o, _ := g.gate.admit(g.now, device, "a")
		if o == forwarded {
			g.gate.settle(g.now, g.now, device, "a", true)
		}
		return o
	}
	for i := range 100_000 {
		if o := post(i); o != forwarded {
			t.Fatalf("device %d: %s", i, o)
		}
	}
	if o := post(100_000); o != overloaded {
		t.Errorf("one more: %s", o)
	}
	g.now = g.now.Add(30 * time.Minute) // and nobody has swept
	if o := post(100_000); o != forwarded {
		t.Errorf("one more, once the others no longer matter: %s", o)
	}
}

func TestGateRemembersForTheLongestWindow(t *testing.T) {
	g := newGateAt(t)
	g.gate = newGate(defaults(t, Policy{CoalesceWindow: time.Hour, FlapWindow: time.Minute}))
	g.expect("a", forwarded)
	g.now = g.now.Add(time.Hour - 1)
	g.gate.sweep(g.now)
	g.expect("a", coalesced)
	if left := g.gate.sweep(g.now.Add(1)); left != 0 {
		t.Errorf("%d devices left", left)
	}
}

// What sweep forgets must not have mattered: a gate that is swept at every step
// answers as one that never is.
func TestGateForgetsOnlyWhatDoesNotMatter(t *testing.T) {
	swept, kept := newGateAt(t), newGateAt(t)
	steps := []time.Duration{0, time.Second, 80 * time.Second, 10 * time.Minute, 31 * time.Minute, 125 * time.Minute}
	for i := range 4000 {
		step := steps[(i*i/7+i/13)%len(steps)]
		if i%50 < 30 {
			step = 80 * time.Second
		}
		swept.now, kept.now = swept.now.Add(step), kept.now.Add(step)
		swept.gate.sweep(swept.now)
		id := fmt.Sprint(i * i % 3)
		if a, b := swept.post(id), kept.post(id); a != b {
			t.Fatalf("step %d: %s when swept, %s when not", i, a, b)
		}
	}
}
