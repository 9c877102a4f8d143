package storetest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/pairing/storetest"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// faultyStore is a good store of which some methods are replaced.
type faultyStore struct {
	pairing.Store
	load   func(context.Context) (pairing.Snapshot, error)
	pair   func(context.Context, pairing.Device) (pairing.Device, bool, error)
	revoke func(context.Context, string) error
	salt   func(context.Context, secret.Text) (secret.Text, error)
}

func (s *faultyStore) Load(ctx context.Context) (pairing.Snapshot, error) {
	if s.load != nil {
		return s.load(ctx)
	}
	return s.Store.Load(ctx)
}

func (s *faultyStore) Pair(ctx context.Context, d pairing.Device) (pairing.Device, bool, error) {
	if s.pair != nil {
		return s.pair(ctx, d)
	}
	return s.Store.Pair(ctx, d)
}

func (s *faultyStore) Revoke(ctx context.Context, id string) error {
	if s.revoke != nil {
		return s.revoke(ctx, id)
	}
	return s.Store.Revoke(ctx, id)
}

func (s *faultyStore) EnsureSalt(ctx context.Context, candidate secret.Text) (secret.Text, error) {
	if s.salt != nil {
		return s.salt(ctx, candidate)
	}
	return s.Store.EnsureSalt(ctx, candidate)
}

var errBroken = errors.New("the store is broken")

// faults are mistakes that somebody who writes a store could make, each with the part of the suite that must find it.
var faults = []struct {
	name, found string
	make        func(good pairing.Store) *faultyStore
}{
	{"a salt out of nowhere", "empty", func(good pairing.Store) *faultyStore {
		return &faultyStore{load: func(ctx context.Context) (pairing.Snapshot, error) {
			snap, err := good.Load(ctx)
			snap.Salt = secret.New("built in")
			return snap, err
		}}
	}},
	{"a short column", "pair keeps every field", func(good pairing.Store) *faultyStore {
		return &faultyStore{pair: func(ctx context.Context, d pairing.Device) (pairing.Device, bool, error) {
			token := d.PushToken.Reveal()
			d.PushToken = secret.New(strings.ToValidUTF8(token[:min(255, len(token))], ""))
			return good.Pair(ctx, d)
		}}
	}},
	{"reads that fail", "empty", func(pairing.Store) *faultyStore {
		return &faultyStore{load: func(context.Context) (pairing.Snapshot, error) { return pairing.Snapshot{}, errBroken }}
	}},
	{"writes that fail", "pair keeps every field", func(pairing.Store) *faultyStore {
		return &faultyStore{pair: func(_ context.Context, d pairing.Device) (pairing.Device, bool, error) { return d, false, errBroken }}
	}},
	{"revocations that fail", "a revoked phone can pair again", func(pairing.Store) *faultyStore {
		return &faultyStore{revoke: func(context.Context, string) error { return errBroken }}
	}},
	{"a salt that cannot be stored", "salt", func(pairing.Store) *faultyStore {
		return &faultyStore{salt: func(context.Context, secret.Text) (secret.Text, error) { return secret.Text{}, errBroken }}
	}},
	{"a place that is not ready", "many nodes meet an empty place at once", func(pairing.Store) *faultyStore {
		return &faultyStore{
			salt: func(context.Context, secret.Text) (secret.Text, error) { return secret.Text{}, errBroken },
			pair: func(_ context.Context, d pairing.Device) (pairing.Device, bool, error) { return d, false, errBroken },
		}
	}},
	{"a write that is never made", "pair keeps every field", func(pairing.Store) *faultyStore {
		return &faultyStore{pair: func(_ context.Context, d pairing.Device) (pairing.Device, bool, error) { return d, true, nil }}
	}},
	{"created, always", "pair again updates in place", func(good pairing.Store) *faultyStore {
		return &faultyStore{pair: func(ctx context.Context, d pairing.Device) (pairing.Device, bool, error) {
			d, _, err := good.Pair(ctx, d)
			return d, true, err
		}}
	}},
	{"who paired last is not kept", "pair keeps every field", func(good pairing.Store) *faultyStore {
		return &faultyStore{pair: func(ctx context.Context, d pairing.Device) (pairing.Device, bool, error) {
			d.UpdatedBy = ""
			return good.Pair(ctx, d)
		}}
	}},
	{"a suite that is not kept", "pair keeps every field", func(good pairing.Store) *faultyStore {
		return &faultyStore{load: func(ctx context.Context) (pairing.Snapshot, error) {
			snap, err := good.Load(ctx)
			for i := range snap.Devices {
				snap.Devices[i].Suite = seal.X25519
			}
			return snap, err
		}}
	}},
	{"a revocation that is forgotten", "revoke", func(pairing.Store) *faultyStore {
		return &faultyStore{revoke: func(context.Context, string) error { return nil }}
	}},
	{"a salt that Load does not tell", "salt", func(good pairing.Store) *faultyStore {
		return &faultyStore{load: func(ctx context.Context) (pairing.Snapshot, error) {
			snap, err := good.Load(ctx)
			snap.Salt = secret.Text{}
			return snap, err
		}}
	}},
	{"a lost write now and then", "many writers in many processes", func(good pairing.Store) *faultyStore {
		var pairs atomic.Int64
		return &faultyStore{pair: func(ctx context.Context, d pairing.Device) (pairing.Device, bool, error) {
			if pairs.Add(1)%3 == 0 {
				return d, true, nil
			}
			return good.Pair(ctx, d)
		}}
	}},
	{"insert or replace", "pair again updates in place", func(good pairing.Store) *faultyStore {
		return &faultyStore{pair: func(ctx context.Context, d pairing.Device) (pairing.Device, bool, error) {
			snap, err := good.Load(ctx)
			if err != nil {
				return d, false, err
			}
			created := true
			for _, old := range snap.Devices {
				if old.PublicKey == d.PublicKey {
					created = false
					if err := good.Revoke(ctx, old.ID); err != nil {
						return d, false, err
					}
				}
			}
			d, _, err = good.Pair(ctx, d)
			return d, created, err
		}}
	}},
	{"deleting nothing is fine", "revoke", func(good pairing.Store) *faultyStore {
		return &faultyStore{revoke: func(ctx context.Context, id string) error {
			if err := good.Revoke(ctx, id); !errors.Is(err, pairing.ErrUnknownDevice) {
				return err
			}
			return nil
		}}
	}},
	{"a tombstone", "a revoked phone can pair again", func(good pairing.Store) *faultyStore {
		revoked := false
		return &faultyStore{
			revoke: func(ctx context.Context, id string) error {
				revoked = true
				return good.Revoke(ctx, id)
			},
			pair: func(ctx context.Context, d pairing.Device) (pairing.Device, bool, error) {
				if revoked {
					return d, true, nil
				}
				return good.Pair(ctx, d)
			},
		}
	}},
	{"the last salt wins", "salt", func(pairing.Store) *faultyStore {
		return &faultyStore{salt: func(_ context.Context, candidate secret.Text) (secret.Text, error) { return candidate, nil }}
	}},
	{"a cache that is handed out", "a snapshot is the caller's", func(good pairing.Store) *faultyStore {
		load := sync.OnceValues(func() (pairing.Snapshot, error) { return good.Load(context.Background()) })
		return &faultyStore{load: func(context.Context) (pairing.Snapshot, error) { return load() }}
	}},
	{"a context that is ignored", "an ended context changes nothing", func(good pairing.Store) *faultyStore {
		return &faultyStore{revoke: func(ctx context.Context, id string) error {
			return good.Revoke(context.WithoutCancel(ctx), id)
		}}
	}},
	{"a salt a node", "many nodes meet an empty place at once", func(pairing.Store) *faultyStore {
		var once sync.Once
		var salt secret.Text
		return &faultyStore{salt: func(_ context.Context, candidate secret.Text) (secret.Text, error) {
			once.Do(func() { salt = candidate })
			return salt, nil
		}}
	}},
	{"a store that revokes its own alone", "many writers in many processes", func(good pairing.Store) *faultyStore {
		known := map[string]bool{} // what this node paired
		var mu sync.Mutex
		return &faultyStore{
			pair: func(ctx context.Context, d pairing.Device) (pairing.Device, bool, error) {
				mu.Lock()
				defer mu.Unlock()
				known[d.ID] = true
				return good.Pair(ctx, d)
			},
			revoke: func(ctx context.Context, id string) error {
				mu.Lock()
				defer mu.Unlock()
				if !known[id] {
					return pairing.ErrUnknownDevice
				}
				return good.Revoke(ctx, id)
			},
		}
	}},
}

// A suite that passes every store would be no suite. Each fault is tried in a process of its own, which must fail.
func TestFaultsAreFound(t *testing.T) {
	const variable = "SEALPUSH_TEST_FAULT"
	if name := os.Getenv(variable); name != "" {
		for _, fault := range faults {
			if fault.name == name {
				runFaulty(t, fault.make)
			}
		}
		return
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range faults {
		t.Run(fault.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), binary, "-test.run=^TestFaultsAreFound$/^"+regexp.QuoteMeta(strings.ReplaceAll(fault.found, " ", "_"))+"$")
			cmd.Env = append(os.Environ(), variable+"="+fault.name)
			out, err := cmd.CombinedOutput()
			if _, failed := errors.AsType[*exec.ExitError](err); !failed || !strings.Contains(string(out), "--- FAIL: TestFaultsAreFound/") {
				t.Errorf("got %v, want %q to fail:\n%s", err, fault.found, out)
			}
		})
	}
}

func runFaulty(t *testing.T, make func(pairing.Store) *faultyStore) {
	storetest.Run(t, storetest.Backend{
		New: func(t *testing.T) string { return filepath.Join(t.TempDir(), "devices.json") },
		Open: func(t *testing.T, place string) pairing.Store {
			good, err := pairing.OpenFile(place)
			if err != nil {
				t.Fatal(err)
			}
			s := make(good)
			s.Store = good
			return s
		},
	})
}
