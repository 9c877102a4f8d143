package pairing_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/relayclient/pairing"
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

func TestHandlerWithoutItsParts(t *testing.T) {
	reg, _ := newRegistry(&memoryStore{})
	handler := pairing.Handler(reg, nil, pairing.WithCaller(nil))
	r := httptest.NewRequest("POST", "/push/devices", strings.NewReader(`{"name":"phone","platform":"ios","pushToken":"token","publicKey":"`+key+`"}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	if w.Code != 201 {
		t.Errorf("without a caller: %d %s", w.Code, w.Body)
	}
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "needs a registry") {
			t.Errorf("panic %q", text)
		}
	}()
	pairing.Handler(nil, nil)
}

func TestRecipientsWithoutAContext(t *testing.T) {
	reg, _ := newRegistry(&memoryStore{})
	var none context.Context
	if got := reg.Recipients(none); got.Err != nil {
		t.Error(got.Err)
	}
}
