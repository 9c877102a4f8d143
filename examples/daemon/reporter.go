package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
)

const (
	reportTimeout = 30 * time.Second // for one report
	giveUpTimeout = 10 * time.Second // for all of them, once the daemon stops
)

// A reporter pages the paired phones in the background: a slow relay delays no job. Reports go on after the scheduler
// has stopped; close waits for them.
type reporter struct {
	notifier *relayclient.Notifier
	ctx      context.Context // ends when close gives up
	giveUp   context.CancelCauseFunc
	reports  sync.WaitGroup
}

func newReporter(notifier *relayclient.Notifier) *reporter {
	r := &reporter{notifier: notifier}
	r.ctx, r.giveUp = context.WithCancelCause(context.Background())
	return r
}

// report must not be called after close.
func (r *reporter) report(alert payload.Alert, opts ...relayclient.NotifyOption) {
	r.reports.Go(func() {
		ctx, cancel := context.WithTimeout(r.ctx, reportTimeout)
		defer cancel()
		outcomes, err := r.notifier.Notify(ctx, alert, opts...)
		if err != nil {
			return // the notifier has logged it
		}
		accepted := 0
		for _, outcome := range outcomes {
			if outcome.Err == nil { // others are in the log already
				accepted++
			}
		}
		slog.Info("reported", "kind", alert.Kind, "name", alert.Name, "run_id", cmp.Or(alert.RunID, alert.RunKey),
			"phones", len(outcomes), "accepted", accepted)
	})
}

// close returns when all reports were sent, or given up, which the log says of each phone.
func (r *reporter) close() {
	late := time.AfterFunc(giveUpTimeout, func() { r.giveUp(errors.New("the daemon is stopping")) })
	defer late.Stop()
	r.reports.Wait()
}
