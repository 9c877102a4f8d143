package cronpage_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/robfig/cron/v3"

	cronpage "github.com/sealpush/sealpush/integrations/cron"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

// A scheduler whose job fails pages the phones.
func Example() {
	relay := relaytest.NewRelay()
	defer relay.Close()
	phone := relaytest.NewPhone()
	notifier, cleanup := pager(relay, phone)
	defer cleanup()

	// What follows is the daemon's.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	pages, err := cronpage.New(notifier, cronpage.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	backup, err := pages.Job("nightly-backup", func() error { return errors.New("no space left on /srv") }, cronpage.WithMaxRuntime(time.Hour))
	if err != nil {
		log.Fatal(err)
	}
	scheduler := cron.New()
	id, err := scheduler.AddJob("17 3 * * *", backup)
	if err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
	scheduler.Entry(id).WrappedJob.Run() // for this example, at once
	<-scheduler.Stop().Done()
	if err := pages.Close(ctx); err != nil {
		log.Print(err)
	}

	received, err := phone.Received(relay)
	if err != nil {
		log.Fatal(err)
	}
	for _, notification := range received {
		fmt.Println(notification.Alert.Name, "failed:", notification.Alert.FailReason)
	}
	// Output: nightly-backup failed: no space left on /srv
}

// pager returns a notifier with one paired phone.
func pager(relay *relaytest.Relay, phone *relaytest.Phone) (notifier *relayclient.Notifier, cleanup func()) {
	dir, err := os.MkdirTemp("", "cronpage-")
	if err != nil {
		log.Fatal(err)
	}
	store, err := pairing.OpenFile(filepath.Join(dir, "devices.json"))
	if err != nil {
		log.Fatal(err)
	}
	registry, err := pairing.NewRegistry(store)
	if err != nil {
		log.Fatal(err)
	}
	request := pairing.Request{Name: "phone", Platform: "ios", PublicKey: phone.PublicKey(), PushToken: secret.New(phone.PushToken())}
	if _, _, err := registry.Pair(context.Background(), request, ""); err != nil {
		log.Fatal(err)
	}
	client, err := relayclient.New(relay.URL)
	if err != nil {
		log.Fatal(err)
	}
	if notifier, err = relayclient.NewNotifier(client, registry, "node-a"); err != nil {
		log.Fatal(err)
	}
	return notifier, func() {
		client.Close()
		os.RemoveAll(dir)
	}
}
