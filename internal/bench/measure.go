package main

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A task is something to measure: run does it ops times.
type task struct {
	ops int
	run func(ops int)
}

// series is what one operation of a task costs in each round, in nanoseconds of this process's CPU time.
type series []float64

// interleave measures the tasks in turn, round after round, so that whatever else the machine does hits them alike. One
// round before the first warms up.
func interleave(rounds int, tasks ...task) []series {
	costs := make([]series, len(tasks))
	for round := range rounds + 1 {
		for i, t := range tasks {
			runtime.GC() // nobody pays for what another left behind
			before := cpuTime()
			t.run(t.ops)
			cost := float64(cpuTime()-before) / float64(t.ops)
			if round > 0 {
				costs[i] = append(costs[i], cost)
			}
		}
	}
	return costs
}

// cpuTime is what this process has used, in user and in kernel mode, garbage collector included.
func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err) // only for bad arguments
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// over divides two series round by round.
func (s series) over(other series) series {
	ratios := make(series, len(s))
	for i := range s {
		ratios[i] = s[i] / other[i]
	}
	return ratios
}

// plus adds two series round by round.
func (s series) plus(other series) series {
	sums := make(series, len(s))
	for i := range s {
		sums[i] = s[i] + other[i]
	}
	return sums
}

func (s series) median() float64 {
	sorted := slices.Sorted(slices.Values(s))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// String is the median with a unit.
func (s series) String() string {
	ns := s.median()
	if ns < 1000 {
		return fmt.Sprintf("%.3g ns", ns)
	}
	return fmt.Sprintf("%.3g µs", ns/1000)
}

// inParallel calls do with 0 to ops-1 from so many goroutines.
func inParallel(goroutines, ops int, do func(i int)) {
	var taken atomic.Int64
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() {
			for i := taken.Add(1) - 1; i < int64(ops); i = taken.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	wg.Wait()
}
