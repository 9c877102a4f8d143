package cronpage_test

import (
	"bytes"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"

	cronpage "github.com/sealpush/sealpush/integrations/cron"
	"github.com/sealpush/sealpush/integrations/internal/pagetest"
	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

func newPages(t *testing.T, w *pagetest.World, opts ...cronpage.Option) *cronpage.Pages {
	t.Helper()
	pages, err := cronpage.New(w.Notifier, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pages.Close(nil) }) //lint:ignore SA1012 a nil context is taken
	return pages
}

// runFor runs a scheduler, and waits for its jobs.
func runFor(scheduler *cron.Cron, d time.Duration) {
	scheduler.Start()
	time.Sleep(d)
	<-scheduler.Stop().Done()
}

// alerts are what the phone shows in the end.
func alerts(t *testing.T, w *pagetest.World, pages *cronpage.Pages) []payload.Alert {
	t.Helper()
	if err := pages.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return w.Alerts(t)
}

func TestAJobThatFailsPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pagetest.New(t)
		var logged bytes.Buffer
		pages := newPages(t, w, cronpage.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
		runs := 0
		backup, err := pages.Job("backup", func() error {
			if runs++; runs == 2 {
				return errors.New("no space left")
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		scheduler := cron.New(cron.WithLogger(cron.DiscardLogger))
		if _, err := scheduler.AddJob("@every 1h", backup); err != nil {
			t.Fatal(err)
		}
		runFor(scheduler, 3*time.Hour+time.Minute)
		shown := alerts(t, w, pages)
		if runs != 3 || len(shown) != 1 || shown[0].Kind != payload.KindFailure || shown[0].Name != "backup" || shown[0].FailReason != "no space left" {
			t.Errorf("after %d runs, the phone shows %+v", runs, shown)
		}
		if strings.Count(logged.String(), "\n") != 1 || !strings.Contains(logged.String(), `msg="job failed" name=backup error="no space left"`) {
			t.Errorf("logged %s", &logged)
		}
	})
}

// cron.Recover gets the panic that it would have got, and the scheduler goes on.
func TestAJobThatPanicsPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pagetest.New(t)
		pages := newPages(t, w)
		report, err := pages.Wrapper("report")
		if err != nil {
			t.Fatal(err)
		}
		var recovered bytes.Buffer
		logger := cron.PrintfLogger(log.New(&recovered, "", 0))
		scheduler := cron.New(cron.WithLogger(cron.DiscardLogger), cron.WithChain(cron.Recover(logger)))
		runs := 0
		job := cron.NewChain(report).Then(cron.FuncJob(func() {
			if runs++; runs == 1 {
				panic("no space left")
			}
		}))
		if _, err := scheduler.AddJob("@every 1h", job); err != nil {
			t.Fatal(err)
		}
		runFor(scheduler, 2*time.Hour+time.Minute)
		shown := alerts(t, w, pages)
		if runs != 2 || len(shown) != 1 || shown[0].FailReason != "panic: no space left" || !strings.Contains(strings.Join(shown[0].LogTail, "\n"), "TestAJobThatPanicsPages") {
			t.Errorf("after %d runs, the phone shows %+v", runs, shown)
		}
		if !strings.Contains(recovered.String(), "no space left") || !strings.Contains(recovered.String(), "TestAJobThatPanicsPages") {
			t.Errorf("cron.Recover logged %s", &recovered)
		}
	})
}

// Without cron.Recover, a panic ends the program, as it would have, and the page has been sent.
func TestAPanicThatEndsTheProgramPages(t *testing.T) {
	if url := os.Getenv("CRONPAGE_TEST_RELAY"); url != "" {
		crash(t, url)
		return
	}
	relay := relaytest.NewRelay()
	defer relay.Close()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "CRONPAGE_TEST_RELAY="+relay.URL)
	out, err := cmd.CombinedOutput()
	if _, exited := errors.AsType[*exec.ExitError](err); !exited || !strings.Contains(string(out), "panic: no space left") {
		t.Errorf("the program ended with %v, and printed\n%s", err, out)
	}
	if n := len(relay.Requests()); n != 1 {
		t.Errorf("%d pages", n)
	}
}

func crash(t *testing.T, relayURL string) {
	w := pagetest.New(t)
	client, err := relayclient.New(relayURL)
	if err != nil {
		t.Fatal(err)
	}
	notifier, err := relayclient.NewNotifier(client, w.Registry, "node-a")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := cronpage.New(notifier)
	if err != nil {
		t.Fatal(err)
	}
	job, err := pages.Job("backup", func() error { panic("no space left") })
	if err != nil {
		t.Fatal(err)
	}
	scheduler := cron.New()
	scheduler.Schedule(cron.Every(time.Second), job)
	scheduler.Run()
}

// A run that is skipped because the one before has not ended pages, as does one that takes too long.
func TestAJobThatTakesTooLongPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pagetest.New(t)
		pages := newPages(t, w)
		scheduler := cron.New(cron.WithLogger(cron.DiscardLogger))
		slow := func(name string, opts ...cronpage.JobOption) {
			wrapper, err := pages.Wrapper(name, opts...)
			if err != nil {
				t.Fatal(err)
			}
			job := cron.NewChain(wrapper, cron.SkipIfStillRunning(cron.DiscardLogger)).Then(cron.FuncJob(func() { time.Sleep(150 * time.Minute) }))
			if _, err := scheduler.AddJob("@every 1h", job); err != nil {
				t.Fatal(err)
			}
		}
		slow("overlaps")
		slow("may overlap", cronpage.WithOverlap())
		slow("limited", cronpage.WithOverlap(), cronpage.WithMaxRuntime(2*time.Hour))
		runFor(scheduler, 3*time.Hour+time.Minute) // the first runs began after 1 h, and end after 3.5 h
		thresholds := map[string]float64{}
		shown := alerts(t, w, pages)
		for _, alert := range shown {
			if alert.Kind == payload.KindSLA && alert.SLACheck == payload.CheckMaxRuntime {
				thresholds[alert.Name] = *alert.ThresholdSeconds
			}
		}
		if got := fmt.Sprint(thresholds); got != "map[limited:7200 overlaps:3600]" || len(shown) != 2 {
			t.Errorf("the phone shows %s", got)
		}
	})
}

func TestBadArguments(t *testing.T) {
	if _, err := cronpage.New(nil); err == nil {
		t.Error("no notifier")
	}
	for name, opt := range map[string]cronpage.Option{"nil": nil, "queue": cronpage.WithQueue(0), "panic wait": cronpage.WithPanicWait(0)} {
		if _, err := cronpage.New(&relayclient.Notifier{}, opt); err == nil {
			t.Errorf("option %s taken", name)
		}
	}
	pages, err := cronpage.New(&relayclient.Notifier{}, cronpage.WithLogger(nil), cronpage.WithQueue(1), cronpage.WithPanicWait(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer pages.Close(t.Context())
	if _, err := pages.Job("backup", nil); err == nil {
		t.Error("no function")
	}
	for _, name := range []string{"", strings.Repeat("x", 257)} {
		if _, err := pages.Wrapper(name); err == nil {
			t.Errorf("a name of %d bytes taken", len(name))
		}
	}
	for _, unmade := range []*cronpage.Pages{nil, {}} {
		if _, err := unmade.Wrapper("backup"); err == nil {
			t.Error("pages taken that New has not made")
		}
	}
	for name, opt := range map[string]cronpage.JobOption{"nil": nil, "max runtime": cronpage.WithMaxRuntime(-1)} {
		if _, err := pages.Job("backup", func() error { return nil }, opt); err == nil {
			t.Errorf("option %s taken", name)
		}
		if _, err := pages.Wrapper("backup", opt); err == nil {
			t.Errorf("option %s taken", name)
		}
	}
}
