package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/sealpush/sealpush/payload"
)

// stopWait is how long a job has to end by itself when the daemon stops.
const stopWait = 5 * time.Second

// A job is a command that runs once in every round.
type job struct {
	name       string
	command    []string
	maxRuntime time.Duration // its service level; 0 for none
}

// parseJob reads NAME=CMD ARGS…. Arguments are what stands between spaces; a command that needs quotes belongs in a
// script.
func parseJob(text string) (job, error) {
	name, command, _ := strings.Cut(text, "=")
	name = strings.TrimSpace(name)
	words := strings.Fields(command)
	if name == "" || len(words) == 0 {
		return job{}, errors.New("want NAME=CMD ARGS…")
	}
	return job{name: name, command: words}, nil
}

// A run is how a job ended.
type run struct {
	job        job
	id         string
	start      time.Time
	exitCode   *int   // nil when there is none
	failReason string // "" for success
	stopped    bool   // because the daemon stopped; not a failure of the job
	logTail    []string
}

// alert is what to report of a run.
func (r run) alert() payload.Alert {
	alert := payload.NewSuccess("", r.job.name)
	if r.failReason != "" {
		alert = payload.NewFailure("", r.job.name)
	}
	alert.RunID = r.id
	alert.StartedAt = r.start
	alert.ExitCode = r.exitCode
	alert.FailReason = r.failReason
	alert.LogTail = r.logTail
	return alert
}

// run runs the job to its end, or until ctx ends. It calls late once, if the job is still running after its maxRuntime.
func (j job) run(ctx context.Context, id string, late func(observed time.Duration)) run {
	var stdout, stderr lastBytes
	cmd := exec.CommandContext(ctx, j.command[0], j.command[1:]...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = jobEnvironment()
	r := run{job: j, id: id, start: time.Now()}
	cmd.Cancel = func() error {
		// Windows has no such signal; there the job is killed after the wait.
		err := cmd.Process.Signal(os.Interrupt)
		r.stopped = !errors.Is(err, os.ErrProcessDone)
		return err
	}
	cmd.WaitDelay = stopWait

	if err := cmd.Start(); err != nil {
		r.failReason = fmt.Sprintf("not started: %v", err)
		r.stopped = errors.Is(err, context.Canceled)
		return r
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	var limit <-chan time.Time
	if j.maxRuntime > 0 {
		limit = time.After(j.maxRuntime)
	}
	var err error
	for running := true; running; {
		select {
		case <-limit:
			limit = nil
			late(time.Since(r.start))
		case err = <-exited:
			running = false
		}
	}
	if observed := time.Since(r.start); limit != nil && observed > j.maxRuntime {
		late(observed) // both were ready when select looked
	}

	if code := cmd.ProcessState.ExitCode(); code >= 0 { // a signal has none
		r.exitCode = &code
	}
	if err != nil {
		r.failReason = err.Error()
	}
	// log_tail is the end of standard error if there is any, as the protocol says.
	if r.logTail = payload.LogTail(payload.CleanOutput(stderr)); len(r.logTail) == 0 {
		r.logTail = payload.LogTail(payload.CleanOutput(stdout))
	}
	return r
}

// jobEnvironment is the daemon's without its secrets: what a job prints is shown on phones.
func jobEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(strings.ToUpper(variable), "SEALPUSH_")
	})
}

// lastBytes keeps the end of what is written to it, in bounded memory.
type lastBytes []byte

func (b *lastBytes) Write(p []byte) (int, error) {
	const enough = 16 << 10
	if *b = append(*b, p...); len(*b) > 4*enough {
		*b = append((*b)[:0], (*b)[len(*b)-enough:]...)
	}
	return len(p), nil
}
