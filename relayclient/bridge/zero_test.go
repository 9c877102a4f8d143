package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/relaytest"
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
		outbox := bridge.NewOutbox(client, notification, 1)
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

// Ten thousand messages must not be ten thousand log lines about one mistake.
func TestOutboxWithABadNotificationSaysSoOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		service, client := newClient(t, bridge.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		outbox := bridge.NewOutbox(client, bridge.Notification{Title: "no body"}, 0)
		for range 1000 {
			if err := outbox.Send(t.Context(), []byte("line")); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		outbox.Close()
		if n := strings.Count(log.String(), "body is missing"); n != 1 {
			t.Errorf("said %d times", n)
		}
		if n := service.RequestCount(relaytest.EndpointPush); n != 0 {
			t.Errorf("%d pushes", n)
		}
	})
}

func TestOutboxPrintsNoMessage(t *testing.T) {
	outbox := bridge.NewOutbox(nil, notification, 0)
	if err := outbox.Send(t.Context(), []byte("the merger is off")); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x"} {
		if got := fmt.Sprintf(verb, outbox); got != "bridge.Outbox{kept: 1, dropped: 0}" {
			t.Errorf("%s: %s", verb, got)
		}
	}
}
