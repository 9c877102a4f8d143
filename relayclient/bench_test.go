package relayclient_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
)

// BenchmarkSend sends one alert whose plaintext is as large as it can be. The
// relay runs in the same process and its cost is part of the figure; see
// internal/bench for the client's alone.
func BenchmarkSend(b *testing.B) {
	relay := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusAccepted)
	}))
	defer relay.Close()
	alert := failure()
	for range payload.MaxLogLines {
		alert.LogTail = append(alert.LogTail, strings.Repeat("pg_dump: error ", 8)[:110])
	}
	alert.LogTail = alert.LogTail[:payload.MaxLogLines]
	push := relayclient.Push{Alert: alert, Salt: salt}

	for _, n := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("%d phones", n), func(b *testing.B) {
			client, _ := newClientAt(b, relay.URL)
			devices := sharedKeyDevices(n)
			b.ReportAllocs()
			for b.Loop() {
				for _, outcome := range client.Send(b.Context(), push, devices) {
					if outcome.Err != nil {
						b.Fatal(outcome.Err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*n), "µs/POST")
		})
	}
}
