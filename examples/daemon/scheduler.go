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

// A scheduler runs its jobs in rounds and reports to the paired phones how they ended. In the words of the protocol,
// the jobs of a round are one DAG.
type scheduler struct {
	dag      string
	jobs     []job
	every    time.Duration
	reporter *reporter
}

// run starts a round whenever one is due or now says so, until ctx ends. It returns when the jobs have ended.
func (s *scheduler) run(ctx context.Context, now <-chan struct{}) {
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
		if r.failReason != "" && !r.stopped {
			failed = append(failed, r.job.name+": "+r.failReason)
		}
	}
	if len(failed) == 0 {
		return
	}
	event := payload.NewEvent("", s.dag, payload.EventDAGFailure)
	event.DAG = s.dag
	event.RunKey = key
	event.Subject = fmt.Sprintf("%d of %d jobs failed", len(failed), len(s.jobs))
	event.Message = strings.Join(failed, "\n")
	s.reporter.report(event)
}

// runJob runs a job and reports how it ended, and before that if it is late.
func (s *scheduler) runJob(ctx context.Context, j job, key string) run {
	r := j.run(ctx, key, func(observed time.Duration) {
		sla := payload.NewSLA("", j.name, payload.CheckMaxRuntime, j.maxRuntime, observed)
		sla.RunID = key
		s.reporter.report(sla)
	})
	switch {
	case r.failReason == "":
		s.reporter.report(r.alert(), relayclient.WithPriority(relayclient.Passive))
	case r.stopped:
		slog.Info("job stopped with the daemon", "name", j.name, "run_id", key)
	default:
		s.reporter.report(r.alert())
	}
	return r
}
