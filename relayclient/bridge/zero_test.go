package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/sealpush/sealpush/relayclient/bridge"
)

func TestNilAndZeroClientsAreDisabled(t *testing.T) {
	for name, client := range map[string]*bridge.Client{"nil": nil, "zero": {}} {
		if got := client.Notify(t.Context(), notification); got.Status != bridge.StatusDisabled {
			t.Errorf("%s: %v", name, got)
		}
		if err := client.Register(t.Context(), phone); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := client.Unregister(t.Context(), phone.Token); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if handled, err := client.HandleMessage(t.Context(), []byte(`{"method":"bridge/unregisterPushToken","params":{"deviceToken":"x"}}`)); !handled || err != nil {
			t.Errorf("%s: handled %v, error %v", name, handled, err)
		}
		outbox, err := bridge.NewOutbox(client, notification, bridge.WithMaxMessages(1))
		if err != nil {
			t.Fatal(err)
		}
		if err := outbox.Send(t.Context(), []byte("kept")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := outbox.Send(t.Context(), []byte("dropped")); !errors.Is(err, bridge.ErrOutboxFull) {
			t.Errorf("%s: %v", name, err)
		}
		outbox.Close()
	}
}

func TestZeroOutboxIsClosed(t *testing.T) {
	var outbox bridge.Outbox
	if err := outbox.Send(t.Context(), nil); !errors.Is(err, bridge.ErrOutboxClosed) {
		t.Error(err)
	}
	if err := outbox.Attach(t.Context(), nil); !errors.Is(err, bridge.ErrOutboxClosed) {
		t.Error(err)
	}
	outbox.Close()
	if outbox.Len() != 0 || outbox.Dropped() != 0 {
		t.Error("holds messages")
	}
}

func TestNotifyWithoutAContext(t *testing.T) {
	_, client := newClient(t)
	var none context.Context
	if got := client.Notify(none, notification); got.Status != bridge.StatusSent {
		t.Error(got)
	}
}

func TestNewOutboxRefuses(t *testing.T) {
	for name, make := range map[string]func() (*bridge.Outbox, error){
		"no body":    func() (*bridge.Outbox, error) { return bridge.NewOutbox(nil, bridge.Notification{Title: "no body"}) },
		"nil option": func() (*bridge.Outbox, error) { return bridge.NewOutbox(nil, notification, nil) },
		"messages":   func() (*bridge.Outbox, error) { return bridge.NewOutbox(nil, notification, bridge.WithMaxMessages(0)) },
		"bytes":      func() (*bridge.Outbox, error) { return bridge.NewOutbox(nil, notification, bridge.WithMaxBytes(0)) },
		"results":    func() (*bridge.Outbox, error) { return bridge.NewOutbox(nil, notification, bridge.WithResults(nil)) },
	} {
		if _, err := make(); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}

func TestOutboxPrintsNoMessage(t *testing.T) {
	outbox, err := bridge.NewOutbox(nil, notification)
	if err != nil {
		t.Fatal(err)
	}
	if err := outbox.Send(t.Context(), []byte("the merger is off")); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x"} {
		if got := fmt.Sprintf(verb, outbox); got != "bridge.Outbox{kept: 1, dropped: 0}" {
			t.Errorf("%s: %s", verb, got)
		}
	}
}
