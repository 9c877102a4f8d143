package pairing_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// A store or registry that nobody made must say so: not panic, wait for ever, or pass for one without phones.
func TestZeroValuesSayWhatTheyLack(t *testing.T) {
	for name, store := range map[string]pairing.Store{"FileStore": new(pairing.FileStore), "SQLStore": new(pairing.SQLStore)} {
		_, loadErr := store.Load(t.Context())
		_, _, pairErr := store.Pair(t.Context(), newDevice("1", "phone"))
		_, saltErr := store.EnsureSalt(t.Context(), secret.New("salt"))
		for _, err := range []error{loadErr, pairErr, saltErr, store.Revoke(t.Context(), "1")} {
			if err == nil || !strings.Contains(err.Error(), "not made by") && !strings.Contains(err.Error(), "was not made") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}

	var reg pairing.Registry
	_, devicesErr := reg.Devices(t.Context())
	_, deviceErr := reg.Device(t.Context(), "1")
	_, _, pairErr := reg.Pair(t.Context(), request("phone"), "")
	got := reg.Recipients(t.Context())
	for _, err := range []error{devicesErr, deviceErr, pairErr, reg.Revoke(t.Context(), "1"), got.Err} {
		if !errors.Is(err, pairing.ErrUnavailable) {
			t.Errorf("Registry: %v", err)
		}
	}
	if got.Salt.IsZero() || !got.Salt.Equal(reg.Salt(t.Context())) {
		t.Error("Registry: the salt must be there, and stay")
	}
}

func TestConstructorsRefuse(t *testing.T) {
	reg, _ := newRegistry(&memoryStore{})
	_, noStore := pairing.NewRegistry(nil)
	_, noSuite := pairing.NewRegistry(&memoryStore{}, pairing.WithSuites())
	_, unknown := pairing.NewRegistry(&memoryStore{}, pairing.WithSuites(seal.X25519, "kyber"))
	_, noRegistry := pairing.Handler(nil, nil)
	_, nilCaller := pairing.Handler(reg, nil, pairing.WithCaller(nil))
	_, noCaller := pairing.Handler(reg, nil, pairing.WithOwnDevicesOnly())
	for want, err := range map[string]error{
		"NewRegistry needs a store": noStore, "WithSuites: no suite": noSuite,
		`"kyber" is none of`: unknown, "Handler needs a registry": noRegistry,
		"WithCaller: the function is nil": nilCaller, "WithOwnDevicesOnly needs WithCaller": noCaller,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if !errors.Is(unknown, seal.ErrUnknownSuite) {
		t.Errorf("%v is not seal.ErrUnknownSuite", unknown)
	}
}

func TestRecipientsWithoutAContext(t *testing.T) {
	reg, _ := newRegistry(&memoryStore{})
	var none context.Context
	if got := reg.Recipients(none); got.Err != nil {
		t.Error(got.Err)
	}
}
