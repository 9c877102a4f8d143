package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sealpush/sealpush/payload"
)

// When run pages.
const (
	onFailure  = "failure"
	onRecovery = "recovery" // failures, and the first success after one
	onSuccess  = "success"
	onAlways   = "always"
)

type runOptions struct {
	pager       pagerOptions
	name        string
	on          string
	onInterrupt bool
	quiet       bool
	timeout     time.Duration
	lateAfter   time.Duration
	tailOf      string
	state       string
	keepEnv     bool
}

func runCommand() command {
	return command{
		name:    "run",
		summary: "run a command, and page the phones when it fails",
		usage:   "[flags] -- CMD ARGS…",
		text: `The command keeps the streams, the signals and the exit code that it would have without sealpush, so that this can stand in
front of any line of a crontab:

    17 3 * * * sealpush run -name backup -- /usr/local/bin/backup

The page ends with the last lines of standard error if the command wrote any, else with those of standard output. Its name
is that of -name, or the base name of CMD. Arguments may hold secrets, and are never sent.

The command runs even if the relay, the registry or the configuration cannot be used. Standard error says so before it
runs, and again when an alert would have been sent. Without a command, or with a flag that is wrong, nothing runs and the
exit code is 2. The exit code is 127 if the command does not exist, 126 if it cannot be executed, and 128 plus the signal's
number if a signal ended it.

While a relay cannot be reached, run waits for it, for as long as -patience says. A signal ends that wait, and the exit
code is still the command's. With -spool, an alert that could not be posted is kept, and posted by the next run that has the
same spool. It keeps the time at which it was built: a phone shows an alert that is older than ten minutes as outdated. The
spool holds sealed alerts and push tokens, at most 100 alerts for 24 hours, and none of which the relay may have received a
part. An alert that was being posted when run was killed is reported by the next run, and not posted again.

` + terminalText + `
run does not wait for processes that the command leaves in the background: send their output to a file. -timeout
ends only the command, with SIGTERM and 10 seconds later with SIGKILL, and not the processes that it has started.

The variables SEALPUSH_… are not in the command's environment unless -keep-env is given.`,
		ownSignals: true,
		lenient:    true,
		setup: func(s *settings) runFunc {
			o := runOptions{on: onFailure}
			s.pager(&o.pager)
			s.flags.StringVar(&o.name, "name", "", "`name` of the job on the phone (default: the base name of CMD)")
			s.flags.Var(choice{&o.on, []string{onFailure, onRecovery, onSuccess, onAlways}}, "on",
				"`when` to page: failure, recovery (failures, and the first success after one), success or always")
			s.flags.BoolVar(&o.onInterrupt, "on-interrupt", false, "page when the user has ended the command with Ctrl-C, too")
			s.flags.BoolVar(&o.quiet, "quiet", false, "print the command's output only when it fails, as chronic does")
			s.flags.Var(span{&o.timeout, true}, "timeout", "end the command after this `time`, and say so in the page")
			s.flags.Var(span{&o.lateAfter, true}, "late-after", "page when the command has been running for this `time`; the command goes on")
			s.flags.Var(choice{&o.tailOf, []string{tailProtocol, tailStdout, tailStderr, tailBoth}}, "tail",
				"`stream` whose last lines the phone shows: stdout, stderr or both\n(default: stderr if the command wrote to it, else stdout)")
			s.spool(&o.pager.spool)
			s.path(&o.state, "state", "`directory` for what -on recovery remembers of each job (default: "+defaultStateText+")")
			s.flags.BoolVar(&o.keepEnv, "keep-env", false, "leave the variables SEALPUSH_… in the command's environment")
			return func(_ context.Context, args []string) error {
				if len(args) == 0 {
					return usagef("there is no command to run: it follows the flags, after --")
				}
				if s.wrong != nil {
					say("run", "the configuration is wrong: %v", s.wrong)
				}
				return exitError(o.run(s, args))
			}
		},
	}
}

// run runs the command and returns its exit code.
func (o runOptions) run(s *settings, args []string) int {
	if o.name == "" {
		o.name = filepath.Base(args[0])
	}
	if args[0] == "" { // -- "$CMD" of a variable that is not set
		o.name = "(empty command)"
	}
	o.name = jobName(o.name)
	p := s.newPager(o.pager)
	defer p.close()
	if err := p.look(lookTimeout); err != nil {
		say("run", "nobody can be paged: %v", err)
	}
	// A reader of our output that goes away, as head does, must not end us before the page; with a handler, which the
	// command does not inherit, writing fails.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, passedOn...)

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	job := job{args: args, tailOf: o.tailOf, timeout: o.timeout, lateAfter: o.lateAfter, quiet: o.quiet, signals: signals}
	if !o.keepEnv {
		job.env = withoutOwn(os.Environ())
	}
	var paging sync.WaitGroup
	job.late = func() { paging.Go(func() { p.page(ctx, o.lateAlert()) }) }
	start := time.Now()
	r := job.run()
	go p.endWith(ctx, signals, cancel)
	memory := o.memory()
	if o.wants(r, memory.failed()) {
		p.page(ctx, o.alertFor(start, r))
	} else {
		p.flush(ctx)
	}
	if !o.unasked(r) {
		memory.note(r.failReason != "")
	}
	paging.Wait()
	return r.exitCode
}

// wants says whether a result is to be paged.
func (o runOptions) wants(r result, failedBefore bool) bool {
	failed := r.failReason != ""
	switch {
	case o.unasked(r):
		return false
	case o.on == onSuccess:
		return !failed
	case o.on == onRecovery:
		return failed || failedBefore
	}
	return failed || o.on == onAlways
}

// unasked reports whether the user at the terminal has ended the command, and so needs no page.
func (o runOptions) unasked(r result) bool {
	return r.failReason != "" && r.interrupted && !o.onInterrupt
}

func (o runOptions) alertFor(start time.Time, r result) payload.Alert {
	alert := payload.NewSuccess("", o.name)
	if r.failReason != "" {
		alert = payload.NewFailure("", o.name)
	}
	alert.StartedAt = start
	alert.ExitCode = r.alertCode
	alert.FailReason = r.failReason
	alert.LogTail = r.lines
	return alert
}

// lateAlert is for a command that is still running.
func (o runOptions) lateAlert() payload.Alert {
	return payload.NewSLA("", o.name, payload.CheckMaxRuntime, o.lateAfter, o.lateAfter)
}

// jobName cuts a name to what fits beside a log: it is the one thing that fitting never shortens.
func jobName(name string) string {
	const most = 64
	if runes := []rune(name); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return name
}

// withoutOwn returns an environment without this tool's variables, which may hold secrets.
func withoutOwn(environ []string) []string {
	kept := []string{}
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if runtime.GOOS == "windows" {
			name = strings.ToUpper(name)
		}
		if !strings.HasPrefix(name, "SEALPUSH_") {
			kept = append(kept, entry)
		}
	}
	return kept
}

// say prints a line to standard error.
func say(command, format string, args ...any) {
	fmt.Fprintf(os.Stderr, "sealpush "+command+": "+format+"\n", args...)
}
