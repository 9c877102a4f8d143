package pairing

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// countingStore counts how often a store is read, and fails while it is told to.
type countingStore struct {
	Store
	loads int
	err   error
}

func (s *countingStore) Load(ctx context.Context) (Snapshot, error) {
	s.loads++
	if s.err != nil {
		return Snapshot{}, s.err
	}
	return s.Store.Load(ctx)
}

func TestSuspendedMachineReadsTheStoreAnew(t *testing.T) {
	file, err := OpenFile(filepath.Join(t.TempDir(), "devices.json"))
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		store := &countingStore{Store: file}
		reg, err := NewRegistry(store, WithLogger(slog.New(slog.DiscardHandler)))
		if err != nil {
			t.Fatal(err)
		}
		wantLoads := func(what string, want int) {
			t.Helper()
			reg.Recipients(t.Context())
			if store.loads != want {
				t.Errorf("%s: the store was read %d times, want %d", what, store.loads, want)
			}
		}
		wantLoads("first", 1)
		wantLoads("at once", 1)
		reg.mirror.stale = reg.mirror.stale.Slept(10 * time.Minute)
		wantLoads("after ten minutes of sleep", 2)

		store.err = errors.New("no route to host")
		advance(mirrorAge + 1)
		wantLoads("failing", 3)
		wantLoads("left alone", 3)
		reg.mirror.retryAt = reg.mirror.retryAt.Slept(10 * time.Minute)
		wantLoads("failing, after ten minutes of sleep", 4)
		advance(quietTime - 1)
		wantLoads("a nanosecond early", 4)
		advance(time.Nanosecond)
		wantLoads("in time", 5)
	})
}

// advance lets the bubble's time pass.
func advance(d time.Duration) { <-time.After(d) }
