package relayclient_test

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

var (
	soakTime = flag.Duration("soak", 2*time.Second, "how long TestSoak runs")
	soakSeed = flag.Uint64("soak-seed", 1, "of the faults in TestSoak")
)

// faultyRelay fails one request in ten, each time in another way, and counts how
// it answered. Zero stands for a connection that it broke.
type faultyRelay struct {
	next http.Handler

	mu      sync.Mutex
	random  *rand.Rand
	answers map[int]int
}

func (f *faultyRelay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	status := http.StatusAccepted
	if f.random.IntN(10) == 0 {
		statuses := []int{0, 0, 302, 400, 410, 413, 429, 500, 502, 503}
		status = statuses[f.random.IntN(len(statuses))]
	}
	f.answers[status]++
	f.mu.Unlock()
	switch status {
	case http.StatusAccepted:
		f.next.ServeHTTP(w, r)
	case 0:
		panic(http.ErrAbortHandler)
	default:
		w.Header().Set("Location", "http://elsewhere.sealpush.test/")
		http.Error(w, "soaking", status)
	}
}

// Every alert has an outcome for every device, both sides count alike, and
// nothing grows: not goroutines, not open files, not memory.
func TestSoak(t *testing.T) {
	t.Logf("seed %d", *soakSeed)
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	relay := relaytest.NewUnstartedRelay(relaytest.WithoutPolicy(), relaytest.WithHistory(0))
	defer relay.Close()
	faulty := &faultyRelay{next: relay, random: rand.New(rand.NewPCG(*soakSeed, 0)), answers: map[int]int{}}
	server := httptest.NewServer(faulty)
	client, err := relayclient.New(server.URL, relayclient.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	devices := sharedKeyDevices(40)
	counted := map[int]int{}
	alerts := 0
	send := func() {
		alert := failure()
		alert.RunID = fmt.Sprint("run-", alerts)
		alerts++
		outcomes := client.Send(t.Context(), relayclient.Push{Alert: alert, Salt: salt}, devices)
		if len(outcomes) != len(devices) {
			t.Fatalf("%d outcomes for %d devices", len(outcomes), len(devices))
		}
		for i, outcome := range outcomes {
			if outcome.DeviceID != devices[i].ID || (outcome.Err == nil) != (outcome.Status == http.StatusAccepted) {
				t.Fatalf("%+v", outcome)
			}
			transport := (*relayclient.TransportError)(nil)
			if outcome.Status == 0 && !errors.As(outcome.Err, &transport) {
				t.Fatal(outcome.Err)
			}
			counted[outcome.Status]++
		}
	}
	for range 20 {
		send() // until connections and heap have their size
	}
	heapBefore := liveHeap()
	for end := time.Now().Add(*soakTime); time.Now().Before(end); {
		send()
	}
	heapAfter := liveHeap()
	client.Close()
	server.Close()

	t.Logf("%d alerts, answers %v, heap %d KiB then %d KiB", alerts, counted, heapBefore>>10, heapAfter>>10)
	if !maps.Equal(counted, faulty.answers) {
		t.Errorf("the client counts %v, the relay %v", counted, faulty.answers)
	}
	if heapAfter > heapBefore+4<<20 {
		t.Errorf("the heap grew from %d to %d bytes", heapBefore, heapAfter)
	}
	// Connections end a moment after they were closed.
	for deadline := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > goroutines || openFiles(t) > files; {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines and %d files at first, %d and %d at last", goroutines, files, runtime.NumGoroutine(), openFiles(t))
		}
		<-time.After(10 * time.Millisecond)
	}
}

// openFiles counts this process's files, where the system tells.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil && runtime.GOOS == "linux" {
		t.Fatal(err)
	}
	return len(entries)
}
