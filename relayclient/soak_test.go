package relayclient_test

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

var (
	soakTime = flag.Duration("soak", 0, "how long TestSoak runs, which else sends soakAlerts alerts over each protocol")
	soakSeed = flag.Uint64("soak-seed", 1, "of the faults in TestSoak")
)

const (
	soakAlerts = 30
	soakOutage = 50 * time.Millisecond
)

// faultyRelay fails one request in ten, each time in another way, and counts how
// it answered. Zero stands for a connection that it broke, and for a request that
// it never answered.
type faultyRelay struct {
	next    http.Handler
	swallow bool // some requests, for as long as the client's timeout

	mu      sync.Mutex
	random  *rand.Rand
	answers map[int]int
}

func (f *faultyRelay) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	status, swallowed := http.StatusAccepted, f.swallow && f.random.IntN(10_000) == 0
	switch {
	case swallowed:
		status = 0
	case f.random.IntN(10) == 0:
		statuses := []int{0, 0, 302, 400, 410, 413, 429, 500, 502, 503}
		status = statuses[f.random.IntN(len(statuses))]
	}
	f.answers[status]++
	f.mu.Unlock()
	switch {
	case swallowed:
		io.Copy(io.Discard, r.Body) // or the server does not notice that the client has gone
		<-r.Context().Done()
	case status == http.StatusAccepted:
		f.next.ServeHTTP(w, r)
	case status == 0:
		panic(http.ErrAbortHandler)
	case status == http.StatusBadRequest: // before the body is read, and the connection ends
		w.Header().Set("Connection", "close")
		http.Error(w, "soaking", status)
	default:
		w.Header().Set("Location", "http://elsewhere.sealpush.test/")
		http.Error(w, "soaking", status)
	}
}

// A faultyNetwork fails some dials: one in ten alone, and all of them for a while.
type faultyNetwork struct {
	mu      sync.Mutex
	random  *rand.Rand
	outage  time.Time // until then; the first one begins with the first dial
	refused int
}

func (f *faultyNetwork) dial(ctx context.Context, network, address string) (net.Conn, error) {
	f.mu.Lock()
	now, dice := time.Now(), f.random.IntN(1000)
	if f.outage.IsZero() || dice < 5 && now.After(f.outage) {
		f.outage = now.Add(soakOutage)
	}
	var err error
	switch {
	case now.Before(f.outage):
		err = syscall.ECONNREFUSED
	case dice < 50:
		err = syscall.EMFILE
	case dice < 100:
		err = &net.DNSError{Err: "no such host", Name: "soaking", IsNotFound: true}
	}
	if err != nil {
		f.refused++
	}
	f.mu.Unlock()
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	return (&net.Dialer{}).DialContext(ctx, network, address)
}

// Every alert has an outcome for every device, both sides count alike, and
// nothing grows: not goroutines, not open files, not memory.
func TestSoak(t *testing.T) {
	t.Logf("seed %d", *soakSeed)
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) { soak(t, http2, *soakTime/2) })
	}
}

func soak(t *testing.T, http2 bool, during time.Duration) {
	httptest.NewServer(nil).Close() // opens the files that the runtime keeps for its poller
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	relay := relaytest.NewUnstartedRelay(relaytest.WithoutPolicy(), relaytest.WithHistory(0))
	defer relay.Close()
	random := rand.New(rand.NewPCG(*soakSeed, 0))
	faulty := &faultyRelay{next: relay, random: rand.New(rand.NewPCG(*soakSeed, 1)), answers: map[int]int{}}
	faulty.swallow = during > 20*time.Second // each costs the timeout
	way := &faultyNetwork{random: rand.New(rand.NewPCG(*soakSeed, 2))}
	const idleTimeout = 1200 * time.Millisecond
	server := httptest.NewUnstartedServer(faulty)
	server.Config.IdleTimeout = idleTimeout
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	var trusting *tls.Config
	if server.EnableHTTP2 = http2; http2 {
		server.StartTLS()
		trusting = server.Client().Transport.(*http.Transport).TLSClientConfig
	} else {
		server.Start()
	}
	client, err := relayclient.New(server.URL, relayclient.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	relayclient.SetDial(client, way.dial, trusting)
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
	for end, n := time.Now().Add(during), 0; n < soakAlerts || time.Now().Before(end); n++ {
		send()
		if random.IntN(100) == 0 { // an alert as the relay closes idle connections
			<-time.After(idleTimeout + time.Duration(random.IntN(5)-2)*time.Millisecond)
		}
	}
	heapAfter := liveHeap()
	client.Close()
	server.Close()

	t.Logf("%d alerts, answers %v, %d dials failed, heap %d KiB then %d KiB", alerts, counted, way.refused, heapBefore>>10, heapAfter>>10)
	if !maps.Equal(counted, faulty.answers) {
		t.Errorf("the client counts %v, the relay %v", counted, faulty.answers)
	}
	if way.refused == 0 {
		t.Error("no dial failed")
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
