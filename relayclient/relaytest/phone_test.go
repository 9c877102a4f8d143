package relaytest_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relay/apns"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// pageTo seals an alert to a phone and posts it.
func pageTo(t testing.TB, relay *relaytest.Relay, phone *relaytest.Phone, alert payload.Alert) {
	t.Helper()
	fitted, err := payload.Fit(alert, seal.X25519.MaxPlaintext(3000))
	if err != nil {
		t.Fatal(err)
	}
	ciphertext, err := seal.Seal(phone.PublicKey(), fitted.Plaintext)
	if err != nil {
		t.Fatal(err)
	}
	got := post(t, relay, envelope(t, "device", phone.PushToken(), "ciphertext", ciphertext, "collapseId", payload.NewCollapseID()))
	if got.body["outcome"] != "forwarded" {
		t.Fatalf("answered %d %v", got.status, got.body)
	}
}

func TestPhoneReadsWhatTheRelayCannot(t *testing.T) {
	relay := start(t)
	phone, other := relaytest.NewPhone(), relaytest.NewPhone()
	want := payload.NewFailure("db1.example", "nightly-backup")
	want.LogTail = []string{"disk full"}
	pageTo(t, relay, phone, want)

	got, err := phone.Received(relay)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]relaytest.Notification{{Alert: want}}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, word := range []string{"db1.example", "nightly-backup", "disk full"} { // none of which is base64
		if bytes.Contains(relay.Requests()[0].Body, []byte(word)) {
			t.Errorf("the relay saw %q", word)
		}
	}
	if got, err := other.Received(relay); len(got) != 0 || err != nil {
		t.Errorf("another phone read %v, %v", got, err)
	}
	if _, err := other.Open(relay.Inbox(phone.PushToken())[0]); err == nil {
		t.Error("another phone opened the message")
	}
	thief := relaytest.NewPhone(relaytest.WithPushToken(phone.PushToken()))
	if got, err := thief.Received(relay); len(got) != 0 || !errors.Is(err, seal.ErrOpen) {
		t.Errorf("with another key: %v, %v", got, err)
	}
}

func TestPhoneMarksStaleAlerts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewRelay(relaytest.InMemory())
		defer relay.Close()
		phone := relaytest.NewPhone()
		pageTo(t, relay, phone, payload.NewTest("db1"))
		for _, tt := range []struct {
			wait  time.Duration
			stale bool
		}{{payload.FreshFor, false}, {time.Nanosecond, true}} {
			advance(tt.wait) // in the bubble's time
			got, err := phone.Received(relay)
			if err != nil || len(got) != 1 || got[0].Stale != tt.stale {
				t.Errorf("after %v more: %v, %v", tt.wait, got, err)
			}
		}
	})
}

func TestPhoneGoesOnAfterABadMessage(t *testing.T) {
	relay := start(t)
	phone := relaytest.NewPhone()
	pageTo(t, relay, phone, payload.NewTest("first"))
	post(t, relay, envelope(t, "device", phone.PushToken(), "collapseId", payload.NewCollapseID()))
	pageTo(t, relay, phone, payload.NewTest("last"))
	got, err := phone.Received(relay)
	if !errors.Is(err, seal.ErrOpen) {
		t.Errorf("got %v, want ErrOpen", err)
	}
	if len(got) != 2 || got[0].Alert.Host != "first" || got[1].Alert.Host != "last" {
		t.Errorf("read %v", got)
	}
}

func TestPhoneRefusesMessages(t *testing.T) {
	phone := relaytest.NewPhone()
	box, err := seal.Seal(phone.PublicKey(), []byte(`{"v":1,"kind":"test"}`))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]string{
		"not JSON":        `v=1`,
		"not mutable":     `{"aps":{},"v":1,"ciphertext":"` + box + `"}`,
		"another version": `{"aps":{"mutable-content":1},"v":2,"ciphertext":"` + box + `"}`,
		"no ciphertext":   `{"aps":{"mutable-content":1},"v":1}`,
		"not an alert":    `{"aps":{"mutable-content":1},"v":1,"ciphertext":"` + box + `"}`,
		"too large":       `{"aps":{"mutable-content":1},"v":1,"ciphertext":"` + box + `"}` + strings.Repeat(" ", 4097),
	}
	for name, body := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := phone.Open(apns.Message{Device: secret.New(phone.PushToken()), Payload: json.RawMessage(body)})
			if err == nil {
				t.Errorf("opened %v", got)
			}
		})
	}
}

func TestPhoneOptions(t *testing.T) {
	key := seal.GenerateKey()
	phone := relaytest.NewPhone(relaytest.WithPrivateKey(key), relaytest.WithPushToken(device))
	if phone.PublicKey() != key.Public() || phone.PushToken() != device {
		t.Error("the options were not taken")
	}
	for name, misuse := range map[string]func(){
		"no key":      func() { relaytest.NewPhone(relaytest.WithPrivateKey(seal.PrivateKey{})) },
		"short token": func() { relaytest.NewPhone(relaytest.WithPushToken("8f3a")) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s was taken", name)
				}
			}()
			misuse()
		}()
	}
}

func TestPhonePrintsNoSecret(t *testing.T) {
	key := seal.GenerateKey()
	phone := relaytest.NewPhone(relaytest.WithPrivateKey(key), relaytest.WithPushToken(device))
	type holder struct{ phone relaytest.Phone }
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("paired", "phone", phone, "copy", *phone)
	shown := []string{log.String()}
	for _, v := range []any{phone, *phone, holder{*phone}, &holder{*phone}} {
		encoded, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, string(encoded), fmt.Sprintf("%v %+v %#v %s %x", v, v, v, v, v))
	}
	for _, text := range shown {
		for _, secret := range []string{device, hex.EncodeToString([]byte(device)), hex.EncodeToString(key.Bytes())} {
			if strings.Contains(text, secret) {
				t.Errorf("shows a secret: %s", text)
			}
		}
	}
	if got := fmt.Sprint(phone); got != "phone "+key.Public().Fingerprint() {
		t.Errorf("prints as %q", got)
	}
	if got := fmt.Sprint(relaytest.Phone{}); got != "phone without a key" {
		t.Errorf("the zero phone prints as %q", got)
	}
}

func TestPhoneOpensBothSuites(t *testing.T) {
	relay := start(t)
	for _, suite := range seal.Suites() {
		phone := relaytest.NewPhone(relaytest.WithPrivateKey(suite.GenerateKey()))
		text, err := payload.NewTest("node-a").MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		ciphertext, err := seal.Seal(phone.PublicKey(), text)
		if err != nil {
			t.Fatal(err)
		}
		post(t, relay, envelope(t, "device", phone.PushToken(), "suite", suite, "ciphertext", ciphertext))
		if got, err := phone.Received(relay); err != nil || len(got) != 1 || got[0].Alert.Host != "node-a" {
			t.Errorf("%s: read %v, %v", suite, got, err)
		}
		// The suite is named, and not to be guessed from the ciphertext.
		other := relaytest.NewPhone(relaytest.WithPrivateKey(suite.GenerateKey()))
		post(t, relay, envelope(t, "device", other.PushToken(), "suite", "later", "ciphertext", ciphertext))
		if got, err := other.Received(relay); err == nil {
			t.Errorf("%s: under a foreign name it read %v", suite, got)
		}
	}
}

func TestPhoneTellsADigest(t *testing.T) {
	server := start(t, relaytest.WithRelay(relay.WithPolicy(relay.Policy{MonthlyQuota: 1})))
	phone := relaytest.NewPhone()
	pageTo(t, server, phone, payload.NewTest("node-a"))
	got := post(t, server, envelope(t, "device", phone.PushToken(), "collapseId", payload.NewCollapseID()))
	if got.status != 202 || got.body["outcome"] != "digested" {
		t.Errorf("answered %d %v", got.status, got.body)
	}
	shown, err := phone.Received(server)
	if err != nil || len(shown) != 2 || shown[0].Digest || !shown[1].Digest || shown[1].Alert.Host != "" {
		t.Errorf("read %v, %v", shown, err)
	}
}
