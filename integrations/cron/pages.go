// Package cronpage pages paired phones about jobs of github.com/robfig/cron/v3: about a panic, an error, and a run that
// takes too long.
//
//	pages, err := cronpage.New(notifier)
//	if err != nil {
//		return err
//	}
//	defer pages.Close(ctx) // after the scheduler has stopped
//	backup, err := pages.Job("nightly-backup", runBackup, cronpage.WithMaxRuntime(time.Hour))
//	if err != nil {
//		return err
//	}
//	scheduler := cron.New()
//	scheduler.AddJob("17 3 * * *", backup)
//
// A job that has no error to return is wrapped with [Pages.Wrapper], a cron.JobWrapper.
//
// # What pages
//
//   - An error, in an alert of kind failure.
//   - A panic, with its call stack. It goes on when the page has been sent, or after [DefaultPanicWait], and so reaches
//     cron.Recover, or ends the program, as it would have.
//   - A run that takes longer than [WithMaxRuntime], or that has not ended when the next one begins, in an alert of kind
//     sla, once a run. The run goes on.
//
// The alerts of a run share a run id: the second in which it began. A job that fails every few seconds pages each time;
// relayclient.WithStormGuard bounds that.
//
// # What a scheduler waits for
//
// A scheduler never waits for a page. Pages are sent one after the other, and at most [DefaultQueue] wait in a queue.
// While it is full, further pages are dropped and counted, and the log says how many. Only the goroutine of a job that
// panics waits, as described above.
package cronpage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/sealpush/sealpush/integrations/internal/jobpage"
	"github.com/sealpush/sealpush/relayclient"
)

// Defaults of [Pages].
const (
	DefaultQueue     = jobpage.DefaultQueue     // pages
	DefaultPanicWait = jobpage.DefaultPanicWait // how long a panic waits for its page
)

// An Option changes a default of [New].
type Option func(*config) error

type config struct{ jobpage.Config }

// WithLogger sets where errors of a [Pages.Job] and dropped pages are logged. It is slog.Default unless it is set, or
// when it is nil.
func WithLogger(logger *slog.Logger) Option {
	return func(c *config) error {
		c.Logger = logger
		return nil
	}
}

// WithQueue sets how many pages may wait to be sent, from 1.
func WithQueue(n int) Option {
	return func(c *config) error { return c.SetQueue(n) }
}

// WithPanicWait sets how long a panic waits for its page.
func WithPanicWait(d time.Duration) Option {
	return func(c *config) error { return c.SetPanicWait(d) }
}

// Pages pages about jobs. It is safe for concurrent use.
type Pages struct{ pager *jobpage.Pager }

// New returns what pages through notifier. The caller calls Close at exit, before it closes the notifier.
func New(notifier *relayclient.Notifier, opts ...Option) (*Pages, error) {
	c := config{jobpage.DefaultConfig()}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("cronpage: an option is nil")
		}
		if err := opt(&c); err != nil {
			return nil, fmt.Errorf("cronpage: %w", err)
		}
	}
	pager, err := jobpage.New(notifier, c.Config)
	if err != nil {
		return nil, fmt.Errorf("cronpage: %w", err)
	}
	return &Pages{pager}, nil
}

// Close accepts no further pages, and sends those that wait. The error says how many were not sent when ctx ended. It
// may be called more than once. Jobs still run.
func (p *Pages) Close(ctx context.Context) error {
	if err := p.pager.Close(ctx); err != nil {
		return fmt.Errorf("cronpage: %w", err)
	}
	return nil
}

// A JobOption sets up one job.
type JobOption func(*jobConfig) error

type jobConfig struct{ jobpage.JobConfig }

// WithMaxRuntime pages when a run takes longer than d. Without it, there is no limit.
func WithMaxRuntime(d time.Duration) JobOption {
	return func(c *jobConfig) error { return c.SetMaxRuntime(d) }
}

// WithOverlap says that runs of the job may overlap: there is no page when one begins before the last has ended.
func WithOverlap() JobOption {
	return func(c *jobConfig) error {
		c.MayOverlap = true
		return nil
	}
}

func (p *Pages) job(name string, opts []JobOption) (*jobpage.Job, error) {
	if p == nil || p.pager == nil {
		return nil, errors.New("cronpage: these Pages were not made by New")
	}
	var c jobConfig
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("cronpage: an option is nil")
		}
		if err := opt(&c); err != nil {
			return nil, fmt.Errorf("cronpage: %w", err)
		}
	}
	job, err := p.pager.NewJob(name, c.JobConfig)
	if err != nil {
		return nil, fmt.Errorf("cronpage: %w", err)
	}
	return job, nil
}

// Job makes a job of a function. Its error is logged, for cron has no place for it. The phone shows the name.
//
// Within cron.SkipIfStillRunning and cron.DelayIfStillRunning there are never two runs: use [WithMaxRuntime].
func (p *Pages) Job(name string, f func() error, opts ...JobOption) (cron.Job, error) {
	if f == nil {
		return nil, errors.New("cronpage: Job: the function is nil")
	}
	job, err := p.job(name, opts)
	if err != nil {
		return nil, err
	}
	return cron.FuncJob(func() {
		if err := job.Run(f); err != nil {
			p.pager.Logger().Error("job failed", "name", name, "error", err)
		}
	}), nil
}

// Wrapper pages about the one job that it wraps, under the name that the phone shows:
//
//	cron.NewChain(cron.Recover(logger), report, cron.SkipIfStillRunning(logger)).Then(job)
//
// Put it after cron.Recover, which lets no panic through, and before cron.SkipIfStillRunning or
// cron.DelayIfStillRunning, so that it sees the run that is skipped or has to wait.
func (p *Pages) Wrapper(name string, opts ...JobOption) (cron.JobWrapper, error) {
	job, err := p.job(name, opts)
	if err != nil {
		return nil, err
	}
	return func(next cron.Job) cron.Job {
		return cron.FuncJob(func() {
			job.Run(func() error {
				next.Run()
				return nil
			})
		})
	}, nil
}
