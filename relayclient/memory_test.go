package relayclient_test

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// heapMeter is a push service that measures the heap at every hundredth message.
type heapMeter struct {
	mu       sync.Mutex
	messages int
	highest  uint64
}

func (m *heapMeter) Device(token string) (string, error) { return token, nil }

func (m *heapMeter) Forward(context.Context, relay.Envelope) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.messages++; m.messages%100 == 0 {
		m.highest = max(m.highest, liveHeap())
	}
	return nil
}

func liveHeap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// A thousand sealed envelopes are three megabytes: they must not all be there at
// once, neither before they are posted nor after.
func TestMemoryIsFlatOverManyDevices(t *testing.T) {
	meter := &heapMeter{}
	relay := relaytest.NewRelay(relaytest.WithRelay(relay.WithForwarder(meter)), relaytest.WithHistory(0), relaytest.WithoutPolicy())
	defer relay.Close()
	client, _ := newClientAt(t, relay.URL, relayclient.WithMaxInFlight(4))
	push := relayclient.Push{Alert: failure(), Salt: salt}
	push.Alert.LogTail = []string{string(make([]byte, 300))} // 1800 bytes when it is escaped
	warm := sharedKeyDevices(10)
	wantAllDelivered(t, client.Send(t.Context(), push, warm), warm)

	devices := sharedKeyDevices(1000)
	before := liveHeap()
	wantAllDelivered(t, client.Send(t.Context(), push, devices), devices)
	if meter.highest == 0 {
		t.Fatal("nothing was measured")
	}
	if grown := int64(meter.highest) - int64(before); grown > 1<<20 {
		t.Errorf("the heap grew by %d bytes on the way", grown)
	}
}
