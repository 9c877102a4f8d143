package relaytest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// A relay that has paged two thousand devices is, once that no longer matters,
// as small as before. It is measured in a process of its own, where no other
// test leaves anything behind.
func TestRelayForgets(t *testing.T) {
	if os.Getenv(measuring) == "" {
		command := exec.Command(os.Args[0], "-test.run=^TestRelayForgets$")
		command.Env = append(os.Environ(), measuring+"=1")
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v:\n%s", err, output)
		}
		return
	}
	const devices, rounds = 2000, 8 // more rounds than a page is forwarded before it flaps
	template := envelope(t, "device", "DEVICE")
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewUnstartedRelay(relaytest.WithHistory(0))
		defer relay.Close()
		root := &url.URL{Path: "/"}
		post := func(n int) int {
			body := strings.Replace(template, "DEVICE", fmt.Sprintf("%016x", n), 1)
			w := statusWriter{header: http.Header{}}
			relay.ServeHTTP(&w, &http.Request{Method: http.MethodPost, URL: root, Body: io.NopCloser(strings.NewReader(body))})
			return w.status
		}
		post(0)
		advance(6 * time.Hour) // in the bubble's time
		before := heap()

		for range rounds {
			for n := range devices {
				if status := post(n); status != http.StatusAccepted {
					t.Fatalf("device %d: %d", n, status)
				}
			}
			advance(80 * time.Second)
		}
		if full := heap(); full < before+devices*100 {
			t.Errorf("%d devices in %d bytes: this test measures nothing", devices, full-before)
		}
		advance(6 * time.Hour)
		if after := heap(); after > before+devices*25 {
			t.Errorf("%d bytes before, %d after", before, after)
		}
	})
}

// measuring is set in the environment of the process that measures.
const measuring = "SEALPUSH_TEST_MEASURING"

// statusWriter keeps the status alone.
type statusWriter struct {
	header http.Header
	status int
}

func (w *statusWriter) Header() http.Header         { return w.header }
func (w *statusWriter) WriteHeader(status int)      { w.status = status }
func (w *statusWriter) Write(b []byte) (int, error) { return len(b), nil }

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
