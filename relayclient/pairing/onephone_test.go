package pairing_test

import (
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// A phone that lost its key and pairs again has its push token still.
func TestAPushTokenIsOnePhone(t *testing.T) {
	const apns = "9e30691c238642ea126a1e48cc11d357"
	for _, c := range []struct {
		name, first, second string
		replaced            bool
	}{
		{"the same token", apns, apns, true},
		{"hex digits in another case", apns, strings.ToUpper(apns), true},
		{"another token", apns, apns[:31] + "0", false},
		{"not hex, in another case", "fcm-Token:xyz", "fcm-token:xyz", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			reg, log := newRegistry(openFile(t, filepath.Join(t.TempDir(), "devices.json")))
			old := request("phone")
			old.PushToken = secret.New(c.first)
			first, _, err := reg.Pair(t.Context(), old, "parker")
			if err != nil {
				t.Fatal(err)
			}
			again := request("phone")
			again.PushToken = secret.New(c.second)
			second, created, err := reg.Pair(t.Context(), again, "parker")
			if err != nil || !created || second.ID == first.ID {
				t.Fatalf("created %v, id %s after %s, error %v", created, second.ID, first.ID, err)
			}
			want := 2
			if c.replaced {
				want = 1
			}
			devices, err := reg.Devices(t.Context())
			if err != nil || len(devices) != want || !slices.ContainsFunc(devices, func(d pairing.Device) bool { return d.PublicKey == again.PublicKey }) {
				t.Errorf("stored are %v, %v", devices, err)
			}
			if got := reg.Recipients(t.Context()); len(got.Devices) != want {
				t.Errorf("paged are %v", got.Devices)
			}
			if told := strings.Contains(log.take(), "replaced=["+first.ID+"]"); told != c.replaced {
				t.Errorf("the log says that %s was replaced: %v", first.ID, told)
			}
		})
	}
}

// A phone that pairs under a key it had before keeps that record, and what it left under another key goes.
func TestAPhoneThatReturnsToAnOldKey(t *testing.T) {
	store := &memoryStore{}
	reg, _ := newRegistry(store)
	old, newer := newDevice("1", "phone"), newDevice("2", "phone")
	pair(t, store, old)
	pair(t, store, newer) // by an older node, which keeps both
	req := pairing.Request{Name: "phone", Platform: "ios", PushToken: old.PushToken, PublicKey: old.PublicKey}
	d, created, err := reg.Pair(t.Context(), req, "")
	if err != nil || created || d.ID != "1" {
		t.Fatalf("got %v, created %v, %v", d, created, err)
	}
	if devices, err := reg.Devices(t.Context()); err != nil || len(devices) != 1 || devices[0].ID != "1" {
		t.Errorf("stored are %v, %v", devices, err)
	}
}

// Older nodes and the deployed daemon keep both records of a phone that lost its key.
func TestOfTwoRecordsTheNewerIsPaged(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 7, n, 14, 0, 0, 0, time.UTC) }
	for _, c := range []struct {
		name string
		a, b func(*pairing.Device)
		want string // the id that is paged
	}{
		{"created later", func(d *pairing.Device) { d.CreatedAt = day(2) }, func(d *pairing.Device) { d.CreatedAt = day(1) }, "a"},
		{"updated later", func(d *pairing.Device) { d.CreatedAt, d.UpdatedAt = day(1), day(5) },
			func(d *pairing.Device) { d.CreatedAt = day(3) }, "a"},
		{"created after the other's update", func(d *pairing.Device) { d.CreatedAt, d.UpdatedAt = day(1), day(2) },
			func(d *pairing.Device) { d.CreatedAt = day(3) }, "b"},
		{"the token in another case", func(d *pairing.Device) { d.PushToken = secret.New("ABCDEF0123456789") },
			func(d *pairing.Device) { d.PushToken, d.CreatedAt = secret.New("abcdef0123456789"), day(30) }, "b"},
		{"the newer has a key that nobody can use", func(d *pairing.Device) { d.CreatedAt = day(1) },
			func(d *pairing.Device) { d.CreatedAt = day(2); d.ReadKey("", "AAAA") }, "a"},
		{"the newer has a suite for other nodes", func(d *pairing.Device) { d.CreatedAt = day(1) },
			func(d *pairing.Device) { d.CreatedAt = day(2); d.ReadKey("future-1", "AAAA") }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := &memoryStore{}
			reg, log := newRegistry(store)
			a, b := newDevice("a", "phone"), newDevice("b", "phone")
			c.a(&a)
			c.b(&b)
			store.snapshot.Devices = []pairing.Device{a, b}
			for range 3 {
				reg.Recipients(t.Context())
				if devices, err := reg.Devices(t.Context()); err != nil || len(devices) != 2 {
					t.Fatalf("listed are %v, %v", devices, err)
				}
			}
			var paged []string
			for _, d := range reg.Recipients(t.Context()).Devices {
				paged = append(paged, d.ID)
			}
			if strings.Join(paged, " ") != c.want {
				t.Errorf("paged are %v, want %s", paged, c.want)
			}
			told := strings.Count(log.take(), "is paired twice")
			if want := map[bool]int{true: 0, false: 1}[errors.Is(b.Unusable, seal.ErrInvalidKey)]; told != want {
				t.Errorf("the log tells of two records %d times, want %d", told, want)
			}
		})
	}
}

func TestAChangeByAnotherCallerIsLoggedAndKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg, log := newRegistry(&memoryStore{})
		req := request("phone")
		if _, _, err := reg.Pair(t.Context(), req, "parker"); err != nil {
			t.Fatal(err)
		}
		if got := log.take(); strings.Contains(got, "another caller") {
			t.Errorf("logged\n%s", got)
		}
		pass(time.Hour)
		d, created, err := reg.Pair(t.Context(), req, "quinn")
		if err != nil || created || d.CreatedBy != "parker" || d.UpdatedBy != "quinn" || !d.UpdatedAt.Equal(time.Now()) {
			t.Errorf("got created by %q, updated by %q at %v, %v", d.CreatedBy, d.UpdatedBy, d.UpdatedAt, err)
		}
		if got := log.take(); !strings.Contains(got, "level=WARN") || !strings.Contains(got, "caller=quinn") || !strings.Contains(got, "created_by=parker") {
			t.Errorf("logged\n%s", got)
		}
		again := request("phone") // a new key, the same token
		if d, _, err = reg.Pair(t.Context(), again, "rory"); err != nil || d.CreatedBy != "rory" {
			t.Errorf("got created by %q, %v", d.CreatedBy, err)
		}
		if got := log.take(); !strings.Contains(got, "caller=rory") || !strings.Contains(got, "created_by=parker") {
			t.Errorf("logged\n%s", got)
		}
	})
}

func TestOwnDevicesOnly(t *testing.T) {
	store := &memoryStore{}
	reg, _ := newRegistry(store)
	caller := pairing.WithCaller(func(r *http.Request) string { return r.Header.Get("X-Label") })
	handler := handlerOver(t, reg, nil, caller, pairing.WithOwnDevicesOnly())
	parkers, nobodys := newDevice("parkers", "phone"), newDevice("nobodys", "old phone")
	parkers.CreatedBy, nobodys.CreatedBy = "parker", ""
	pair(t, store, parkers)
	pair(t, store, nobodys)
	other := seal.GenerateKey().Public().String()

	for _, c := range []struct {
		name, label, method, path, body string
		want                            int
	}{
		{"another caller pairs it again", "quinn", "POST", "", body("mine", "ios", parkers.PublicKey.String(), "t"), 403},
		{"another caller takes its token", "quinn", "POST", "", body("mine", "ios", other, parkers.PushToken.Reveal()), 403},
		{"another caller revokes it", "quinn", "DELETE", "/parkers", "", 403},
		{"a caller without a label revokes it", "", "DELETE", "/parkers", "", 403},
		{"a caller without a label revokes nobody's", "", "DELETE", "/nobodys", "", 403},
		{"a caller revokes nobody's", "parker", "DELETE", "/nobodys", "", 403},
		{"an id that is not paired", "quinn", "DELETE", "/1", "", 404},
		{"another caller pairs a phone of its own", "quinn", "POST", "", body("mine", "ios", other, "another token"), 201},
		{"another caller lists", "quinn", "GET", "", "", 200},
		{"the caller pairs it again", "parker", "POST", "", body("renamed", "ios", parkers.PublicKey.String(), "t"), 200},
		{"the caller revokes it", "parker", "DELETE", "/parkers", "", 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			if rec := serve(handler, c.method, "/push/devices"+c.path, c.body, "X-Label", c.label); rec.Code != c.want {
				t.Errorf("got %d %s, want %d", rec.Code, rec.Body, c.want)
			}
		})
	}
	if got := names(store.snapshot.Devices); got != "old phone mine" {
		t.Errorf("stored are %s", got)
	}
}

// More phones than one alert can reach in time would be paired for nothing.
func TestAFullRegistry(t *testing.T) {
	store := &memoryStore{}
	reg, log := newRegistry(store)
	key := seal.GenerateKey().Public()
	for i := range pairing.MaxDevices {
		d := newDevice(fmt.Sprint(i), "phone")
		d.PushToken, d.PublicKey = secret.New(fmt.Sprint("token ", i)), key
		store.snapshot.Devices = append(store.snapshot.Devices, d)
	}
	known := newDevice("known", "known")
	store.snapshot.Devices[7] = known
	handler := handlerOver(t, reg, nil)

	rec := serve(handler, "POST", "/push/devices", body("one more", "ios", seal.GenerateKey().Public().String(), "another token"))
	if rec.Code != 507 || !strings.Contains(rec.Body.String(), "full") || !strings.Contains(log.take(), "no room") {
		t.Errorf("one more: %d %s", rec.Code, rec.Body)
	}
	if _, _, err := reg.Pair(t.Context(), request("one more"), ""); !errors.Is(err, pairing.ErrFull) || errors.Is(err, pairing.ErrUnavailable) {
		t.Errorf("one more: %v", err)
	}
	rec = serve(handler, "POST", "/push/devices", body("known", "ios", known.PublicKey.String(), "token"))
	if rec.Code != 200 {
		t.Errorf("a known phone: %d %s", rec.Code, rec.Body)
	}
	rec = serve(handler, "POST", "/push/devices", body("known", "ios", seal.GenerateKey().Public().String(), "token"))
	if rec.Code != 201 || len(store.snapshot.Devices) != pairing.MaxDevices {
		t.Errorf("a known phone with a new key: %d %s, now %d devices", rec.Code, rec.Body, len(store.snapshot.Devices))
	}
}

// The store must not write what it would not read.
func TestAFileNearItsLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "devices.json")
	writeFile(t, path, `{"version":1,"collapseSalt":"s","devices":[],"other":"`+strings.Repeat("x", 16<<20-200)+`"}`)
	s := openFile(t, path)
	before := readFile(t, path)
	for range 2 {
		if _, _, err := s.Pair(t.Context(), newDevice("1", "phone")); !errors.Is(err, pairing.ErrFull) {
			t.Errorf("got %v, want ErrFull", err)
		}
	}
	if readFile(t, path) != before {
		t.Error("the file was written")
	}
	if snap := load(t, s); len(snap.Devices) != 0 || snap.Salt.Reveal() != "s" {
		t.Errorf("got %v", snap)
	}
}
