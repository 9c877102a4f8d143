package pairing_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// memoryStore is a store that can be told to fail or to hang. It counts how often it is asked.
type memoryStore struct {
	mu       sync.Mutex
	snapshot pairing.Snapshot
	err      error         // of every call
	saltErr  error         // of EnsureSalt
	hang     chan struct{} // calls wait until it is closed, whatever their context says
	onLoad   func()        // called once Load has read, before it returns
	loads    int
	inFlight int
}

func (s *memoryStore) enter() (leave func(), err error) {
	s.mu.Lock()
	if hang := s.hang; hang != nil {
		s.inFlight++
		s.mu.Unlock()
		<-hang
		s.mu.Lock()
		s.inFlight--
	}
	return s.mu.Unlock, s.err
}

func (s *memoryStore) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *memoryStore) counts() (loads, inFlight int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.loads, s.inFlight
}

func (s *memoryStore) Load(context.Context) (pairing.Snapshot, error) {
	s.set(func() { s.loads++ })
	leave, err := s.enter()
	snap := s.snapshot
	snap.Devices = slices.Clone(snap.Devices)
	onLoad := s.onLoad
	leave()
	if onLoad != nil {
		onLoad()
	}
	return snap, err
}

func (s *memoryStore) Pair(_ context.Context, d pairing.Device) (pairing.Device, bool, error) {
	leave, err := s.enter()
	defer leave()
	if err != nil {
		return pairing.Device{}, false, err
	}
	for i, have := range s.snapshot.Devices {
		if have.PublicKey == d.PublicKey {
			have.Name, have.Platform, have.PushToken = d.Name, d.Platform, d.PushToken
			have.UpdatedAt, have.UpdatedBy = d.UpdatedAt, d.UpdatedBy
			s.snapshot.Devices[i] = have
			return have, false, nil
		}
	}
	s.snapshot.Devices = append(s.snapshot.Devices, d)
	return d, true, nil
}

func (s *memoryStore) Revoke(_ context.Context, id string) error {
	leave, err := s.enter()
	defer leave()
	n := len(s.snapshot.Devices)
	s.snapshot.Devices = slices.DeleteFunc(s.snapshot.Devices, func(d pairing.Device) bool { return d.ID == id })
	if err == nil && len(s.snapshot.Devices) == n {
		return pairing.ErrUnknownDevice
	}
	return err
}

func (s *memoryStore) EnsureSalt(_ context.Context, candidate secret.Text) (secret.Text, error) {
	leave, err := s.enter()
	defer leave()
	if err = errors.Join(err, s.saltErr); err != nil {
		return secret.Text{}, err
	}
	if s.snapshot.Salt.IsZero() {
		s.snapshot.Salt = candidate
	}
	return s.snapshot.Salt, nil
}

// logBuffer collects log lines.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// take returns what was logged since the last take.
func (b *logBuffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.buf.Reset()
	return b.buf.String()
}

func newRegistry(store pairing.Store, opts ...pairing.RegistryOption) (*pairing.Registry, *logBuffer) {
	log := new(logBuffer)
	opts = append(opts, pairing.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	reg, err := pairing.NewRegistry(store, opts...)
	if err != nil {
		panic(err)
	}
	return reg, log
}

func handlerOver(t *testing.T, reg *pairing.Registry, test pairing.Tester, opts ...pairing.HandlerOption) http.Handler {
	t.Helper()
	handler, err := pairing.Handler(reg, test, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

func request(name string) pairing.Request {
	return pairing.Request{Name: name, Platform: "ios", PushToken: secret.New("token-of-" + name), PublicKey: seal.GenerateKey().Public()}
}

func names(devices []pairing.Device) string {
	var list []string
	for _, d := range devices {
		list = append(list, d.Name)
	}
	return strings.Join(list, " ")
}

func TestRegistryPairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		reg, _ := newRegistry(&memoryStore{})
		req := request("phone")
		first, created, err := reg.Pair(ctx, req, "parker")
		if err != nil || !created {
			t.Fatalf("got created %v, error %v", created, err)
		}
		if len(first.ID) != 16 || strings.Trim(first.ID, "0123456789abcdef") != "" {
			t.Errorf("id %q is not 16 hex digits", first.ID)
		}
		if first.CreatedBy != "parker" || !first.CreatedAt.Equal(time.Now()) {
			t.Errorf("created by %q at %v", first.CreatedBy, first.CreatedAt)
		}
		pass(time.Hour)
		req.Name, req.PushToken = " renamed ", secret.New("new token")
		second, created, err := reg.Pair(ctx, req, "somebody else")
		if err != nil || created {
			t.Fatalf("pair again: got created %v, error %v", created, err)
		}
		want := first
		want.Name, want.PushToken = "renamed", req.PushToken
		want.UpdatedAt, want.UpdatedBy = time.Now().UTC(), "somebody else"
		if !reflect.DeepEqual(second, want) {
			t.Errorf("got %v, want %v", second, want)
		}
		if _, _, err := reg.Pair(ctx, request("tablet"), ""); err != nil {
			t.Fatal(err)
		}
		devices, err := reg.Devices(ctx)
		if err != nil || names(devices) != "renamed tablet" {
			t.Errorf("got %v, %v", devices, err)
		}
		if d, err := reg.Device(ctx, first.ID); err != nil || !reflect.DeepEqual(d, want) {
			t.Errorf("got %v, %v", d, err)
		}
		if err := reg.Revoke(ctx, first.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := reg.Device(ctx, first.ID); err != pairing.ErrUnknownDevice {
			t.Errorf("a revoked device: %v", err)
		}
		if err := reg.Revoke(ctx, first.ID); err != pairing.ErrUnknownDevice {
			t.Errorf("revoke twice: %v", err)
		}
	})
}

func TestRegistryRefusesABadRequest(t *testing.T) {
	store := &memoryStore{}
	reg, _ := newRegistry(store)
	for field, change := range map[string]func(*pairing.Request){
		"name":      func(r *pairing.Request) { r.Name = " " },
		"platform":  func(r *pairing.Request) { r.Platform = strings.Repeat("x", 33) },
		"pushToken": func(r *pairing.Request) { r.PushToken = secret.New("\xff") },
		"publicKey": func(r *pairing.Request) { r.PublicKey = seal.PublicKey{} },
	} {
		req := request("phone")
		change(&req)
		_, _, err := reg.Pair(t.Context(), req, "")
		if fe, ok := errors.AsType[*pairing.FieldError](err); !ok || fe.Field != field {
			t.Errorf("got %v, want a FieldError about %s", err, field)
		}
	}
	if len(store.snapshot.Devices) != 0 {
		t.Error("one of them was stored")
	}
}

func TestRecipientsAreAMinuteOldAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{}
		reg, _ := newRegistry(store)
		pair(t, store, newDevice("1", "phone"))
		if got := reg.Recipients(t.Context()); names(got.Devices) != "phone" || got.Err != nil {
			t.Fatalf("got %v", got)
		}
		pair(t, store, newDevice("2", "tablet")) // by another node
		pass(time.Minute)
		if got := reg.Recipients(t.Context()); names(got.Devices) != "phone" {
			t.Errorf("after 60 s: got %v, want the copy", got)
		}
		pass(1)
		if got := reg.Recipients(t.Context()); names(got.Devices) != "phone tablet" {
			t.Errorf("after 60 s and 1 ns: got %v, want what is stored", got)
		}
		if loads, _ := store.counts(); loads != 2 {
			t.Errorf("the store was read %d times, want 2", loads)
		}
	})
}

func TestRecipientsFollowOwnWritesAtOnce(t *testing.T) {
	reg, _ := newRegistry(&memoryStore{})
	ctx := t.Context()
	reg.Recipients(ctx)
	d, _, err := reg.Pair(ctx, request("phone"), "")
	if err != nil {
		t.Fatal(err)
	}
	if got := reg.Recipients(ctx); names(got.Devices) != "phone" {
		t.Errorf("after pairing: %v", got)
	}
	if err := reg.Revoke(ctx, d.ID); err != nil {
		t.Fatal(err)
	}
	if got := reg.Recipients(ctx); names(got.Devices) != "" {
		t.Errorf("after revoking: %v", got)
	}
}

// A read that began before this process wrote must not bring back what the write changed.
func TestRecipientsReadAgainWhenAWriteOvertakesTheRead(t *testing.T) {
	store := &memoryStore{}
	reg, _ := newRegistry(store)
	store.onLoad = func() {
		store.set(func() { store.onLoad = nil })
		if _, _, err := reg.Pair(t.Context(), request("phone"), ""); err != nil {
			t.Error(err)
		}
	}
	if got := reg.Recipients(t.Context()); names(got.Devices) != "phone" || got.Err != nil {
		t.Errorf("got %v", got)
	}
}

func TestAHangingStoreCostsABurstOneWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{}
		reg, log := newRegistry(store)
		pair(t, store, newDevice("1", "phone"))
		reg.Recipients(t.Context())
		pass(2 * time.Minute)
		hang := make(chan struct{})
		store.set(func() { store.hang = hang })
		log.take()

		start := time.Now()
		check := func(what string, wantWait time.Duration) {
			t.Helper()
			asked := time.Now()
			got := reg.Recipients(t.Context())
			if names(got.Devices) != "phone" || !errors.Is(got.Err, pairing.ErrUnavailable) {
				t.Errorf("%s: got %v, want the last-known phone and ErrUnavailable", what, got)
			}
			if wait := time.Since(asked); wait != wantWait {
				t.Errorf("%s: waited %v, want %v", what, wait, wantWait)
			}
		}
		var burst sync.WaitGroup
		for i := range 50 {
			burst.Go(func() {
				pass(time.Duration(i%5) * time.Second)
				check("burst", max(0, 2*time.Second-time.Since(start)))
			})
		}
		burst.Wait()
		pass(10*time.Second - time.Since(start)) // when the read is given up
		synctest.Wait()
		if got := log.take(); strings.Count(got, `msg="registry unavailable`) != 1 || strings.Contains(got, "no phone") {
			t.Errorf("logged\n%s", got)
		}
		pass(5*time.Second - 1)
		check("just before the quiet time ends", 0)
		pass(1)
		check("after the quiet time", 2*time.Second)

		t.Log("a store that never returns does not gather goroutines")
		for range 100 {
			pass(15 * time.Second)
			reg.Recipients(t.Context())
			if _, err := reg.Devices(t.Context()); !errors.Is(err, pairing.ErrUnavailable) {
				t.Errorf("Devices: %v", err)
			}
		}
		if _, inFlight := store.counts(); inFlight > 4 {
			t.Errorf("%d calls are in flight", inFlight)
		}
		log.take()
		store.set(func() { store.hang = nil })
		close(hang)
		pass(15 * time.Second)
		if got := reg.Recipients(t.Context()); got.Err != nil || names(got.Devices) != "phone" {
			t.Errorf("after it came back: %v", got)
		}
		if got := log.take(); !strings.Contains(got, "registry available again") {
			t.Errorf("logged\n%s", got)
		}
	})
}

func TestAFailingStoreIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("no route to host")
		store := &memoryStore{err: cause}
		reg, log := newRegistry(store)
		for range 10 {
			if got := reg.Recipients(t.Context()); !errors.Is(got.Err, cause) || !errors.Is(got.Err, pairing.ErrUnavailable) || got.Salt.IsZero() {
				t.Errorf("got %+v", got)
			}
		}
		if loads, _ := store.counts(); loads != 1 {
			t.Errorf("the store was asked %d times, want once", loads)
		}
		if got := log.take(); !strings.Contains(got, "registry unavailable") || !strings.Contains(got, "collapse salt") {
			t.Errorf("logged\n%s", got)
		}
		store.set(func() { store.err = nil })
		pass(5 * time.Second)
		if got := reg.Recipients(t.Context()); got.Err != nil {
			t.Errorf("after it came back: %v", got.Err)
		}
	})
}

func TestAStoreThatPanicsIsUnavailable(t *testing.T) {
	store := &memoryStore{onLoad: func() { panic("index out of range") }}
	reg, log := newRegistry(store)
	if got := reg.Recipients(t.Context()); !errors.Is(got.Err, pairing.ErrUnavailable) || got.Salt.IsZero() {
		t.Errorf("got %v", got)
	}
	if got := log.take(); !strings.Contains(got, "index out of range") || !strings.Contains(got, "registry_test.go") { // where it was
		t.Errorf("logged\n%s", got)
	}
	for range 10 { // more often than there may be calls in flight
		if _, err := reg.Devices(t.Context()); !errors.Is(err, pairing.ErrUnavailable) {
			t.Errorf("Devices: %v", err)
		}
	}
}

func TestPeopleAlwaysAskTheStore(t *testing.T) {
	cause := errors.New("no route to host")
	store := &memoryStore{}
	reg, _ := newRegistry(store)
	pair(t, store, newDevice("1", "phone"))
	reg.Recipients(t.Context())
	store.set(func() { store.err = cause })
	_, listErr := reg.Devices(t.Context())
	_, deviceErr := reg.Device(t.Context(), "1")
	_, _, pairErr := reg.Pair(t.Context(), request("tablet"), "")
	for call, err := range map[string]error{"Devices": listErr, "Device": deviceErr, "Pair": pairErr, "Revoke": reg.Revoke(t.Context(), "1")} {
		if !errors.Is(err, pairing.ErrUnavailable) || !errors.Is(err, cause) {
			t.Errorf("%s: got %v", call, err)
		}
	}
}

func TestRecipientsEndWithTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		reg, _ := newRegistry(&memoryStore{hang: hang})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		got := reg.Recipients(ctx)
		if time.Since(start) != time.Second || !errors.Is(got.Err, context.DeadlineExceeded) || !errors.Is(got.Err, pairing.ErrUnavailable) {
			t.Errorf("after %v: %v", time.Since(start), got.Err)
		}
		close(hang)
		if got := reg.Recipients(t.Context()); got.Err != nil {
			t.Errorf("the read it began was given up: %v", got.Err)
		}
	})
}

func TestSalt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		store := &memoryStore{saltErr: errors.New("read-only file system")}
		reg, log := newRegistry(store)
		pair(t, store, newDevice("1", "phone"))
		got := reg.Recipients(ctx)
		own := got.Salt.Reveal()
		if len(own) != 32 || got.Err != nil || names(got.Devices) != "phone" {
			t.Fatalf("without a salt: %+v", got)
		}
		if got := log.take(); strings.Count(got, "cannot coalesce") != 1 || strings.Contains(got, own) {
			t.Errorf("logged\n%s", got)
		}
		pass(2 * time.Minute)
		if reg.Salt(ctx).Reveal() != own || strings.Contains(log.take(), "cannot coalesce") {
			t.Error("the salt changed, or was told of twice")
		}

		t.Log("another node's salt wins")
		store.set(func() { store.snapshot.Salt = secret.New("of another node") })
		pass(2 * time.Minute)
		if got := reg.Salt(ctx).Reveal(); got != "of another node" {
			t.Errorf("got %q", got)
		}

		t.Log("the fleet's salt outlives the store's loss of it")
		store.set(func() { store.snapshot.Salt = secret.Text{}; store.saltErr = nil })
		pass(2 * time.Minute)
		if got := reg.Salt(ctx).Reveal(); got != "of another node" || store.snapshot.Salt.Reveal() != got {
			t.Errorf("got %q, stored %q", got, store.snapshot.Salt.Reveal())
		}
	})
}

func TestSkippedDevicesAreToldOfOnce(t *testing.T) {
	store := &memoryStore{snapshot: pairing.Snapshot{Devices: []pairing.Device{{ID: "7", Suite: seal.X25519,
		Unusable: errors.New("device 7 has a low-order key")}}}}
	reg, log := newRegistry(store)
	for range 3 {
		reg.Recipients(t.Context())
		if _, err := reg.Devices(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := log.take(); strings.Count(got, "device 7") != 1 {
		t.Errorf("logged\n%s", got)
	}
}

func TestRegistryUnderConcurrency(t *testing.T) {
	reg, _ := newRegistry(&memoryStore{})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				d, _, err := reg.Pair(t.Context(), request(fmt.Sprint(i, "-", j)), "")
				if err != nil {
					t.Error(err)
				}
				reg.Recipients(t.Context())
				if err := reg.Revoke(t.Context(), d.ID); err != nil {
					t.Error(err)
				}
				runtime.Gosched()
			}
		})
	}
	wg.Wait()
	if got := reg.Recipients(t.Context()); len(got.Devices) != 0 || got.Err != nil {
		t.Errorf("left: %v", got)
	}
}

// pass lets time go by, inside a synctest bubble.
func pass(d time.Duration) { <-time.After(d) }
