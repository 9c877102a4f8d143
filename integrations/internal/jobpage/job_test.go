package jobpage_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/integrations/internal/jobpage"
	"github.com/sealpush/sealpush/integrations/internal/pagetest"
	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// start returns a job of a pager, and what to call at the end, which returns what the phone shows.
func start(t *testing.T, w *pagetest.World, config jobpage.Config, of jobpage.JobConfig) (*jobpage.Job, func() []payload.Alert) {
	t.Helper()
	pager, err := jobpage.New(w.Notifier, config)
	if err != nil {
		t.Fatal(err)
	}
	job, err := pager.NewJob("backup", of)
	if err != nil {
		t.Fatal(err)
	}
	return job, func() []payload.Alert {
		t.Helper()
		for range 2 {
			//lint:ignore SA1012 a nil context is taken
			if err := pager.Close(nil); err != nil {
				t.Error(err)
			}
		}
		return w.Alerts(t)
	}
}

func TestAnErrorPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job, end := start(t, pagetest.New(t), jobpage.DefaultConfig(), jobpage.JobConfig{})
		began := time.Now()
		full := errors.New("\x1b[31mno space left\x1b[0m " + strings.Repeat("é", 1<<20))
		if err := job.Run(func() error { time.Sleep(time.Minute); return full }); err != full {
			t.Errorf("Run returned %.40v", err)
		}
		if err := job.Run(func() error { return nil }); err != nil {
			t.Error(err)
		}
		alerts := end()
		if len(alerts) != 1 || alerts[0].Kind != payload.KindFailure || alerts[0].Name != "backup" || alerts[0].Host != "node-a" ||
			!strings.HasPrefix(alerts[0].FailReason, "no space left é") || !alerts[0].StartedAt.Equal(began) {
			t.Errorf("the phone shows %+.200v", alerts)
		}
		job.Run(func() error { return full }) // after Close
		synctest.Wait()
		if len(end()) != 1 {
			t.Error("a run after Close has paged")
		}
	})
}

func TestAnErrorOfSeveralLinesPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job, end := start(t, pagetest.New(t), jobpage.DefaultConfig(), jobpage.JobConfig{})
		job.Run(func() error { return errors.Join(errors.New("no space left"), errors.New("gave up")) })
		if alerts := end(); len(alerts) != 1 || alerts[0].FailReason != "no space left" || !slices.Equal(alerts[0].LogTail, []string{"no space left", "gave up"}) {
			t.Errorf("the phone shows %+v", alerts)
		}
	})
}

// What is long leaves room for the rest.
func TestALongErrorShowsSomeOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job, end := start(t, pagetest.New(t), jobpage.DefaultConfig(), jobpage.JobConfig{})
		job.Run(func() error {
			return errors.New(strings.Repeat("no space left ", 180) + "\ngave up " + strings.Repeat("x", 1000))
		})
		alerts := end()
		if len(alerts) != 1 || !strings.HasPrefix(alerts[0].FailReason, "no space left") || len(alerts[0].LogTail) == 0 ||
			!strings.HasPrefix(alerts[0].LogTail[len(alerts[0].LogTail)-1], "gave up") {
			t.Errorf("the phone shows %+v", alerts)
		}
	})
}

type badError struct{ text *string }

func (e *badError) Error() string { return *e.text }

func TestAnErrorThatPanicsPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job, end := start(t, pagetest.New(t), jobpage.DefaultConfig(), jobpage.JobConfig{})
		job.Run(func() error { return &badError{} })
		if alerts := end(); len(alerts) != 1 || !strings.Contains(alerts[0].FailReason, "PANIC=") {
			t.Errorf("the phone shows %+v", alerts)
		}
	})
}

//go:noinline
func crash(m map[string]int) { m["x"]++ }

// A panic reaches whoever recovers it as it was, and has been sent by then.
func TestAPanicPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pagetest.New(t)
		job, end := start(t, w, jobpage.DefaultConfig(), jobpage.JobConfig{})
		recovered := func() (value any) {
			defer func() {
				value = recover()
				if len(w.Alerts(t)) != 1 {
					t.Error("the panic went on before the page had been sent")
				}
			}()
			job.Run(func() error { crash(nil); return nil })
			return nil
		}()
		if err, ok := recovered.(runtime.Error); !ok || !strings.Contains(err.Error(), "nil map") {
			t.Errorf("recovered %v", recovered)
		}
		alert := end()[0]
		last := alert.LogTail[len(alert.LogTail)-1]
		if alert.Kind != payload.KindFailure || alert.FailReason != "panic: assignment to entry in nil map" ||
			!strings.Contains(last, "jobpage_test.crash job_test.go:") || len(alert.LogTail) != 2 {
			t.Errorf("the phone shows %+v", alert)
		}
	})
}

func TestAPanicWaitsForItsPageWithinBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pagetest.New(t)
		job, end := start(t, w, jobpage.DefaultConfig(), jobpage.JobConfig{})
		hold := make(chan struct{})
		w.Relay.Script(1, relaytest.Answer{Hold: hold})
		began := time.Now()
		func() {
			defer func() {
				if value := recover(); value != "boom" {
					t.Errorf("recovered %v", value)
				}
			}()
			job.Run(func() error { panic("boom") })
		}()
		if took := time.Since(began); took != jobpage.DefaultPanicWait {
			t.Errorf("the panic went on after %v", took)
		}
		close(hold)
		end()
	})
}

// Close waits for the page of a panic that is about to end the program.
func TestCloseWaitsForAPanicsPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pagetest.New(t)
		job, end := start(t, w, jobpage.DefaultConfig(), jobpage.JobConfig{})
		w.Relay.Script(1, relaytest.Answer{Delay: time.Second})
		began := time.Now()
		go func() {
			defer func() { recover() }()
			job.Run(func() error { panic("boom") })
		}()
		synctest.Wait()
		if alerts := end(); len(alerts) != 1 || time.Since(began) != time.Second {
			t.Errorf("after %v, the phone shows %+v", time.Since(began), alerts)
		}
	})
}

func TestGoexitPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		job, end := start(t, pagetest.New(t), jobpage.DefaultConfig(), jobpage.JobConfig{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			job.Run(func() error { runtime.Goexit(); return nil })
			t.Error("the goroutine goes on")
		}()
		<-ended
		if alerts := end(); len(alerts) != 1 || !strings.Contains(alerts[0].FailReason, "Goexit") {
			t.Errorf("the phone shows %+v", alerts)
		}
	})
}

func TestARunThatTakesTooLongPagesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pagetest.New(t)
		job, end := start(t, w, jobpage.DefaultConfig(), jobpage.JobConfig{MaxRuntime: time.Hour})
		began := time.Now()
		failed := errors.New("gave up")
		err := job.Run(func() error {
			time.Sleep(59 * time.Minute)
			job.Run(func() error { return nil }) // the next one, which is due
			if n := len(w.Alerts(t)); n != 0 {
				t.Errorf("%d pages too early", n)
			}
			synctest.Wait()
			time.Sleep(time.Hour)
			return failed
		})
		if err != failed {
			t.Error(err)
		}
		alerts := end()
		if len(alerts) != 2 || alerts[0].Kind != payload.KindSLA || alerts[1].Kind != payload.KindFailure || alerts[0].RunID != alerts[1].RunID {
			t.Fatalf("the phone shows %+v", alerts)
		}
		if sla := alerts[0]; sla.SLACheck != payload.CheckMaxRuntime || *sla.ThresholdSeconds != 59*60 || !sla.StartedAt.Equal(began) {
			t.Errorf("the phone shows %+v", sla)
		}
	})
}

func TestTheLimitIsARuns(t *testing.T) {
	for _, tt := range []struct {
		takes time.Duration
		pages int
	}{{time.Hour - 1, 0}, {time.Hour + 1, 1}} {
		synctest.Test(t, func(t *testing.T) {
			job, end := start(t, pagetest.New(t), jobpage.DefaultConfig(), jobpage.JobConfig{MaxRuntime: time.Hour, MayOverlap: true})
			for range 3 { // several runs together are not one
				go job.Run(func() error { time.Sleep(time.Minute); return nil })
			}
			job.Run(func() error { time.Sleep(tt.takes); return nil })
			time.Sleep(2 * time.Hour)
			alerts := end()
			if len(alerts) != tt.pages || tt.pages > 0 && *alerts[0].ObservedSeconds != 3600 {
				t.Errorf("after %v, the phone shows %+v", tt.takes, alerts)
			}
		})
	}
}

// A relay that does not answer holds up no job, and what cannot wait is counted.
func TestAJobNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pagetest.New(t)
		var log bytes.Buffer
		config := jobpage.DefaultConfig()
		config.Queue, config.Logger = 2, slog.New(slog.NewTextHandler(&log, nil))
		job, end := start(t, w, config, jobpage.JobConfig{})
		hold := make(chan struct{})
		w.Relay.Script(1, relaytest.Answer{Hold: hold})
		began := time.Now()
		for range 50 {
			job.Run(func() error { return errors.New("no space left") })
			synctest.Wait()
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("50 runs took %v", took)
		}
		close(hold)
		if alerts := end(); len(alerts) != 3 { // one under way, two in the queue
			t.Errorf("%d pages", len(alerts))
		}
		if !strings.Contains(log.String(), "dropped=47") {
			t.Errorf("the log says %s", &log)
		}
	})
}

func TestCloseGivesUpWhenTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pagetest.New(t)
		pager, err := jobpage.New(w.Notifier, jobpage.DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		hold := make(chan struct{})
		w.Relay.Script(1, relaytest.Answer{Hold: hold})
		pager.Failed("backup", errors.New("no space left"))
		pager.Failed("backup", errors.New("no space left"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := pager.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "2 pages") {
			t.Errorf("%v", err)
		}
		close(hold)
		if err := pager.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n := len(w.Alerts(t)); n != 2 {
			t.Errorf("%d pages", n)
		}
	})
}

// Jobs of two machines that fail at the same second are two alerts to a relay.
func TestRunIDsOfTwoProcessesDiffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := pagetest.New(t)
		for range 2 {
			job, end := start(t, w, jobpage.DefaultConfig(), jobpage.JobConfig{})
			job.Run(func() error { return errors.New("no space left") })
			end()
		}
		var ids []string
		for _, alert := range w.Alerts(t) {
			ids = append(ids, alert.RunID)
		}
		slices.Sort(ids)
		if len(ids) != 2 || len(slices.Compact(ids)) != 2 {
			t.Errorf("run ids %v", ids)
		}
	})
}
