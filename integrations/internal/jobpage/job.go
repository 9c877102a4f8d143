package jobpage

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sealpush/sealpush/payload"
)

const (
	maxName   = 256  // bytes
	maxText   = 4096 // bytes of an error's text
	maxReason = 1000 // bytes of its first line: of more, fitting would leave nothing else on the page
	maxLine   = 500  // bytes of each line: fitting drops whole lines
	maxFrames = 20   // of the functions that had called each other when a job panicked
)

// JobConfig is what a [Job] is made of.
type JobConfig struct {
	MaxRuntime time.Duration // 0 for no limit
	MayOverlap bool
}

// SetMaxRuntime sets MaxRuntime, if it can be used.
func (c *JobConfig) SetMaxRuntime(d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("WithMaxRuntime: %v: must be positive", d)
	}
	c.MaxRuntime = d
	return nil
}

// A Job has runs. It is safe for concurrent use.
type Job struct {
	pager  *Pager
	name   string
	config JobConfig

	mu   sync.Mutex
	runs []*run // that have not ended, oldest first
}

type run struct {
	start time.Time
	paged bool // that it takes too long; under the job's mu
}

// NewJob returns a job with the name that the phone shows, of at most 256 bytes.
func (p *Pager) NewJob(name string, config JobConfig) (*Job, error) {
	if name == "" || len(name) > maxName {
		return nil, fmt.Errorf("the job's name has %d bytes: must be 1 to %d", len(name), maxName)
	}
	return &Job{pager: p, name: name, config: config}, nil
}

// Run calls f and returns its error. It pages when f fails, panics, ends its goroutine, or takes too long. A panic goes
// on when its page has been sent, or cannot be sent in time: the program may be about to end.
func (j *Job) Run(f func() error) error {
	r, end := j.begin()
	returned := false
	defer func() {
		end()
		if returned {
			return
		}
		value := recover()
		alert := j.pager.failure(j.name, r.start)
		if value == nil {
			alert.FailReason = "the job called runtime.Goexit"
		} else {
			alert.FailReason, _ = reason(value)
			alert.FailReason = "panic: " + alert.FailReason
			alert.LogTail = stack()
		}
		j.pager.sendNow(alert)
		if value != nil {
			panic(value)
		}
	}()
	err := f()
	returned = true
	if err != nil {
		alert := j.pager.failure(j.name, r.start)
		alert.FailReason, alert.LogTail = reason(err)
		j.pager.enqueue(alert)
	}
	return err
}

// Failed pages about a run of which nothing is known but its error. A name that is too long is cut.
func (p *Pager) Failed(name string, err error) {
	if len(name) > maxName {
		name = strings.ToValidUTF8(name[:maxName], "")
	}
	alert := p.failure(name, p.config.Now())
	alert.StartedAt = time.Time{}
	alert.FailReason, alert.LogTail = reason(err)
	p.enqueue(alert)
}

// begin notes that a run has begun, and pages if an earlier one should have ended by now.
func (j *Job) begin() (r *run, end func()) {
	r = &run{start: j.pager.config.Now()}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.runs) > 0 && !j.config.MayOverlap {
		earlier := j.runs[0]
		j.overrun(earlier, r.start.Sub(earlier.start))
	}
	j.runs = append(j.runs, r)
	stop := func() {}
	if limit := j.config.MaxRuntime; limit > 0 {
		stop = j.pager.config.AfterFunc(limit, func() {
			j.mu.Lock()
			defer j.mu.Unlock()
			if slices.Contains(j.runs, r) {
				j.overrun(r, limit)
			}
		})
	}
	return r, func() {
		stop()
		j.mu.Lock()
		defer j.mu.Unlock()
		j.runs = slices.DeleteFunc(j.runs, func(other *run) bool { return other == r })
	}
}

// overrun pages once a run that it takes longer than threshold. The caller holds mu.
func (j *Job) overrun(r *run, threshold time.Duration) {
	if r.paged {
		return
	}
	r.paged = true
	alert := payload.NewSLA("", j.name, payload.CheckMaxRuntime, threshold, j.pager.config.Now().Sub(r.start))
	alert.RunID = j.pager.runID(r.start)
	alert.StartedAt = r.start
	j.pager.enqueue(alert)
}

func (p *Pager) failure(name string, start time.Time) payload.Alert {
	alert := payload.NewFailure("", name)
	alert.RunID = p.runID(start)
	alert.StartedAt = start
	return alert
}

// runID is the second in which a run began: repetitions within one coalesce, and no others.
func (p *Pager) runID(start time.Time) string {
	return start.UTC().Format("20060102T150405Z-") + p.suffix
}

// reason is the first line of what is said of an error or of a panic's value, and all lines if there are several. Neither
// can be trusted to be printable.
func reason(value any) (first string, lines []string) {
	text := fmt.Sprint(value)
	text = payload.CleanOutput([]byte(cut(text, maxText)))
	first, _, more := strings.Cut(text, "\n")
	if more {
		for _, line := range payload.LogTail(text) {
			lines = append(lines, cut(line, maxLine))
		}
	}
	return cut(first, maxReason), lines
}

func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}

// stack names the functions that had called each other when the calling, deferred function recovered, the innermost at
// the end: the last lines are those that a phone shows in any case.
func stack() []string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(1, pcs)])
	var lines []string
	for panicking := false; len(lines) < maxFrames; {
		frame, more := frames.Next()
		own := strings.HasSuffix(frame.Function, "/jobpage.(*Job).Run")
		switch {
		case frame.Function == "runtime.gopanic":
			panicking, lines = true, nil
		case panicking && own:
			more = false
		case panicking && (len(lines) > 0 || !strings.HasPrefix(frame.Function, "runtime.")):
			lines = append(lines, fmt.Sprintf("%s %s:%d", frame.Function, filepath.Base(frame.File), frame.Line))
		}
		if !more {
			break
		}
	}
	slices.Reverse(lines)
	return lines
}
