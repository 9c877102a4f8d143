package main

import (
	"io"
	"strings"
	"testing"
	"time"
)

func TestReportMissesGoals(t *testing.T) {
	took := func(d time.Duration) times { return times{[]time.Duration{d}, []time.Duration{d}} }
	flat := make([]memoryUse, 12)
	for i := range flat {
		flat[i].Live = 20e6
	}
	growing := append([]memoryUse{}, flat...)
	for i := range growing {
		growing[i].Live += uint64(i) * 1e6
	}
	did := func(without string) map[string]int {
		all := map[string]int{slowBody: 1, bigHeader: 1, wrongCredential: 1, registration: 1, push: 1, idleConnection: 1}
		delete(all, without)
		return all
	}
	for _, tt := range []struct {
		name   string
		with   time.Duration
		memory []memoryUse
		did    map[string]int
		want   string // "" for no goal missed
	}{
		{"as it should be", 3 * time.Millisecond, flat, did(""), ""},
		{"slow alerts", 4 * time.Millisecond, flat, did(""), "4.00 times as long"},
		{"growing memory", time.Millisecond, growing, did(""), "memory grew"},
		{"no registrations", time.Millisecond, flat, did(registration), "no registrations"},
		{"too short", time.Millisecond, flat[:2], did(""), "too little"},
	} {
		err := report(io.Discard, time.Minute, took(time.Millisecond), took(tt.with), tt.memory, tt.did)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}
