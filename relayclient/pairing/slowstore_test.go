package pairing_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/secret"
)

// noSaltStore reads well and hangs as soon as a salt is to be stored, as a database does of which only a replica is left.
type noSaltStore struct {
	memoryStore
	asked atomic.Int32
}

func (s *noSaltStore) EnsureSalt(ctx context.Context, _ secret.Text) (secret.Text, error) {
	s.asked.Add(1)
	<-ctx.Done()
	return secret.Text{}, ctx.Err()
}

func TestASaltThatCannotBeStoredCostsABurstOneWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &noSaltStore{}
		reg, log := newRegistry(store)
		pair(t, store, newDevice("1", "phone"))
		start := time.Now()
		var burst sync.WaitGroup
		for range 20 {
			burst.Go(func() {
				if got := reg.Recipients(t.Context()); names(got.Devices) != "phone" || len(got.Salt.Reveal()) != 32 || got.Err != nil {
					t.Errorf("got %v", got)
				}
			})
		}
		burst.Wait()
		if wait := time.Since(start); wait != 2*time.Second || store.asked.Load() != 1 {
			t.Errorf("asked %d times and waited %v, want once and 2 s", store.asked.Load(), wait)
		}
		pass(8 * time.Second) // when storing it is given up
		synctest.Wait()
		asked := time.Now()
		if got := reg.Recipients(t.Context()); names(got.Devices) != "phone" || time.Since(asked) != 0 {
			t.Errorf("the next alert: got %v after %v", got, time.Since(asked))
		}
		if got := log.take(); strings.Count(got, "cannot coalesce") != 1 || strings.Contains(got, `msg="registry unavailable`) {
			t.Errorf("logged\n%s", got)
		}
	})
}

// The age of the copy counts from before the read: what was written while the store took its time is missing in it.
func TestASlowReadIsAsOldAsItsBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{}
		reg, _ := newRegistry(store)
		pair(t, store, newDevice("1", "phone"))
		store.onLoad = func() {
			store.set(func() { store.onLoad = nil })
			pass(8 * time.Second)
		}
		start := time.Now()
		reg.Recipients(t.Context())
		pair(t, store, newDevice("2", "tablet")) // by another node
		pass(time.Minute + 1 - time.Since(start))
		if got := reg.Recipients(t.Context()); names(got.Devices) != "phone tablet" {
			t.Errorf("60 s and 1 ns after the read began: got %v, want what is stored", got)
		}
	})
}

func TestCreatedAtIsInWholeSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, _ := newRegistry(&memoryStore{})
		pass(1999 * time.Millisecond)
		d, _, err := reg.Pair(t.Context(), request("phone"), "")
		if want := time.Now().Truncate(time.Second); err != nil || !d.CreatedAt.Equal(want) || d.CreatedAt.Location() != time.UTC {
			t.Errorf("got %v, %v, want %v in UTC", d.CreatedAt, err, want)
		}
	})
}

// A registry file that was restored from nothing must not give the fleet's alerts new ids on this node.
func TestTheFleetsSaltStaysWhenTheStoreLosesIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{}
		store.snapshot.Salt = secret.New("of the fleet")
		reg, _ := newRegistry(store)
		reg.Recipients(t.Context())
		store.set(func() { store.snapshot.Salt = secret.Text{}; store.saltErr = errors.New("read-only file system") })
		pass(2 * time.Minute)
		if got := reg.Salt(t.Context()); got.Reveal() != "of the fleet" {
			t.Errorf("got %q", got)
		}
	})
}
