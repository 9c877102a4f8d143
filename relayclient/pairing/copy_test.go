package pairing_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relayclient/pairing"
)

// A database that hangs must leave an alert the time to page the phones that are known.
func TestAHangingDatabaseLeavesTimeToPage(t *testing.T) {
	for _, c := range []struct{ deadline, want time.Duration }{
		{0, 2 * time.Second},
		{10 * time.Second, 2 * time.Second},
		{8 * time.Second, 2 * time.Second},
		{4 * time.Second, time.Second},
		{200 * time.Millisecond, 50 * time.Millisecond},
	} {
		t.Run(c.deadline.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &memoryStore{}
				reg, _ := newRegistry(store)
				pair(t, store, newDevice("1", "phone"))
				reg.Recipients(t.Context())
				pass(2 * time.Minute)
				hang := make(chan struct{})
				store.set(func() { store.hang = hang })
				defer close(hang)
				ctx := t.Context()
				if c.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				start := time.Now()
				got := reg.Recipients(ctx)
				if names(got.Devices) != "phone" || !errors.Is(got.Err, pairing.ErrUnavailable) || time.Since(start) != c.want {
					t.Errorf("got %v after %v, want the phone after %v", got, time.Since(start), c.want)
				}
			})
		})
	}
}

// The first phone that pairs on another node is not missed for a minute, nor is the store asked at every alert.
func TestNobodyToPageIsAReasonToAskAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{}
		reg, _ := newRegistry(store)
		for range 10 {
			if got := reg.Recipients(t.Context()); len(got.Devices) != 0 || got.Err != nil {
				t.Fatalf("got %v", got)
			}
		}
		pair(t, store, newDevice("1", "phone")) // by another node
		pass(5*time.Second - 1)
		reg.Recipients(t.Context())
		if loads, _ := store.counts(); loads != 1 {
			t.Errorf("within 5 s the store was read %d times, want once", loads)
		}
		pass(1)
		if got := reg.Recipients(t.Context()); names(got.Devices) != "phone" {
			t.Errorf("after 5 s: got %v", got)
		}
	})
}

// What a person has just seen on a node, the node's next alert goes by.
func TestAlertsKnowWhateverTheNodeReads(t *testing.T) {
	list := func(t *testing.T, reg *pairing.Registry) {
		if _, err := reg.Devices(t.Context()); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		name   string
		others func(store *memoryStore) // what happens on another node
		read   func(*testing.T, *pairing.Registry)
		want   string
	}{
		{"a phone paired elsewhere is listed", func(s *memoryStore) {
			s.snapshot.Devices = append(s.snapshot.Devices, newDevice("2", "tablet"))
		}, list, "phone tablet"},
		{"a phone revoked elsewhere is not listed", func(s *memoryStore) { s.snapshot.Devices = nil }, list, ""},
		{"a phone revoked elsewhere is asked for", func(s *memoryStore) { s.snapshot.Devices = nil },
			func(t *testing.T, reg *pairing.Registry) {
				if _, err := reg.Device(t.Context(), "1"); err != pairing.ErrUnknownDevice {
					t.Error(err)
				}
			}, ""},
		{"a phone revoked elsewhere is revoked here", func(s *memoryStore) { s.snapshot.Devices = nil },
			func(t *testing.T, reg *pairing.Registry) {
				if err := reg.Revoke(t.Context(), "1"); err != pairing.ErrUnknownDevice {
					t.Error(err)
				}
			}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &memoryStore{}
				reg, _ := newRegistry(store)
				pair(t, store, newDevice("1", "phone"))
				reg.Recipients(t.Context())
				store.set(func() { c.others(store) })
				if got := reg.Recipients(t.Context()); names(got.Devices) != "phone" {
					t.Fatalf("before: got %v", got)
				}
				c.read(t, reg)
				if got := reg.Recipients(t.Context()); names(got.Devices) != c.want {
					t.Errorf("got %v, want %q", got, c.want)
				}
			})
		})
	}
}

func TestARepairedStoreThatWasListedIsNotLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{err: errors.New("no route to host")}
		reg, log := newRegistry(store)
		reg.Recipients(t.Context())
		store.set(func() { store.err = nil })
		pair(t, store, newDevice("1", "phone"))
		if _, err := reg.Devices(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := reg.Recipients(t.Context()); names(got.Devices) != "phone" || got.Err != nil {
			t.Errorf("got %v", got)
		}
		if got := log.take(); strings.Count(got, "registry available again") != 1 {
			t.Errorf("logged\n%s", got)
		}
	})
}

// A read that another one overtook is no reason to forget what that one found.
func TestAnOvertakenReadIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{}
		reg, _ := newRegistry(store)
		pair(t, store, newDevice("1", "phone"))
		reg.Recipients(t.Context())
		store.set(func() {
			store.onLoad = func() { // has read one phone, and is overtaken by a pairing elsewhere and a listing
				store.set(func() { store.onLoad = nil })
				pass(time.Second)
				pair(t, store, newDevice("2", "tablet"))
				if _, err := reg.Devices(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
		if devices, err := reg.Devices(t.Context()); err != nil || names(devices) != "phone" {
			t.Fatalf("got %v, %v", devices, err)
		}
		store.set(func() { store.err = errors.New("no route to host") }) // so that the copy is all there is
		if got := reg.Recipients(t.Context()); names(got.Devices) != "phone tablet" {
			t.Errorf("got %v", got)
		}
	})
}

// Of two reads at the same time either may be the older: the next alert must not rest on a guess.
func TestAlertsAskAgainAfterReadsAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{}
		reg, _ := newRegistry(store)
		pair(t, store, newDevice("1", "phone"))
		reg.Recipients(t.Context())
		hang := make(chan struct{})
		store.set(func() { store.hang = hang })
		var first sync.WaitGroup
		first.Go(func() { // begins, and reads only when the second read has
			if devices, err := reg.Devices(t.Context()); err != nil || names(devices) != "phone tablet" {
				t.Errorf("the first read: got %v, %v", devices, err)
			}
		})
		pass(time.Second)
		store.set(func() {
			store.hang = nil
			store.onLoad = func() {
				store.set(func() { store.onLoad = nil })
				pair(t, store, newDevice("2", "tablet")) // by another node
				close(hang)
				first.Wait()
			}
		})
		if devices, err := reg.Devices(t.Context()); err != nil || names(devices) != "phone" {
			t.Fatalf("the second read: got %v, %v", devices, err)
		}
		if got := reg.Recipients(t.Context()); names(got.Devices) != "phone tablet" {
			t.Errorf("got %v", got)
		}
	})
}

// A listing that the store answers late must not bring back a phone that was revoked here meanwhile.
func TestALateListingDoesNotUndoAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{}
		reg, _ := newRegistry(store)
		pair(t, store, newDevice("1", "phone"))
		reg.Recipients(t.Context())
		store.set(func() {
			store.onLoad = func() {
				store.set(func() { store.onLoad = nil })
				if err := reg.Revoke(t.Context(), "1"); err != nil {
					t.Error(err)
				}
			}
		})
		if _, err := reg.Devices(t.Context()); err != nil {
			t.Fatal(err)
		}
		store.set(func() { store.err = errors.New("no route to host") }) // so that the copy is all there is
		if got := reg.Recipients(t.Context()); len(got.Devices) != 0 {
			t.Errorf("got %v", got)
		}
	})
}

// When nobody knows what became of a pairing, the store does.
func TestAlertsAskAgainAfterAPairingWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{}
		reg, _ := newRegistry(store)
		pair(t, store, newDevice("1", "phone"))
		reg.Recipients(t.Context())
		hang := make(chan struct{})
		store.set(func() { store.onLoad = func() { store.set(func() { store.onLoad, store.hang = nil, hang }) } })
		if _, _, err := reg.Pair(t.Context(), request("tablet"), ""); !errors.Is(err, pairing.ErrUnavailable) {
			t.Fatalf("got %v", err)
		}
		store.set(func() { store.hang = nil })
		close(hang)
		synctest.Wait()
		if got := reg.Recipients(t.Context()); len(got.Devices) != 2 {
			t.Errorf("got %v", got)
		}
	})
}
