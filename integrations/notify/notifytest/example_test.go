package notifytest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/nikoksr/notify"

	notifypage "github.com/sealpush/sealpush/integrations/notify"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

var _ notify.Notifier = (*notifypage.Service)(nil)

// A program that sends its messages through notify pages phones, too.
func Example() {
	relay := relaytest.NewRelay()
	defer relay.Close()
	phone := relaytest.NewPhone()
	notifier, cleanup, err := pagerOf(relay, phone)
	if err != nil {
		log.Fatal(err)
	}
	defer cleanup()

	if err := report(context.Background(), notifier); err != nil {
		log.Fatal(err)
	}

	received, err := phone.Received(relay)
	if err != nil {
		log.Fatal(err)
	}
	for _, notification := range received {
		fmt.Printf("%s: %s: %s\n", notification.Alert.Name, notification.Alert.Subject, notification.Alert.Message)
	}
	// Output:
	// backup: Backup failed: no space left on /srv
}

func report(ctx context.Context, notifier *relayclient.Notifier) error {
	service, err := notifypage.New(notifier, notifypage.WithName("backup"))
	if err != nil {
		return err
	}
	notify.UseServices(service)
	return notify.Send(ctx, "Backup failed", "no space left on /srv")
}

// pagerOf returns a notifier with one paired phone.
func pagerOf(relay *relaytest.Relay, phone *relaytest.Phone) (notifier *relayclient.Notifier, cleanup func(), err error) {
	dir, err := os.MkdirTemp("", "notifytest-")
	if err != nil {
		return nil, nil, err
	}
	cleanup = func() { os.RemoveAll(dir) }
	store, err := pairing.OpenFile(filepath.Join(dir, "devices.json"))
	if err != nil {
		return nil, cleanup, err
	}
	registry, err := pairing.NewRegistry(store)
	if err != nil {
		return nil, cleanup, err
	}
	request := pairing.Request{Name: "phone", Platform: "ios", PublicKey: phone.PublicKey(), PushToken: secret.New(phone.PushToken())}
	if _, _, err := registry.Pair(context.Background(), request, ""); err != nil {
		return nil, cleanup, err
	}
	client, err := relayclient.New(relay.URL, relayclient.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return nil, cleanup, err
	}
	notifier, err = relayclient.NewNotifier(client, registry, "node-a")
	return notifier, cleanup, err
}

// What goes wrong reaches the caller of notify, who can tell what it was.
func TestErrorsPassThroughNotify(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	relay.Script(relaytest.Always, relaytest.Answer{Status: http.StatusGone})
	notifier, cleanup, err := pagerOf(relay, relaytest.NewPhone())
	if err != nil {
		t.Fatal(err)
	}
	defer cleanup()
	service, err := notifypage.New(notifier)
	if err != nil {
		t.Fatal(err)
	}
	err = notify.NewWithServices(service).Send(t.Context(), "subject", "message")
	if !errors.Is(err, notify.ErrSendNotification) || !errors.Is(err, relayclient.ErrDeviceGone) {
		t.Errorf("%v", err)
	}
}
