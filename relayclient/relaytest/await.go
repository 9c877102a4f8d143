package relaytest

import (
	"context"
	"sync"
)

// A monitor is a mutex whose holder can tell others that something changed.
type monitor struct {
	sync.Mutex
	changed chan struct{} // made by the first who waits; nil while nobody does
}

// notify wakes everyone in await. The caller holds the mutex.
func (m *monitor) notify() {
	if m.changed != nil {
		close(m.changed)
		m.changed = nil
	}
}

// await waits until ready, which is called with the mutex held, or until ctx is done. A nil ctx is
// context.Background().
func (m *monitor) await(ctx context.Context, ready func() bool) error {
	if ctx == nil {
		ctx = context.Background()
	}
	for {
		m.Lock()
		if ready() {
			m.Unlock()
			return nil
		}
		if m.changed == nil {
			m.changed = make(chan struct{})
		}
		changed := m.changed
		m.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// A history keeps the latest items, at most limit of them.
type history[T any] struct {
	limit int
	items []T
}

func (h *history[T]) add(item T) {
	if h.limit == 0 {
		return
	}
	// Dropping half at a time costs one move an item, whatever the limit.
	if len(h.items) >= 2*h.limit {
		kept := copy(h.items, h.items[len(h.items)-h.limit:])
		clear(h.items[kept:])
		h.items = h.items[:kept]
	}
	h.items = append(h.items, item)
}

// latest is a view of what is kept, oldest first.
func (h *history[T]) latest() []T { return h.items[max(0, len(h.items)-h.limit):] }
