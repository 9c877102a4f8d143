package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"
)

// The goals. Memory is flat if what is live in the last quarter of the attack is no more than in the second one, but
// for what a garbage collector leaves and what a relay remembers of the honest daemon's own alerts.
const (
	maxRatio  = 3.0
	maxGrowth = 1.10
	tolerance = 2 << 20 // bytes
)

// report prints the figures as rows of docs/security.md, and says which goal is missed.
func report(out io.Writer, duration time.Duration, without, with times, memory []memoryUse, did map[string]int) error {
	if len(memory) < 8 || len(without.alerts) == 0 || len(with.alerts) == 0 || len(without.wakeups) == 0 || len(with.wakeups) == 0 {
		return errors.New("too little was measured")
	}
	fmt.Fprintf(out, "%v on %s, %d CPUs (%s/%s), %s\n\n", duration, time.Now().UTC().Format(time.DateOnly), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	fmt.Fprintln(out, "| what | alone | under attack | ratio |")
	fmt.Fprintln(out, "|---|---|---|---|")
	ratio := row(out, "an alert, median", without.alerts, with.alerts, 0.5)
	row(out, "an alert, 99th of 100", without.alerts, with.alerts, 0.99)
	row(out, "a bridge's token and wake-up, median", without.wakeups, with.wakeups, 0.5)

	quarter := len(memory) / 4
	early, late := median(memory[quarter:2*quarter]), median(memory[len(memory)-quarter:])
	fmt.Fprintf(out, "\nMemory under attack, live: %s in the second quarter, %s in the last; from the system at most %s; at most %d goroutines.\n",
		megabytes(early), megabytes(late),
		megabytes(slices.MaxFunc(memory, func(a, b memoryUse) int { return cmp.Compare(a.System, b.System) }).System),
		slices.MaxFunc(memory, func(a, b memoryUse) int { return a.Goroutines - b.Goroutines }).Goroutines)
	fmt.Fprint(out, "The ten clients' work:")
	var missed []error
	for i, what := range []string{slowBody, bigHeader, wrongCredential, registration, push, idleConnection} {
		fmt.Fprintf(out, "%s %d %s", []string{"", ","}[min(i, 1)], did[what], what)
		if did[what] == 0 {
			missed = append(missed, fmt.Errorf("no %s: there was no attack of that kind", what))
		}
	}
	fmt.Fprintln(out, ".")
	if ratio > maxRatio {
		missed = append(missed, fmt.Errorf("an alert takes %.2f times as long under attack, which is more than %.0f", ratio, maxRatio))
	}
	if float64(late) > maxGrowth*float64(early)+tolerance {
		missed = append(missed, fmt.Errorf("memory grew from %s to %s during the attack", megabytes(early), megabytes(late)))
	}
	return errors.Join(missed...)
}

func row(out io.Writer, what string, without, with []time.Duration, rank float64) (ratio float64) {
	a, b := quantile(without, rank), quantile(with, rank)
	ratio = float64(b) / float64(a)
	fmt.Fprintf(out, "| %s | %v | %v | %.2f |\n", what, a.Round(10*time.Microsecond), b.Round(10*time.Microsecond), ratio)
	return ratio
}

func quantile(of []time.Duration, rank float64) time.Duration {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[int(rank*float64(len(sorted)-1))]
}

func median(of []memoryUse) uint64 {
	live := make([]uint64, 0, len(of))
	for _, use := range of {
		live = append(live, use.Live)
	}
	slices.Sort(live)
	return live[len(live)/2]
}

func megabytes(n uint64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }
