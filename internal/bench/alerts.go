package main

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/seal"
)

// longFailure has 40 lines of 110 characters, about twice what fits.
func longFailure() payload.Alert {
	a := payload.NewFailure("db-1.example.com", "nightly-backup")
	a.RunID, a.Schedule, a.StartedAt = "run-83fefc63f0cd", "*/5 * * * *", a.Time.Add(-time.Minute)
	a.ExitCode, a.FailReason = new(137), "exit code 137"
	for range payload.MaxLogLines {
		a.LogTail = append(a.LogTail, strings.Repeat("pg_dump: error ", 8)[:110])
	}
	return a
}

func alerts() ([]row, error) {
	alert, salt := longFailure(), payload.NewSalt()
	fit := func() { must(payload.Fit(alert, seal.X25519.MaxPlaintext(3000))) }
	marshal := func() { must(alert.MarshalJSON()) }
	collapse := func() { runtime.KeepAlive(alert.CollapseID(salt)) }

	costs := interleave(31, repeat(4000, fit), repeat(4000, marshal), repeat(50_000, collapse))
	ratio := costs[0].over(costs[1]).median()
	allocs := testing.AllocsPerRun(100, collapse)
	return []row{{
		what:     "`Fit` of a failure with 40 lines of 110 characters, over one `MarshalJSON` of it",
		goal:     "≤ 3, ≤ 5 µs",
		measured: fmt.Sprintf("%.2f, %v", ratio, costs[0]),
		met:      ratio <= 3 && costs[0].median() <= 5000,
		detail:   fmt.Sprintf("`MarshalJSON` of all 40 lines takes %v", costs[1]),
	}, {
		what:     "`CollapseID`",
		goal:     "≤ 1 µs, ≤ 1 allocation",
		measured: fmt.Sprintf("%v, %v allocation", costs[2], allocs),
		met:      costs[2].median() <= 1000 && allocs <= 1,
	}}, nil
}
