package gocronpage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"

	gocronpage "github.com/sealpush/sealpush/integrations/gocron"
	"github.com/sealpush/sealpush/integrations/internal/pagetest"
	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
)

func newPages(t *testing.T, w *pagetest.World, opts ...gocronpage.Option) *gocronpage.Pages {
	t.Helper()
	pages, err := gocronpage.New(w.Notifier, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pages.Close(nil) }) //lint:ignore SA1012 a nil context is taken
	return pages
}

func wrap[F any](t *testing.T, pages *gocronpage.Pages, name string, f F, opts ...gocronpage.JobOption) F {
	t.Helper()
	wrapped, err := gocronpage.Wrap(pages, name, f, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return wrapped
}

// newScheduler returns a scheduler that is shut down with the test, at the latest.
func newScheduler(t *testing.T, opts ...gocron.SchedulerOption) gocron.Scheduler {
	t.Helper()
	scheduler, err := gocron.NewScheduler(append([]gocron.SchedulerOption{gocron.WithStopTimeout(24 * time.Hour)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { scheduler.Shutdown() })
	return scheduler
}

func hourly(t *testing.T, scheduler gocron.Scheduler, task gocron.Task, opts ...gocron.JobOption) {
	t.Helper()
	if _, err := scheduler.NewJob(gocron.DurationJob(time.Hour), task, opts...); err != nil {
		t.Fatal(err)
	}
}

// runFor runs a scheduler, whose jobs have ended by then: it waits for them under a mutex, so that time would not pass.
func runFor(t *testing.T, scheduler gocron.Scheduler, d time.Duration) {
	t.Helper()
	scheduler.Start()
	time.Sleep(d)
	if err := scheduler.Shutdown(); err != nil {
		t.Error(err)
	}
}

// alerts are what the phone shows in the end.
func alerts(t *testing.T, w *pagetest.World, pages *gocronpage.Pages) []payload.Alert {
	t.Helper()
	if err := pages.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return w.Alerts(t)
}

// A function keeps its parameters, the context that gocron passes, and its results; gocron hears of the error.
func TestAJobThatFailsPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pagetest.New(t)
		pages := newPages(t, w)
		runs := 0
		backup := wrap(t, pages, "backup", func(ctx context.Context, target string, disks ...string) (int, error) {
			if ctx.Done() == nil || target != "nas" || fmt.Sprint(disks) != "[a]" {
				t.Errorf("called with %v %q %q", ctx, target, disks)
			}
			if runs++; runs == 2 {
				return 7, errors.New("no space left")
			}
			return 0, nil
		})
		var heard []error
		scheduler := newScheduler(t)
		hourly(t, scheduler, gocron.NewTask(backup, "nas", "a"), gocron.WithEventListeners(
			gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { heard = append(heard, err) })))
		runFor(t, scheduler, 3*time.Hour+time.Minute)
		shown := alerts(t, w, pages)
		if runs != 3 || len(shown) != 1 || shown[0].Kind != payload.KindFailure || shown[0].Name != "backup" || shown[0].FailReason != "no space left" {
			t.Errorf("after %d runs, the phone shows %+v", runs, shown)
		}
		if fmt.Sprint(heard) != "[no space left]" {
			t.Errorf("gocron heard of %v", heard)
		}
		if n, err := wrap(t, pages, "again", func() (int, error) { return 7, nil })(); n != 7 || err != nil {
			t.Errorf("results %d, %v", n, err)
		}
	})
}

// gocron recovers a panic that it would have recovered, and passes on the same value.
func TestAJobThatPanicsPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pagetest.New(t)
		pages := newPages(t, w)
		runs := 0
		report := wrap(t, pages, "report", func() {
			if runs++; runs == 1 {
				panic(runs)
			}
		})
		var heard []any
		scheduler := newScheduler(t)
		hourly(t, scheduler, gocron.NewTask(report), gocron.WithEventListeners(
			gocron.AfterJobRunsWithPanic(func(_ uuid.UUID, _ string, value any) { heard = append(heard, value) })))
		runFor(t, scheduler, 2*time.Hour+time.Minute)
		shown := alerts(t, w, pages)
		if runs != 2 || len(shown) != 1 || shown[0].FailReason != "panic: 1" || !strings.Contains(strings.Join(shown[0].LogTail, "\n"), "TestAJobThatPanicsPages") {
			t.Errorf("after %d runs, the phone shows %+v", runs, shown)
		}
		if len(heard) != 1 || heard[0] != 1 {
			t.Errorf("gocron recovered %v", heard)
		}
	})
}

// Where gocron would not have recovered a panic, it does not now.
func TestAPanicIsNotSwallowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pagetest.New(t)
		report := wrap(t, newPages(t, w), "report", func() { panic("no space left") })
		defer func() {
			if value := recover(); value != "no space left" || len(w.Alerts(t)) != 1 {
				t.Errorf("recovered %v, after %d pages", value, len(w.Alerts(t)))
			}
		}()
		report()
	})
}

// The scheduler's clock, which a test winds, is the clock by which a run takes too long.
func TestAJobThatTakesTooLongPages(t *testing.T) {
	w := pagetest.New(t)
	clock := clockwork.NewFakeClock()
	pages := newPages(t, w, gocronpage.WithClock(clock))
	started, end := make(chan struct{}), make(chan struct{})
	slow := wrap(t, pages, "slow", func() {
		close(started)
		<-end
	}, gocronpage.WithMaxRuntime(10*time.Minute))
	scheduler := newScheduler(t, gocron.WithClock(clock))
	hourly(t, scheduler, gocron.NewTask(slow), gocron.WithSingletonMode(gocron.LimitModeReschedule))
	scheduler.Start()
	wind(t, clock, time.Hour)
	<-started
	clock.Advance(10 * time.Minute)
	if _, err := w.Relay.WaitInbox(t.Context(), w.Phone.PushToken(), 1); err != nil { // while it still runs
		t.Fatal(err)
	}
	close(end)
	if err := scheduler.Shutdown(); err != nil {
		t.Error(err)
	}
	shown := alerts(t, w, pages)
	if len(shown) != 1 || shown[0].Kind != payload.KindSLA || shown[0].SLACheck != payload.CheckMaxRuntime || *shown[0].ObservedSeconds != 600 {
		t.Errorf("the phone shows %+v", shown)
	}
}

// wind advances a clock when the scheduler waits for it.
func wind(t *testing.T, clock *clockwork.FakeClock, d time.Duration) {
	t.Helper()
	if err := clock.BlockUntilContext(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	clock.Advance(d)
}

func TestOverlappingRunsPageUnlessTheyMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pagetest.New(t)
		pages := newPages(t, w)
		slow := func() { time.Sleep(90 * time.Minute) }
		scheduler := newScheduler(t)
		twice := gocron.WithLimitedRuns(2)
		hourly(t, scheduler, gocron.NewTask(wrap(t, pages, "overlaps", slow)), twice)
		hourly(t, scheduler, gocron.NewTask(wrap(t, pages, "may overlap", slow, gocronpage.WithOverlap())), twice)
		runFor(t, scheduler, 4*time.Hour)
		shown := alerts(t, w, pages)
		if len(shown) != 1 || shown[0].Name != "overlaps" || *shown[0].ThresholdSeconds != 3600 {
			t.Errorf("the phone shows %+v", shown)
		}
	})
}

type diskError struct{}

func (*diskError) Error() string { return "no space left" }

// A nil pointer is no error, although its type has the method.
func TestATypedErrorPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pagetest.New(t)
		pages := newPages(t, w)
		check := wrap(t, pages, "check", func(fails bool) *diskError {
			if fails {
				return &diskError{}
			}
			return nil
		})
		check(false)
		check(true)
		if shown := alerts(t, w, pages); len(shown) != 1 || shown[0].FailReason != "no space left" {
			t.Errorf("the phone shows %+v", shown)
		}
	})
}

// A job's name, of which gocron takes any, pages whatever its length.
func TestTheListenerCutsALongName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pagetest.New(t)
		pages := newPages(t, w)
		scheduler := newScheduler(t, gocron.WithGlobalJobOptions(gocron.WithEventListeners(pages.Errors())))
		hourly(t, scheduler, gocron.NewTask(func() error { return errors.New("no space left") }), gocron.WithName(strings.Repeat("é", 1<<12)))
		runFor(t, scheduler, time.Hour+time.Minute)
		if shown := alerts(t, w, pages); len(shown) != 1 || shown[0].Name != strings.Repeat("é", 128) {
			t.Errorf("the phone shows %+.200v", shown)
		}
	})
}

// One listener for all jobs pages about errors, and about the panics that gocron recovers.
func TestTheListenerPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pagetest.New(t)
		pages := newPages(t, w)
		scheduler := newScheduler(t, gocron.WithGlobalJobOptions(gocron.WithEventListeners(pages.Errors())))
		hourly(t, scheduler, gocron.NewTask(func() error { return errors.New("no space left") }), gocron.WithName("backup"))
		hourly(t, scheduler, gocron.NewTask(func() { panic("boom") }), gocron.WithName("report"),
			gocron.WithEventListeners(gocron.AfterJobRunsWithPanic(func(uuid.UUID, string, any) {})))
		hourly(t, scheduler, gocron.NewTask(func() error { return nil }), gocron.WithName("good"))
		runFor(t, scheduler, time.Hour+time.Minute)
		reasons := map[string]string{}
		for _, alert := range alerts(t, w, pages) {
			reasons[alert.Name] = alert.FailReason
		}
		if got := fmt.Sprint(reasons); got != "map[backup:no space left report:gocron: panic recovered from boom]" {
			t.Errorf("the phone shows %s", got)
		}
	})
}

func TestBadArguments(t *testing.T) {
	if _, err := gocronpage.New(nil); err == nil {
		t.Error("no notifier")
	}
	for name, opt := range map[string]gocronpage.Option{
		"nil": nil, "queue": gocronpage.WithQueue(0), "panic wait": gocronpage.WithPanicWait(0), "clock": gocronpage.WithClock(nil),
	} {
		if _, err := gocronpage.New(&relayclient.Notifier{}, opt); err == nil {
			t.Errorf("option %s taken", name)
		}
	}
	logger := slog.New(slog.NewTextHandler(new(bytes.Buffer), nil))
	pages, err := gocronpage.New(&relayclient.Notifier{}, gocronpage.WithLogger(logger), gocronpage.WithQueue(1), gocronpage.WithPanicWait(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer pages.Close(t.Context())
	for _, unmade := range []*gocronpage.Pages{nil, {}} {
		if _, err := gocronpage.Wrap(unmade, "backup", func() {}); err == nil {
			t.Error("pages taken that New has not made")
		}
	}
	if _, err := gocronpage.Wrap(pages, strings.Repeat("x", 257), func() {}); err == nil {
		t.Error("a long name")
	}
	if _, err := gocronpage.Wrap[func()](pages, "backup", nil); err == nil {
		t.Error("no function")
	}
	if _, err := gocronpage.Wrap[any](pages, "backup", nil); err == nil {
		t.Error("nothing")
	}
	if _, err := gocronpage.Wrap(pages, "backup", "backup"); err == nil {
		t.Error("no function, but text")
	}
	if _, err := gocronpage.Wrap(pages, "", func() {}); err == nil {
		t.Error("no name")
	}
	for name, opt := range map[string]gocronpage.JobOption{"nil": nil, "max runtime": gocronpage.WithMaxRuntime(-1)} {
		if _, err := gocronpage.Wrap(pages, "backup", func() {}, opt); err == nil {
			t.Errorf("option %s taken", name)
		}
	}
}
