package cronpage_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"

	cronpage "github.com/sealpush/sealpush/integrations/cron"
	"github.com/sealpush/sealpush/integrations/internal/pagetest"
	"github.com/sealpush/sealpush/relayclient"
)

// A program made of the guide's block: the job that fails in the night is on the phone.
func TestGuide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pagetest.New(t)
		if err := nights(t.Context(), w.Notifier, 2, func() error { return errors.New("no space left") }); err != nil {
			t.Fatal(err)
		}
		if n := len(w.Alerts(t)); n != 2 {
			t.Errorf("%d pages in two nights", n)
		}
	})
}

func nights(ctx context.Context, notifier *relayclient.Notifier, n int, runBackup func() error) error {
	pages, err := cronpage.New(notifier)
	if err != nil {
		return err
	}
	backup, err := pages.Job("nightly-backup", runBackup, cronpage.WithMaxRuntime(time.Hour))
	if err != nil {
		return err
	}
	scheduler := cron.New()
	if _, err := scheduler.AddJob("17 3 * * *", backup); err != nil {
		return err
	}
	runFor(scheduler, time.Duration(n)*24*time.Hour)
	return pages.Close(ctx)
}
