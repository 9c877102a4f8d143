// Package storetest holds any [pairing.Store] to what a registry relies on. A test of your own store is a few lines:
//
//	func TestRedisStore(t *testing.T) {
//		storetest.Run(t, storetest.Backend{
//			New: func(t *testing.T) string { return newEmptyDatabase(t) },
//			Open: func(t *testing.T, place string) pairing.Store { return redisstore.Open(place) },
//		})
//	}
//
// The suite runs the test binary again, to see several processes share one place. Run it with -race as well.
package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// Backend says how to get at the stores under test. Several goroutines call its functions.
type Backend struct {
	// New makes an empty place to keep a registry in, which t's cleanup removes, and returns what Open needs to find it
	// from another process: a path or a connection string, for instance.
	New func(t *testing.T) string

	// Open opens a store at a place, as a node of a fleet does. It is called many times for one place, also by several
	// goroutines at once and in other processes, where New was not called.
	Open func(t *testing.T, place string) pairing.Store
}

// Run runs the suite over one backend. Call it at most once in a test function, and before anything that must not
// happen in the processes it starts, which run the same test function up to here.
func Run(t *testing.T, b Backend) {
	if work, ok := childJob(t); ok {
		runChild(t, b, work)
		return
	}
	for _, c := range []struct {
		name string
		run  func(*testing.T, Backend)
	}{
		{"empty", testEmpty},
		{"pair keeps every field", testPair},
		{"pair again updates in place", testPairAgain},
		{"revoke", testRevoke},
		{"a revoked phone can pair again", testPairAfterRevoke},
		{"salt", testSalt},
		{"a snapshot is the caller's", testSnapshotIsACopy},
		{"an ended context changes nothing", testContext},
		{"many nodes meet an empty place at once", testFirstUse},
		{"many writers in many processes", testProcesses},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, b) })
	}
}

func testEmpty(t *testing.T, b Backend) {
	s := b.Open(t, b.New(t))
	snap := load(t, s)
	if len(snap.Devices) != 0 || !snap.Salt.IsZero() {
		t.Errorf("got %+v, want nothing", snap)
	}
	if err := s.Revoke(t.Context(), newID()); !errors.Is(err, pairing.ErrUnknownDevice) {
		t.Errorf("Revoke: got %v, want ErrUnknownDevice", err)
	}
}

func testPair(t *testing.T, b Backend) {
	place := b.New(t)
	s, other := b.Open(t, place), b.Open(t, place)
	var want []pairing.Device
	for _, change := range []func(*pairing.Device){
		func(d *pairing.Device) {},
		func(d *pairing.Device) { d.CreatedBy, d.UpdatedBy = "", "" },
		func(d *pairing.Device) { d.Suite, d.PublicKey = seal.XWing, seal.XWing.GenerateKey().Public() },
		func(d *pairing.Device) { d.Name, d.Platform = "tablette d'été \"🚀\" <&>\\", "Ünïx\t\u2028" },
		func(d *pairing.Device) {
			d.Name, d.Platform = strings.Repeat("é", 64), strings.Repeat("😀", 32)
			d.PushToken = secret.New(strings.Repeat("😀", 512))
		},
		func(d *pairing.Device) { d.CreatedAt = d.CreatedAt.AddDate(-1, 0, 0) },
		func(d *pairing.Device) { d.PushToken = want[0].PushToken }, // one phone, reinstalled: a new key, the same token
	} {
		d := newDevice("phone")
		change(&d)
		stored, created, err := s.Pair(t.Context(), d)
		if err != nil || !created {
			t.Fatalf("Pair: created %v, error %v", created, err)
		}
		checkDevices(t, "Pair", []pairing.Device{stored}, d)
		want = append(want, d)
	}
	checkDevices(t, "the same node", load(t, s).Devices, want...)
	checkDevices(t, "another node", load(t, other).Devices, want...)
}

func testPairAgain(t *testing.T, b Backend) {
	place := b.New(t)
	s, other := b.Open(t, place), b.Open(t, place)
	bystander, first := pair(t, s, newDevice("bystander")), pair(t, s, newDevice("phone"))

	again := newDevice("renamed")
	again.PublicKey, again.Platform, again.PushToken = first.PublicKey, "android", secret.New("another token")
	again.CreatedAt, again.CreatedBy = first.CreatedAt.Add(time.Hour), "somebody else"
	again.UpdatedAt, again.UpdatedBy = first.UpdatedAt.Add(time.Hour), ""
	want := first
	want.Name, want.Platform, want.PushToken = again.Name, again.Platform, again.PushToken
	want.UpdatedAt, want.UpdatedBy = again.UpdatedAt, again.UpdatedBy

	stored, created, err := other.Pair(t.Context(), again)
	if err != nil || created {
		t.Fatalf("Pair: created %v, error %v", created, err)
	}
	checkDevices(t, "Pair", []pairing.Device{stored}, want)
	checkDevices(t, "Load", load(t, s).Devices, bystander, want)
}

func testRevoke(t *testing.T, b Backend) {
	place := b.New(t)
	s, other := b.Open(t, place), b.Open(t, place)
	stays, goes := pair(t, s, newDevice("stays")), pair(t, s, newDevice("goes"))
	if err := other.Revoke(t.Context(), goes.ID); err != nil {
		t.Fatal(err)
	}
	checkDevices(t, "Load", load(t, s).Devices, stays)
	if err := s.Revoke(t.Context(), goes.ID); !errors.Is(err, pairing.ErrUnknownDevice) {
		t.Errorf("revoke twice: got %v, want ErrUnknownDevice", err)
	}
	if err := s.Revoke(t.Context(), ""); !errors.Is(err, pairing.ErrUnknownDevice) {
		t.Errorf("revoke an empty id: got %v, want ErrUnknownDevice", err)
	}
}

func testPairAfterRevoke(t *testing.T, b Backend) {
	s := b.Open(t, b.New(t))
	first := pair(t, s, newDevice("phone"))
	if err := s.Revoke(t.Context(), first.ID); err != nil {
		t.Fatal(err)
	}
	second := first
	second.ID, second.CreatedBy = newID(), "somebody else"
	if _, created, err := s.Pair(t.Context(), second); err != nil || !created {
		t.Fatalf("Pair: created %v, error %v", created, err)
	}
	checkDevices(t, "Load", load(t, s).Devices, second)
}

func testSalt(t *testing.T, b Backend) {
	place := b.New(t)
	s, other := b.Open(t, place), b.Open(t, place)
	for node, store := range map[string]pairing.Store{"one node": s, "another": other, "the first again": s} {
		got, err := store.EnsureSalt(t.Context(), secret.New("candidate of "+node))
		if err != nil || !strings.HasPrefix(got.Reveal(), "candidate of ") {
			t.Fatalf("%s: got %q, %v", node, got.Reveal(), err)
		}
		if stored := load(t, s).Salt; !stored.Equal(got) || !load(t, other).Salt.Equal(got) {
			t.Errorf("%s: got %q, stored is %q", node, got.Reveal(), stored.Reveal())
		}
	}
	salt := load(t, s).Salt
	d := pair(t, other, newDevice("phone"))
	if err := other.Revoke(t.Context(), d.ID); err != nil {
		t.Fatal(err)
	}
	if got := load(t, s).Salt; !got.Equal(salt) {
		t.Errorf("after pairing and revoking the salt is %q, want %q", got.Reveal(), salt.Reveal())
	}
}

func testSnapshotIsACopy(t *testing.T, b Backend) {
	s := b.Open(t, b.New(t))
	d := pair(t, s, newDevice("phone"))
	load(t, s).Devices[0].Name = "scribbled over"
	checkDevices(t, "Load", load(t, s).Devices, d)
}

func testContext(t *testing.T, b Backend) {
	s := b.Open(t, b.New(t))
	d := pair(t, s, newDevice("phone"))
	salt := load(t, s).Salt
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, loadErr := s.Load(ctx)
	_, _, pairErr := s.Pair(ctx, newDevice("never paired"))
	_, saltErr := s.EnsureSalt(ctx, secret.New("never stored"))
	for call, err := range map[string]error{
		"Load": loadErr, "Pair": pairErr, "EnsureSalt": saltErr, "Revoke": s.Revoke(ctx, d.ID)} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want an error that wraps context.Canceled", call, err)
		}
	}
	snap := load(t, s)
	checkDevices(t, "Load", snap.Devices, d)
	if !snap.Salt.Equal(salt) {
		t.Error("a salt was stored")
	}
}

// testFirstUse has many nodes come to an empty place together: it is set up once, and they agree on one salt.
func testFirstUse(t *testing.T, b Backend) {
	const nodes = 8
	place := b.New(t)
	salts := make([]string, nodes)
	var start, done sync.WaitGroup
	start.Add(nodes)
	for i := range nodes {
		s := b.Open(t, place)
		done.Go(func() {
			start.Done()
			start.Wait()
			salt, err := s.EnsureSalt(t.Context(), secret.New(newID()))
			if err != nil {
				t.Errorf("EnsureSalt: %v", err)
			}
			salts[i] = salt.Reveal()
			if _, _, err := s.Pair(t.Context(), newDevice("phone")); err != nil {
				t.Errorf("Pair: %v", err)
			}
		})
	}
	done.Wait()
	snap := load(t, b.Open(t, place))
	if len(slices.Compact(salts)) != 1 || salts[0] == "" || snap.Salt.Reveal() != salts[0] {
		t.Errorf("the nodes got the salts %q, stored is %q", salts, snap.Salt.Reveal())
	}
	if len(snap.Devices) != nodes {
		t.Errorf("%d devices are paired, want %d", len(snap.Devices), nodes)
	}
}

func load(t *testing.T, s pairing.Store) pairing.Snapshot {
	t.Helper()
	snap, err := s.Load(t.Context())
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return snap
}

func pair(t *testing.T, s pairing.Store, d pairing.Device) pairing.Device {
	t.Helper()
	stored, _, err := s.Pair(t.Context(), d)
	if err != nil {
		t.Fatalf("Pair: %v", err)
	}
	return stored
}

// newDevice is a device with a key and an id of its own, as a Registry hands it to a store.
func newDevice(name string) pairing.Device {
	id := newID()
	return pairing.Device{ID: id, Name: name, Platform: "ios", PushToken: secret.New("token-" + id),
		Suite: seal.X25519, PublicKey: seal.GenerateKey().Public(),
		CreatedAt: time.Date(2026, 7, 23, 14, 0, 0, 0, time.UTC), CreatedBy: "parker",
		UpdatedAt: time.Date(2026, 7, 24, 14, 0, 0, 0, time.UTC), UpdatedBy: "quinn"}
}

// checkDevices compares two sets of devices. It spells them out, tokens and all, where a Device would print less.
func checkDevices(t *testing.T, where string, got []pairing.Device, want ...pairing.Device) {
	t.Helper()
	spell := func(devices []pairing.Device) string {
		var lines []string
		for _, d := range devices {
			lines = append(lines, fmt.Sprintf("%s %q %q %q %s %s %s %q %s %q", d.ID, d.Name, d.Platform, d.PushToken.Reveal(),
				d.Suite, d.PublicKey, d.CreatedAt.Format(time.RFC3339Nano), d.CreatedBy, d.UpdatedAt.Format(time.RFC3339Nano), d.UpdatedBy))
		}
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	if got, want := spell(got), spell(want); got != want {
		t.Errorf("%s: got\n%s\nwant\n%s", where, got, want)
	}
}
