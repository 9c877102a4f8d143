package relay

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sealpush/sealpush/secret"
)

// A deviceAt drives one device's history by a clock that goes wherever the test
// sets it, through the state that keeps it.
type deviceAt struct {
	*testing.T
	relay *Relay
	state *MemoryState
	now   time.Time
}

type nowhere struct{}

func (nowhere) Device(token string) (string, error)              { return token, nil }
func (nowhere) Forward(context.Context, Envelope) error          { return nil }
func (nowhere) ForwardDigest(context.Context, secret.Text) error { return nil }

func newDeviceAt(t *testing.T, p Policy) *deviceAt {
	t.Helper()
	state, err := NewMemoryState(1)
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(WithForwarder(nowhere{}), WithPolicy(p), WithState(state))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return &deviceAt{t, r, state, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
}

func (g *deviceAt) admit(id string) decision {
	g.Helper()
	d, err := g.relay.admit(g.now, newPage("device", fmt.Sprintf("%032x", id)[:32]))
	if err != nil {
		g.Fatal(err)
	}
	return d
}

func (g *deviceAt) settle(id string, admitted time.Time, d decision) {
	g.Helper()
	p := newPage("device", fmt.Sprintf("%032x", id)[:32])
	err := g.relay.update(g.now, p.key, func(h *deviceHistory) bool {
		h.settle(g.now.UnixNano(), admitted.UnixNano(), p.id, d.lease, nil, g.relay.config.policy)
		return true
	})
	if err != nil {
		g.Fatal(err)
	}
}

func (g *deviceAt) post(id string) outcome {
	g.Helper()
	d := g.admit(id)
	if d.outcome == forwarded {
		g.settle(id, g.now, d)
	}
	return d.outcome
}

func (g *deviceAt) expect(id string, want outcome) {
	g.Helper()
	if got := g.post(id); got != want {
		g.Errorf("%s at %s: %s, want %s", id, g.now.Format(time.TimeOnly), got, want)
	}
}

// A clock that was set back lifts no limit, and silences nothing until it has
// caught up.
func TestWhenTheClockIsSetBack(t *testing.T) {
	for _, back := range []time.Duration{time.Nanosecond, time.Minute, 3 * time.Hour, 10 * 365 * 24 * time.Hour} {
		t.Run(back.String(), func(t *testing.T) {
			t.Run("coalescing", func(t *testing.T) {
				g := newDeviceAt(t, Policy{})
				g.expect("a", forwarded)
				g.now = g.now.Add(-back)
				g.expect("a", coalesced) // not lifted
				g.now = g.now.Add(75 * time.Second)
				g.expect("a", forwarded) // not silenced
			})
			t.Run("flapping", func(t *testing.T) {
				g := newDeviceAt(t, Policy{})
				for range 6 {
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
				g := newDeviceAt(t, Policy{})
				for i := range 60 {
					g.expect(fmt.Sprint(i), forwarded)
				}
				g.now = g.now.Add(-back)
				g.expect("x", limited) // not lifted
				if back <= clockSkew {
					g.now = g.now.Add(back) // as at a relay whose clock is behind another's
				}
				for range 20 {
					g.now = g.now.Add(2 * time.Second)
					g.expect(fmt.Sprint("y", g.now.Unix()), forwarded) // not silenced
					g.expect(fmt.Sprint("z", g.now.Unix()), limited)
				}
			})
			t.Run("quota", func(t *testing.T) {
				g := newDeviceAt(t, Policy{MonthlyQuota: 2})
				g.now = time.Date(2026, time.May, 15, 0, 0, 0, 0, time.UTC)
				g.expect("a", forwarded)
				g.expect("b", forwarded)
				g.expect("c", digested)
				g.now = g.now.Add(-back)
				g.expect("d", digested) // not lifted
				g.now = g.now.AddDate(0, 1, 0)
				g.expect("e", forwarded) // not silenced for longer than the month
				g.expect("f", forwarded)
				g.expect("g", digested)
			})
			t.Run("memory", func(t *testing.T) {
				g := newDeviceAt(t, Policy{})
				for range 6 {
					g.expect("cooled", forwarded)
					g.now = g.now.Add(80 * time.Second)
				}
				g.expect("cooled", suppressed)
				g.now = g.now.Add(-back)
				g.state.sweep(g.now)
				if left := g.state.sweep(g.now.Add(2 * time.Hour)); left != 0 {
					t.Errorf("%d devices left", left)
				}
			})
			t.Run("forward", func(t *testing.T) {
				g := newDeviceAt(t, Policy{})
				admitted := g.now
				d := g.admit("slow")
				g.now = g.now.Add(-back)
				g.expect("other", forwarded)
				g.settle("slow", admitted, d)
				g.expect("slow", coalesced)
				g.now = g.now.Add(75 * time.Second)
				g.expect("slow", forwarded)
			})
		})
	}
}

// Two relays whose clocks differ forward no more than one relay does.
func TestRateOfRelaysWhoseClocksDiffer(t *testing.T) {
	for _, behind := range []time.Duration{time.Millisecond, 2 * time.Second} {
		g := newDeviceAt(t, Policy{})
		admitted := 0
		for i := range 400 {
			if g.post(fmt.Sprint("a", i)) == forwarded {
				admitted++
			}
			g.now = g.now.Add(-behind)
			if g.post(fmt.Sprint("b", i)) == forwarded {
				admitted++
			}
			g.now = g.now.Add(behind + 10*time.Millisecond)
		}
		if admitted > 62 { // 60 and one per 2 s
			t.Errorf("%v behind: %d pages in 4 s, want 62 at most", behind, admitted)
		}
	}
}

// At the turn of the month, two relays whose clocks differ forward no more than the quota of both months, and send a
// digest for each.
func TestQuotaOfRelaysWhoseClocksDiffer(t *testing.T) {
	g := newDeviceAt(t, Policy{MonthlyQuota: 2})
	g.now = time.Date(2026, time.May, 31, 23, 59, 57, 0, time.UTC)
	admitted, digests := 0, 0
	post := func(id string) {
		switch d := g.admit(id); {
		case d.outcome == forwarded:
			g.settle(id, g.now, d)
			admitted++
		case d.digestDue:
			digests++
		}
	}
	for i := range 60 {
		post(fmt.Sprint("ahead", i))
		g.now = g.now.Add(-4 * time.Second)
		post(fmt.Sprint("behind", i))
		g.now = g.now.Add(4*time.Second + 100*time.Millisecond)
	}
	if admitted != 4 || digests != 2 {
		t.Errorf("%d pages and %d digests, want 4 and 2", admitted, digests)
	}
}

func TestRemembersForTheLongestWindow(t *testing.T) {
	g := newDeviceAt(t, Policy{CoalesceWindow: time.Hour, FlapWindow: time.Minute})
	g.expect("a", forwarded)
	g.now = g.now.Add(time.Hour - 1)
	g.state.sweep(g.now)
	g.expect("a", coalesced)
	if left := g.state.sweep(g.now.Add(1)); left != 0 {
		t.Errorf("%d devices left", left)
	}
}

// What is forgotten must not have mattered: a state that is swept at every step
// decides as a history of which nothing is ever dropped.
func TestForgetsOnlyWhatDoesNotMatter(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	steps := []time.Duration{0, time.Second, 80 * time.Second, 10 * time.Minute, 31 * time.Minute, 125 * time.Minute}
	swept := newDeviceAt(t, Policy{MonthlyQuota: 900})
	var kept deviceHistory
	seen := map[outcome]int{}
	for i := range 4000 {
		step := steps[random.IntN(len(steps))]
		if i%50 < 30 {
			step = steps[random.IntN(3)]
		}
		swept.now = swept.now.Add(step)
		swept.state.sweep(swept.now)
		id := string(rune('a' + random.IntN(3)))
		at, page := swept.now.UnixNano(), newPage("device", fmt.Sprintf("%032x", id)[:32])
		want, _ := kept.admit(at, page.id, 1, swept.relay.config.policy)
		got := swept.admit(id)
		seen[got.outcome]++
		if got.outcome != want.outcome || got.wait != want.wait || got.digestDue != want.digestDue {
			t.Fatalf("step %d: %+v, want %+v", i, got, want)
		}
		if got.outcome == forwarded {
			kept.settle(at, at, page.id, 1, nil, swept.relay.config.policy)
			swept.settle(id, swept.now, got)
		}
	}
	for _, o := range []outcome{forwarded, coalesced, suppressed, digested} {
		if seen[o] < 10 {
			t.Errorf("%s %d times: this test shows little", o, seen[o])
		}
	}
}

// Every history reads back as it was written.
func FuzzRecord(f *testing.F) {
	h := deviceHistory{seen: 1e18, fullAt: 1e18 + 5, month: 24312, count: 7, digested: 1e18 - 9, pages: []pageHistory{
		{id: [16]byte{1}, forwards: []int64{1e18 - 100, 1e18}, last: 1e18},
		{id: [16]byte{2}, forwards: []int64{}, cooledUntil: 2e18, lease: 1 << 63, leaseUntil: 1e18 + 30,
			failed: failedForward{lease: 3, at: 1e18, status: 410, reason: "Unregistered", retryAfter: time.Second}},
	}}
	f.Add(h.encode())
	f.Add([]byte{})
	f.Add([]byte{2})
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0x7f})
	f.Fuzz(func(t *testing.T, record []byte) {
		h, err := decodeHistory(record)
		if err != nil || len(record) == 0 {
			return
		}
		encoded := h.encode()
		again, err := decodeHistory(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(again.encode(), encoded) {
			t.Errorf("%+v became %+v", h, again)
		}
	})
}
