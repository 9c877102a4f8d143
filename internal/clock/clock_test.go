package clock

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestDeadlineBoundary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := NewDeadline(time.Now(), time.Minute)
		time.Sleep(time.Minute - 1)
		if d.Reached(time.Now()) {
			t.Error("reached a nanosecond early")
		}
		time.Sleep(1)
		if !d.Reached(time.Now()) {
			t.Error("not reached at the deadline")
		}
	})
}

// The two clocks cannot be driven apart from outside, so the parts are set by hand.
func TestDeadlineClocksApart(t *testing.T) {
	now := time.Now()
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
			d := Deadline{at: now.Add(tt.mono), wall: now.Add(tt.wall).UnixNano()}
			if got := d.Reached(now); got != tt.want {
				t.Errorf("Reached = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestZeroDeadlineIsReached(t *testing.T) {
	if !(Deadline{}).Reached(time.Now()) {
		t.Error("the zero deadline was not reached")
	}
}
