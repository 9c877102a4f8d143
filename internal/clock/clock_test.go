package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestDeadlineBoundary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDeadline(time.Now(), time.Minute)
		advance(time.Minute - 1)
		if d.Reached() {
			t.Error("reached a nanosecond early")
		}
		advance(time.Nanosecond)
		if !d.Reached() {
			t.Error("not reached at the deadline")
		}
		if left := NewDeadline(time.Now(), time.Hour).Slept(time.Minute).Remaining(); left != 59*time.Minute {
			t.Errorf("%v remain after a minute's sleep", left)
		}
		if left := d.Remaining(); left != 0 {
			t.Errorf("%v remain of a deadline that was reached", left)
		}
		if !d.Wall().Equal(time.Now()) {
			t.Errorf("Wall = %v at %v", d.Wall(), time.Now())
		}
	})
}

// The two clocks cannot be driven apart from outside, so the parts are set by hand.
func TestDeadlineClocksApart(t *testing.T) {
	tests := []struct {
		name string
		mono time.Duration // what is left by the monotonic clock
		wall time.Duration // what is left by the wall clock
		want bool
	}{
		{"both say later", time.Second, time.Second, false},
		{"suspended: only the wall clock went on", time.Hour, -time.Second, true},
		{"set back: only the monotonic clock went on", -time.Second, time.Hour, true},
		{"both say past", -time.Second, -time.Second, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := NewDeadline(time.Now(), tt.mono)
				d.wall = time.Now().Add(tt.wall).UnixNano()
				if got := d.Reached(); got != tt.want {
					t.Errorf("Reached = %v, want %v", got, tt.want)
				}
			})
		})
	}
}

func TestZeroDeadlineIsReached(t *testing.T) {
	if !(Deadline{}).Reached() {
		t.Error("the zero deadline was not reached")
	}
}

func TestReachedAllocatesNothing(t *testing.T) {
	d := NewDeadline(time.Now(), time.Hour)
	if n := testing.AllocsPerRun(100, func() { d.Reached() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// advance lets the bubble's time pass.
func advance(d time.Duration) { <-time.After(d) }

// What the suspension tests of other packages rest on.
func TestSlept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDeadline(time.Now(), time.Hour)
		if d.Slept(time.Hour - time.Second).Reached() {
			t.Error("reached after a shorter sleep")
		}
		if !d.Slept(time.Hour).Reached() {
			t.Error("not reached after a sleep as long")
		}
		if d.Reached() {
			t.Error("the deadline itself changed")
		}
	})
}
