package payload_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/payload"
)

// longFailure is a failure with 40 lines of 110 characters, twice what fits.
func longFailure() payload.Alert {
	a := payload.NewFailure("db-1.example.com", "nightly-backup")
	a.Time = time.Date(2026, 7, 23, 1, 2, 3, 0, time.UTC)
	a.RunID, a.Schedule, a.StartedAt = "run-83fefc63f0cd", "*/5 * * * *", a.Time.Add(-time.Minute)
	a.ExitCode, a.FailReason = new(137), "exit code 137"
	for range payload.MaxLogLines {
		a.LogTail = append(a.LogTail, strings.Repeat("pg_dump: error", 8)[:110])
	}
	return a
}

func BenchmarkMarshalJSON(b *testing.B) {
	a := longFailure()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.MarshalJSON(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFit(b *testing.B) {
	japanese := longFailure()
	for i := range japanese.LogTail {
		japanese.LogTail[i] = strings.Repeat("日次バッチ", 22)
	}
	message := payload.NewEvent("db-1.example.com", "etl", payload.EventDAGFailure)
	message.Message = strings.Repeat("a long message. ", 1<<16) // 1 MiB
	for _, bench := range []struct {
		name  string
		alert payload.Alert
	}{
		{"40 lines", longFailure()},
		{"40 lines of Japanese", japanese},
		{"message of 1 MiB", message},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := payload.Fit(bench.alert, maxPlaintext); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	fitted, err := payload.Fit(longFailure(), maxPlaintext)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := payload.Parse(fitted.Plaintext); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCollapseID(b *testing.B) {
	a, salt := longFailure(), payload.NewSalt()
	b.ReportAllocs()
	for b.Loop() {
		a.CollapseID(salt)
	}
}

func BenchmarkLogTail(b *testing.B) {
	for _, bench := range []struct{ name, text string }{
		{"100 MB of lines", strings.Repeat("pg_dump: error: connection to server failed\n", 100_000_000/44)},
		{"100 MB without a line end", strings.Repeat("x", 100_000_000)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				payload.LogTail(bench.text)
			}
		})
	}
}
