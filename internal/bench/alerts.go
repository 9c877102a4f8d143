package main

import (
	"crypto/sha256"
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
	hashed := []byte(fmt.Sprintf("%s\x00{%q:%q,%q:%q,%q:%q}", salt.Reveal(), "kind", alert.Kind, "name", alert.Name, "run_id", alert.RunID))
	hash := func() {
		sum := sha256.Sum256(hashed)
		runtime.KeepAlive(&sum)
	}

	costs := interleave(31, repeat(4000, fit), repeat(4000, marshal), repeat(50_000, collapse), repeat(50_000, hash))
	fitting, hashing := costs[0].over(costs[1]).median(), costs[2].over(costs[3]).median()
	allocs := testing.AllocsPerRun(100, collapse)
	return []row{{
		what:     "`Fit` of a failure with 40 lines of 110 characters, over one `MarshalJSON` of it",
		goal:     "≤ 3",
		measured: fmt.Sprintf("%.2f", fitting),
		met:      fitting <= 3,
		detail:   fmt.Sprintf("%v over %v for all 40 lines", costs[0], costs[1]),
	}, {
		what:     "`CollapseID` over one SHA-256 of as many bytes",
		goal:     "≤ 3, ≤ 1 allocation",
		measured: fmt.Sprintf("%.2f, %v allocation", hashing, allocs),
		met:      hashing <= 3 && allocs <= 1,
		detail:   fmt.Sprintf("%v over %v for %d bytes", costs[2], costs[3], len(hashed)),
	}}, nil
}
