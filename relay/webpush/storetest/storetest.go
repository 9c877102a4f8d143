// Package storetest tests a [webpush.Store]:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) func(t *testing.T) webpush.Store {
//			name := newDatabase(t)
//			return func(t *testing.T) webpush.Store { return openStore(t, name) }
//		})
//	}
package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relay/webpush"
	"github.com/sealpush/sealpush/secret"
)

// Run runs every test on an empty store: newStore is called once for each, and what it returns opens the store, as
// often as relays share it. What it opens it closes in t's Cleanup.
func Run(t *testing.T, newStore func(t *testing.T) (open func(t *testing.T) webpush.Store)) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, open func(t *testing.T) webpush.Store)
	}{
		{"KeepsASubscription", keeps},
		{"ReplacesASubscription", replaces},
		{"EndsASubscription", ends},
		{"EndsNoOtherSubscription", endsNoOther},
		{"Deletes", deletes},
		{"HasALimit", hasALimit},
		{"MakesRoomOfTheEnded", makesRoom},
		{"KnowsNoOther", knowsNoOther},
		{"IsShared", isShared},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newStore(t)) })
	}
}

var start = time.Unix(1_800_000_000, 0)

// stored is the n-th of many.
func stored(n int) webpush.Stored {
	return webpush.Stored{
		Device: fmt.Sprintf("%064x", n), SecretHash: fmt.Sprintf("%064x", n+1000), Updated: start,
		Subscription: webpush.Subscription{
			Endpoint: secret.New(fmt.Sprintf("https://push.example.com/%d", n)),
			P256DH:   fmt.Sprintf("key-%d", n),
			Auth:     secret.New(fmt.Sprintf("auth-%d", n)),
		},
	}
}

func add(t *testing.T, s webpush.Store, kept webpush.Stored, limit int) {
	t.Helper()
	if err := s.Add(t.Context(), kept, limit); err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, s webpush.Store, want webpush.Stored) {
	t.Helper()
	got, err := s.Get(t.Context(), want.Device)
	if err != nil {
		t.Fatal(err)
	}
	same := got.Device == want.Device && got.SecretHash == want.SecretHash && got.Updated.Equal(want.Updated) &&
		got.Subscription.P256DH == want.Subscription.P256DH &&
		got.Subscription.Endpoint.Equal(want.Subscription.Endpoint) && got.Subscription.Auth.Equal(want.Subscription.Auth)
	if !same {
		t.Errorf("kept %+v, want %+v", got, want)
	}
}

func keeps(t *testing.T, open func(t *testing.T) webpush.Store) {
	first := open(t)
	for n := range 3 {
		add(t, first, stored(n), 10)
	}
	again := open(t)
	for n := range 3 {
		want(t, again, stored(n))
	}
}

func replaces(t *testing.T, open func(t *testing.T) webpush.Store) {
	s := open(t)
	add(t, s, stored(1), 10)
	add(t, s, stored(2), 10)
	later := start.Add(time.Hour)
	if err := s.Replace(t.Context(), stored(1).Device, stored(3).Subscription, later); err != nil {
		t.Fatal(err)
	}
	replaced := stored(1)
	replaced.Subscription, replaced.Updated = stored(3).Subscription, later
	want(t, s, replaced)
	want(t, s, stored(2))
}

func ends(t *testing.T, open func(t *testing.T) webpush.Store) {
	s := open(t)
	add(t, s, stored(1), 10)
	add(t, s, stored(2), 10)
	later := start.Add(time.Hour)
	for range 2 {
		if err := s.End(t.Context(), stored(1).Device, stored(1).Subscription.Endpoint, later); err != nil {
			t.Fatal(err)
		}
	}
	ended := stored(1)
	ended.Subscription, ended.Updated = webpush.Subscription{}, later
	want(t, s, ended)
	want(t, s, stored(2))
	if got, err := s.Get(t.Context(), ended.Device); err != nil || !got.Ended() {
		t.Errorf("ended: %t, %v", got.Ended(), err)
	}
	if err := s.Replace(t.Context(), ended.Device, stored(3).Subscription, later); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Get(t.Context(), ended.Device); err != nil || got.Ended() {
		t.Errorf("after another came: ended %t, %v", got.Ended(), err)
	}
}

// A push service may say that a subscription is no more when the browser has already brought another one.
func endsNoOther(t *testing.T, open func(t *testing.T) webpush.Store) {
	s := open(t)
	add(t, s, stored(1), 10)
	if err := s.End(t.Context(), stored(1).Device, stored(2).Subscription.Endpoint, start); err != nil {
		t.Fatal(err)
	}
	want(t, s, stored(1))
}

func deletes(t *testing.T, open func(t *testing.T) webpush.Store) {
	s := open(t)
	add(t, s, stored(1), 10)
	add(t, s, stored(2), 10)
	if err := s.Delete(t.Context(), stored(1).Device); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Get(t.Context(), stored(1).Device); !errors.Is(err, webpush.ErrNotFound) {
		t.Errorf("a deleted one: %v", err)
	}
	want(t, s, stored(2))
}

func hasALimit(t *testing.T, open func(t *testing.T) webpush.Store) {
	s := open(t)
	for n := range 3 {
		add(t, s, stored(n), 3)
	}
	if err := s.Add(t.Context(), stored(3), 3); !errors.Is(err, webpush.ErrStoreFull) {
		t.Errorf("the fourth of three: %v", err)
	}
	if err := s.Delete(t.Context(), stored(0).Device); err != nil {
		t.Fatal(err)
	}
	add(t, s, stored(3), 3)
}

func makesRoom(t *testing.T, open func(t *testing.T) webpush.Store) {
	s := open(t)
	add(t, s, stored(1), 2)
	add(t, s, stored(2), 2)
	if err := s.End(t.Context(), stored(1).Device, stored(1).Subscription.Endpoint, start); err != nil {
		t.Fatal(err)
	}
	next := stored(3)
	next.Updated = start.Add(29 * 24 * time.Hour)
	if err := s.Add(t.Context(), next, 2); !errors.Is(err, webpush.ErrStoreFull) {
		t.Errorf("after 29 days: %v", err)
	}
	next.Updated = start.Add(31 * 24 * time.Hour)
	add(t, s, next, 2)
	want(t, s, next)
	want(t, s, stored(2)) // older, but alive
	if _, err := s.Get(t.Context(), stored(1).Device); !errors.Is(err, webpush.ErrNotFound) {
		t.Errorf("ended 31 days before: %v", err)
	}
}

func knowsNoOther(t *testing.T, open func(t *testing.T) webpush.Store) {
	s := open(t)
	if _, err := s.Get(t.Context(), stored(1).Device); !errors.Is(err, webpush.ErrNotFound) {
		t.Errorf("Get: %v", err)
	}
	if err := s.Replace(t.Context(), stored(1).Device, stored(1).Subscription, start); !errors.Is(err, webpush.ErrNotFound) {
		t.Errorf("Replace: %v", err)
	}
	if err := s.End(t.Context(), stored(1).Device, stored(1).Subscription.Endpoint, start); err != nil {
		t.Errorf("End: %v", err)
	}
	if err := s.Delete(t.Context(), stored(1).Device); !errors.Is(err, webpush.ErrNotFound) {
		t.Errorf("Delete: %v", err)
	}
}

// Relays that start together make the tables together, and lose nothing.
func isShared(t *testing.T, open func(t *testing.T) webpush.Store) {
	const relays, each = 4, 10
	var group sync.WaitGroup
	for relay := range relays {
		s := open(t)
		group.Go(func() {
			for n := range each {
				if err := s.Add(t.Context(), stored(relay*each+n), relays*each); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	s := open(t)
	for n := range relays * each {
		want(t, s, stored(n))
	}
}
