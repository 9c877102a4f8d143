package pairing_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

func mustKey(t testing.TB, text string) seal.PublicKey {
	t.Helper()
	k, err := seal.ParsePublicKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// usable are the devices of a snapshot that an alert can be sealed to.
func usable(snap pairing.Snapshot) []pairing.Device {
	return slices.DeleteFunc(slices.Clone(snap.Devices), func(d pairing.Device) bool { return d.Unusable != nil })
}

// unusable is why each of the others is none.
func unusable(snap pairing.Snapshot) []error {
	var reasons []error
	for _, d := range snap.Devices {
		if d.Unusable != nil {
			reasons = append(reasons, d.Unusable)
		}
	}
	return reasons
}

func TestNothingPrintsAPushToken(t *testing.T) {
	for _, token := range []string{"9e30691c238642ea126a1e48cc11d357", "short", "elevenchars", "exactlytwelv"} {
		d := pairing.Device{ID: "02177c7da112d2b0", Name: "phone", Platform: "ios", PushToken: secret.New(token),
			PublicKey: mustKey(t, key), CreatedAt: time.Now()}
		r := pairing.Request{Name: "phone", Platform: "ios", PushToken: secret.New(token), PublicKey: d.PublicKey}
		var out bytes.Buffer
		for _, v := range []any{d, &d, []pairing.Device{d}, struct{ D pairing.Device }{d},
			map[string]pairing.Device{"d": d}, r, &r, pairing.Snapshot{Devices: []pairing.Device{d}}} {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
				fmt.Fprintf(&out, verb+"\n", v)
			}
			slog.New(slog.NewTextHandler(&out, nil)).Info("m", "v", v)
			slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "v", v)
			if data, err := json.Marshal(v); err == nil {
				out.Write(data)
			}
		}
		start := token[:min(6, len(token))]
		leaks := []string{token, start, fmt.Sprintf("%x", start)}
		if len(token) < 12 { // the last six are most of it
			leaks = append(leaks, token[max(0, len(token)-6):])
		}
		for _, leak := range leaks {
			if strings.Contains(out.String(), leak) {
				t.Errorf("%q, of the token %q, shows in\n%s", leak, token, out.String())
			}
		}
	}
}

func TestNothingPrintsTheSalt(t *testing.T) {
	const salt = "4cf956b7261a9bc5628f2ffa5544190c"
	store := &memoryStore{snapshot: pairing.Snapshot{Salt: secret.New(salt), Devices: []pairing.Device{newDevice("1", "phone")}}}
	reg, _ := newRegistry(store)
	var out bytes.Buffer
	for _, v := range []any{reg, reg.Recipients(t.Context()), store.snapshot, &store.snapshot} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
		slog.New(slog.NewTextHandler(&out, nil)).Info("m", "v", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "v", v)
	}
	for _, leak := range []string{salt, "token-of-phone"} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("%q shows in\n%s", leak, out.String())
		}
	}
}
