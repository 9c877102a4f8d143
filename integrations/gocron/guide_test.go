package gocronpage_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"

	gocronpage "github.com/sealpush/sealpush/integrations/gocron"
	"github.com/sealpush/sealpush/integrations/internal/pagetest"
	"github.com/sealpush/sealpush/relayclient"
)

// A program made of the guide's block: the job that fails in the night is on the phone.
func TestGuide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pagetest.New(t)
		scheduler := newScheduler(t)
		night := func() { runFor(t, scheduler, 24*time.Hour) }
		if err := guide(t.Context(), w.Notifier, scheduler, night, func() error { return errors.New("no space left") }); err != nil {
			t.Fatal(err)
		}
		if n := len(w.Alerts(t)); n != 1 {
			t.Errorf("%d pages in a night", n)
		}
	})
}

func guide(ctx context.Context, notifier *relayclient.Notifier, scheduler gocron.Scheduler, night func(), runBackup func() error) error {
	pages, err := gocronpage.New(notifier)
	if err != nil {
		return err
	}
	backup, err := gocronpage.Wrap(pages, "nightly-backup", runBackup, gocronpage.WithMaxRuntime(time.Hour))
	if err != nil {
		return err
	}
	if _, err := scheduler.NewJob(gocron.CronJob("17 3 * * *", false), gocron.NewTask(backup)); err != nil {
		return err
	}
	night()
	return pages.Close(ctx)
}
