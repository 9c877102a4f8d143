package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
)

// reportTimeout bounds one report, and with it how long the daemon waits for
// reports in flight when it stops.
const reportTimeout = 10 * time.Second

// A scheduler runs its jobs in rounds and reports to the paired phones how they
// ended. All the jobs of a round are one DAG, by the protocol's word.
type scheduler struct {
	dag      string
	jobs     []job
	every    time.Duration
	notifier *relayclient.Notifier
	reports  sync.WaitGroup
}

// run starts a round whenever one is due or now says so, until ctx ends. It
// returns when the jobs have ended and the reports in flight were sent.
func (s *scheduler) run(ctx context.Context, now <-chan struct{}) {
	defer s.reports.Wait()
	due := time.NewTicker(s.every)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-now:
		case <-due.C:
		}
		s.round(ctx)
	}
}

// round runs the jobs side by side.
func (s *scheduler) round(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	key := time.Now().UTC().Format("20060102T150405.000000000Z")
	runs := make([]run, len(s.jobs))
	var running sync.WaitGroup
	for i, j := range s.jobs {
		running.Go(func() { runs[i] = s.runJob(ctx, j, key) })
	}
	running.Wait()

	var failed []string
	for _, r := range runs {
		if r.failReason != "" {
			failed = append(failed, r.job.name+": "+r.failReason)
		}
	}
	if len(failed) == 0 || ctx.Err() != nil {
		return
	}
	event := payload.NewEvent("", s.dag, payload.EventDAGFailure)
	event.DAG = s.dag
	event.RunKey = key
	event.Subject = fmt.Sprintf("%d of %d jobs failed", len(failed), len(s.jobs))
	event.Message = strings.Join(failed, "\n")
	s.report(ctx, event)
}

// runJob runs a job and reports how it ended, and before that if it is late.
func (s *scheduler) runJob(ctx context.Context, j job, key string) run {
	r := j.run(ctx, key, func(observed time.Duration) {
		sla := payload.NewSLA("", j.name, payload.CheckMaxRuntime, j.maxRuntime, observed)
		sla.RunID = key
		s.report(ctx, sla)
	})
	switch {
	case r.failReason == "":
		s.report(ctx, r.alert(), relayclient.WithPriority(relayclient.Passive))
	case ctx.Err() != nil:
		slog.Info("job stopped with the daemon", "name", j.name, "run_id", key)
	default:
		s.report(ctx, r.alert())
	}
	return r
}

// report pages in the background: a slow relay delays no job. A report that was
// begun outlives ctx.
func (s *scheduler) report(ctx context.Context, alert payload.Alert, opts ...relayclient.NotifyOption) {
	s.reports.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
		defer cancel()
		accepted := 0
		outcomes, err := s.notifier.Notify(ctx, alert, opts...)
		if err != nil {
			return // the log has it
		}
		for _, outcome := range outcomes {
			if outcome.Err == nil { // others are in the log already
				accepted++
			}
		}
		slog.Info("reported", "kind", alert.Kind, "name", alert.Name, "phones", len(outcomes), "accepted", accepted)
	})
}
