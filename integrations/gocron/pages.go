// Package gocronpage pages paired phones about jobs of github.com/go-co-op/gocron/v2: about a panic, an error, and a run
// that takes too long.
//
//	pages, err := gocronpage.New(notifier)
//	if err != nil {
//		return err
//	}
//	defer pages.Close(ctx) // after the scheduler has shut down
//	backup, err := gocronpage.Wrap(pages, "nightly-backup", runBackup, gocronpage.WithMaxRuntime(time.Hour))
//	if err != nil {
//		return err
//	}
//	_, err = scheduler.NewJob(gocron.CronJob("17 3 * * *", false), gocron.NewTask(backup))
//
// [Pages.Errors] is an event listener for all jobs at once; it pages about errors only.
//
// # What pages
//
//   - An error, in an alert of kind failure.
//   - A panic, with its call stack. It goes on when the page has been sent, or after [DefaultPanicWait], and so reaches
//     gocron.AfterJobRunsWithPanic, or ends the program, as it would have.
//   - A run that takes longer than [WithMaxRuntime], or that has not ended when the next one begins, in an alert of kind
//     sla, once a run. The run goes on. In singleton mode there are never two runs: use WithMaxRuntime.
//
// The alerts of a run share a run id: the second in which it began. A job that fails every few seconds pages each time;
// relayclient.WithStormGuard bounds that.
//
// # What a scheduler waits for
//
// A scheduler never waits for a page. Pages are sent one after the other, and at most [DefaultQueue] wait in a queue.
// While it is full, further pages are dropped and counted, and the log says how many. Only the goroutine of a job that
// panics waits, as described above.
package gocronpage

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/jonboulle/clockwork"

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

// WithLogger sets where dropped pages are logged. It is slog.Default unless it is set, or when it is nil.
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

// WithClock measures runs by the clock that was given to gocron.WithClock, instead of the real one.
func WithClock(clock clockwork.Clock) Option {
	return func(c *config) error {
		if clock == nil {
			return errors.New("WithClock: the clock is nil")
		}
		c.Now = clock.Now
		c.AfterFunc = func(d time.Duration, f func()) func() {
			timer := clock.AfterFunc(d, f)
			return func() { timer.Stop() }
		}
		return nil
	}
}

// Pages pages about jobs. It is safe for concurrent use.
type Pages struct{ pager *jobpage.Pager }

// New returns what pages through notifier. The caller calls Close at exit, before it closes the notifier.
func New(notifier *relayclient.Notifier, opts ...Option) (*Pages, error) {
	c := config{jobpage.DefaultConfig()}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("gocronpage: an option is nil")
		}
		if err := opt(&c); err != nil {
			return nil, fmt.Errorf("gocronpage: %w", err)
		}
	}
	pager, err := jobpage.New(notifier, c.Config)
	if err != nil {
		return nil, fmt.Errorf("gocronpage: %w", err)
	}
	return &Pages{pager}, nil
}

// Close accepts no further pages, and sends those that wait. The error says how many were not sent when ctx ended. It
// may be called more than once. Jobs still run.
func (p *Pages) Close(ctx context.Context) error {
	if err := p.pager.Close(ctx); err != nil {
		return fmt.Errorf("gocronpage: %w", err)
	}
	return nil
}

// Errors is a listener that pages when a job returns an error, under the job's name (gocron.WithName):
//
//	gocron.NewScheduler(gocron.WithGlobalJobOptions(gocron.WithEventListeners(pages.Errors())))
//
// It hears of a panic only if gocron recovers it, because the job has a listener from gocron.AfterJobRunsWithPanic, and
// never of a run that takes too long. A job that was made with [Wrap] needs no such listener: it would page twice.
func (p *Pages) Errors() gocron.EventListener {
	return gocron.AfterJobRunsWithError(func(_ uuid.UUID, name string, err error) { p.pager.Failed(name, err) })
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

// Wrap returns a function for gocron.NewTask that does what f does, and pages. It takes f's parameters, a context among
// them, and returns f's results; the first that is an error is what the page is about. The phone shows the name. gocron
// knows the job by a name of its own: set it with gocron.WithName.
func Wrap[F any](p *Pages, name string, f F, opts ...JobOption) (F, error) {
	var none F
	function := reflect.ValueOf(f)
	if p == nil || p.pager == nil || function.Kind() != reflect.Func || function.IsNil() {
		return none, errors.New("gocronpage: Wrap needs Pages and a function")
	}
	var c jobConfig
	for _, opt := range opts {
		if opt == nil {
			return none, errors.New("gocronpage: an option is nil")
		}
		if err := opt(&c); err != nil {
			return none, fmt.Errorf("gocronpage: %w", err)
		}
	}
	job, err := p.pager.NewJob(name, c.JobConfig)
	if err != nil {
		return none, fmt.Errorf("gocronpage: %w", err)
	}
	call := function.Call
	if function.Type().IsVariadic() {
		call = function.CallSlice
	}
	wrapped := reflect.MakeFunc(function.Type(), func(args []reflect.Value) (results []reflect.Value) {
		job.Run(func() error {
			results = call(args)
			for _, result := range results {
				if result.Kind() == reflect.Pointer && result.IsNil() {
					continue // of a type of error, it is still none
				}
				if err, ok := result.Interface().(error); ok {
					return err
				}
			}
			return nil
		})
		return results
	})
	return wrapped.Interface().(F), nil
}
