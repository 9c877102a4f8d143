package gocronpage_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	gocronpage "github.com/sealpush/sealpush/integrations/gocron"
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
	pages, err := gocronpage.New(notifier)
	if err != nil {
		log.Fatal(err)
	}
	run := func() error { return errors.New("no space left on /srv") }
	backup, err := gocronpage.Wrap(pages, "nightly-backup", run, gocronpage.WithMaxRuntime(time.Hour))
	if err != nil {
		log.Fatal(err)
	}
	scheduler, err := gocron.NewScheduler()
	if err != nil {
		log.Fatal(err)
	}
	at := gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()) // for this example; or gocron.CronJob("17 3 * * *", false)
	ran := make(chan struct{})
	heard := gocron.AfterJobRunsWithError(func(uuid.UUID, string, error) { close(ran) })
	if _, err := scheduler.NewJob(at, gocron.NewTask(backup), gocron.WithEventListeners(heard)); err != nil {
		log.Fatal(err)
	}
	scheduler.Start()
	<-ran
	if err := scheduler.Shutdown(); err != nil {
		log.Fatal(err)
	}
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
	dir, err := os.MkdirTemp("", "gocronpage-")
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
