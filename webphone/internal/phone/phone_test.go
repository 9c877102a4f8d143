package phone_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/webphone/internal/phone"
)

var suites = []string{"x25519", "xwing"}

func generate(t *testing.T, suite string) (phone.Key, seal.PublicKey) {
	t.Helper()
	key, err := phone.Generate(suite)
	if err != nil {
		t.Fatal(err)
	}
	public, err := seal.Suite(suite).ParsePublicKey(key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return key, public
}

func sealed(t *testing.T, to seal.PublicKey, plaintext []byte) string {
	t.Helper()
	box, err := seal.Seal(to, plaintext)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func TestKeyIsMadeAgainFromItsSeed(t *testing.T) {
	for _, suite := range suites {
		key, public := generate(t, suite)
		again, err := phone.FromSeed(suite, key.Seed)
		if err != nil || again.PublicKey != key.PublicKey || again.Fingerprint != public.Fingerprint() {
			t.Errorf("%s: %v, %v", suite, again.Fingerprint, err)
		}
	}
	if _, err := phone.Generate("rsa"); !errors.Is(err, seal.ErrUnknownSuite) {
		t.Errorf("an unknown suite: %v", err)
	}
	if _, err := phone.FromSeed("x25519", []byte("short")); !errors.Is(err, seal.ErrInvalidKey) {
		t.Errorf("a short seed: %v", err)
	}
}

func TestOpen(t *testing.T) {
	for _, suite := range suites {
		key, public := generate(t, suite)
		alert := payload.NewFailure("vm", "nightly-backup")
		alert.LogTail = []string{"no space left on device"}
		plaintext, err := alert.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		box := sealed(t, public, plaintext)
		opened, err := phone.Open(suite, key.Seed, suite, box, alert.Time.Add(payload.FreshFor))
		if err != nil || opened.JSON != string(plaintext) || opened.At != alert.Time.UnixMilli() || opened.Stale {
			t.Errorf("%s: %+v, %v", suite, opened, err)
		}
		if opened, err := phone.Open(suite, key.Seed, suite, box, alert.Time.Add(payload.FreshFor+1)); err != nil || !opened.Stale {
			t.Errorf("%s: of ten minutes and more: %+v, %v", suite, opened, err)
		}
		undated := sealed(t, public, []byte(`{"v":1,"kind":"failure","name":"n","host":"h"}`))
		if opened, err := phone.Open(suite, key.Seed, suite, undated, time.Now()); err != nil || !opened.Stale || opened.At != 0 {
			t.Errorf("%s: without a time: %+v, %v", suite, opened, err)
		}
		for name, box := range map[string]string{
			"empty": "", "changed": "A" + box[1:len(box)-8] + "AAAAAAA=", "cut": box[:len(box)/8*4], "no base64": "?", "long": strings.Repeat("A", 9000),
			"no alert": sealed(t, public, []byte("hello")), "of another version": sealed(t, public, []byte(`{"v":2,"kind":"failure","name":"n","host":"h"}`)),
		} {
			if opened, err := phone.Open(suite, key.Seed, suite, box, time.Now()); err == nil {
				t.Errorf("%s: a box that is %s opens: %+v", suite, name, opened)
			}
		}
	}
}

func TestOtherSuiteIsNotOpened(t *testing.T) {
	key, public := generate(t, "x25519")
	box := sealed(t, public, []byte(`{"v":1,"kind":"failure","name":"n","host":"h"}`))
	if _, err := phone.Open("x25519", key.Seed, "", box, time.Now()); err != nil {
		t.Errorf("no suite means x25519: %v", err)
	}
	if _, err := phone.Open("x25519", key.Seed, "xwing", box, time.Now()); err == nil || !strings.Contains(err.Error(), "xwing") {
		t.Errorf("a message under another suite: %v", err)
	}
}

func TestTextThereAndBack(t *testing.T) {
	daemon := seal.GenerateKey()
	box, err := phone.Seal(daemon.Public().String(), `{"name":"phone"}`)
	if err != nil {
		t.Fatal(err)
	}
	if opened, err := seal.Open(daemon, box); err != nil || string(opened) != `{"name":"phone"}` {
		t.Errorf("%q, %v", opened, err)
	}
	key, public := generate(t, "xwing")
	if text, err := phone.OpenText("xwing", key.Seed, sealed(t, public, []byte(`{"paired":true}`))); err != nil || text != `{"paired":true}` {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := phone.OpenText("xwing", key.Seed, sealed(t, public, []byte{0xff})); err == nil {
		t.Error("takes what is no text")
	}
	if _, err := phone.Seal("not a key", ""); !errors.Is(err, seal.ErrInvalidKey) {
		t.Errorf("a key that is none: %v", err)
	}
	if _, err := phone.Seal(daemon.Public().String(), strings.Repeat("x", 9000)); err == nil {
		t.Error("seals without bounds")
	}
}

// The phone's trial of itself is a message as a relay would send it.
func TestTrial(t *testing.T) {
	for _, suite := range suites {
		key, _ := generate(t, suite)
		message, err := phone.Trial(suite, key.Seed, "this phone")
		if err != nil {
			t.Fatal(err)
		}
		var push phone.Push
		if err := json.Unmarshal([]byte(message), &push); err != nil {
			t.Fatal(err)
		}
		envelope, err := json.Marshal(map[string]any{
			"v": push.V, "device": "8f3a1b", "suite": push.Suite, "ciphertext": push.Ciphertext,
			"collapseId": push.CollapseID, "priority": push.Priority, "event": false,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := relay.ParseEnvelope(envelope); err != nil {
			t.Errorf("%s: %v", suite, err)
		}
		opened, err := phone.Open(suite, key.Seed, string(push.Suite), push.Ciphertext, time.Now())
		if err != nil || !strings.Contains(opened.JSON, `"kind":"test"`) {
			t.Errorf("%s: %+v, %v", suite, opened, err)
		}
	}
}
