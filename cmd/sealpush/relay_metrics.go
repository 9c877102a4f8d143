package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sealpush/sealpush/relay"
	"golang.org/x/net/netutil"
)

// metrics are the sealed relay's, as Prometheus reads them (text format 0.0.4). The labels are fixed words, so that no
// device token can be among them, and nobody can add to them. Two counters, two histograms and a gauge are no reason to
// have the Prometheus client's modules in the tool, protocol buffers among them; the tests read the text with its parser.
type metrics struct {
	devices func() int // nil where they are not counted

	mu            sync.Mutex
	posts         map[string]uint64    // by result
	forwards      map[[2]string]uint64 // by operation and result
	postSeconds   histogram
	pushedSeconds histogram // of forwards
}

func newMetrics(devices func() int) *metrics {
	m := &metrics{devices: devices, posts: map[string]uint64{}, forwards: map[[2]string]uint64{}}
	for _, result := range relay.PostResults() {
		m.posts[result] = 0 // a rate of what has never happened is 0, and not unknown
	}
	for _, operation := range []string{"forward", "digest"} {
		for _, result := range []string{"forwarded", "rate_limited", "device_gone", "not_forwarded"} {
			m.forwards[[2]string{operation, result}] = 0
		}
	}
	return m
}

// observe is the relay's observer.
func (m *metrics) observe(o relay.Observation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o.Operation == "post" {
		m.posts[o.Result]++
		m.postSeconds.add(o.Duration)
		return
	}
	m.forwards[[2]string{o.Operation, o.Result}]++
	m.pushedSeconds.add(o.Duration)
}

// ServeHTTP writes the metrics.
func (m *metrics) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	var text bytes.Buffer
	family := func(name, kind, help string) {
		fmt.Fprintf(&text, "# HELP %s %s\n# TYPE %[1]s %[3]s\n", name, help, kind)
	}
	m.mu.Lock()
	family("sealpush_relay_posts_total", "counter", "Posts that were answered, by result.")
	for _, result := range slices.Sorted(maps.Keys(m.posts)) {
		fmt.Fprintf(&text, "sealpush_relay_posts_total{result=%q} %d\n", result, m.posts[result])
	}
	family("sealpush_relay_forwards_total", "counter", "Alerts and digests that were sent to the push service, by result.")
	for _, key := range slices.SortedFunc(maps.Keys(m.forwards), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		fmt.Fprintf(&text, "sealpush_relay_forwards_total{operation=%q,result=%q} %d\n", key[0], key[1], m.forwards[key])
	}
	family("sealpush_relay_post_duration_seconds", "histogram", "How long a post took, the forward included.")
	m.postSeconds.write(&text, "sealpush_relay_post_duration_seconds")
	family("sealpush_relay_forward_duration_seconds", "histogram", "How long the push service took.")
	m.pushedSeconds.write(&text, "sealpush_relay_forward_duration_seconds")
	m.mu.Unlock()
	if m.devices != nil {
		family("sealpush_relay_devices", "gauge", "Devices that the relay remembers at this moment: usually those of the last half hour.")
		fmt.Fprintf(&text, "sealpush_relay_devices %d\n", m.devices())
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	text.WriteTo(w)
}

// latencies are the upper bounds of a histogram's buckets, in seconds: a forward takes at most 30.
var latencies = [...]float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30}

// A histogram counts durations. The last bucket is for those above all bounds.
type histogram struct {
	buckets [len(latencies) + 1]uint64
	sum     float64 // seconds
}

func (h *histogram) add(d time.Duration) {
	seconds := d.Seconds()
	i, _ := slices.BinarySearch(latencies[:], seconds)
	h.buckets[i]++
	h.sum += seconds
}

func (h *histogram) write(text *bytes.Buffer, name string) {
	count := uint64(0)
	for i, n := range h.buckets {
		count += n
		bound := "+Inf"
		if i < len(latencies) {
			bound = strconv.FormatFloat(latencies[i], 'g', -1, 64)
		}
		fmt.Fprintf(text, "%s_bucket{le=%q} %d\n", name, bound, count)
	}
	fmt.Fprintf(text, "%s_sum %g\n%[1]s_count %[3]d\n", name, h.sum, count)
}

// serveMetrics serves GET /metrics on an address of its own, where no daemon or phone is let in, until ctx ends. It
// returns its URL.
func serveMetrics(ctx context.Context, addr string, m *metrics) (string, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return "", fmt.Errorf("%w: choose another address with -metrics", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", m)
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
	}
	context.AfterFunc(ctx, func() { server.Close() })
	go func() {
		if err := server.Serve(netutil.LimitListener(listener, maxScrapers)); err != http.ErrServerClosed {
			slog.Error("metrics are not served any more", "error", err)
		}
	}()
	return "http://" + reachable(listener.Addr().(*net.TCPAddr)) + "/metrics", nil
}

// maxScrapers is how many are served metrics at once.
const maxScrapers = 16
