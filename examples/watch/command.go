package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// result is how a command ended.
type result struct {
	exitCode   int    // what this program exits with: the command's own, or a shell's convention
	alertCode  *int   // exit_code of the alert, a signal as its negative number; nil if nothing ran
	failReason string // empty for success
	lines      []string
}

// runCommand runs a command on this program's own streams, passes signals on to
// it and keeps the end of what it prints.
func runCommand(args []string) result {
	var stdout, stderr tail
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin = os.Stdin
	cmd.Stdout = io.MultiWriter(os.Stdout, &stdout)
	cmd.Stderr = io.MultiWriter(os.Stderr, &stderr)

	signals := make(chan os.Signal, 8)
	signal.Notify(signals, passedOn...)
	defer signal.Stop(signals)
	// A reader of our output that goes away must not end us, but the command,
	// which then has a closed pipe of its own.
	brokenPipe := make(chan os.Signal, 1)
	signal.Notify(brokenPipe, syscall.SIGPIPE)
	defer signal.Stop(brokenPipe)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "watch:", err)
		return notStarted(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	onTerminal := isTerminal(os.Stdin)
	for {
		select {
		case sig := <-signals:
			// A terminal has sent what its keys mean to the command already.
			if fromKeys := sig == os.Interrupt || sig == syscall.SIGQUIT; !fromKeys || !onTerminal {
				cmd.Process.Signal(sig)
			}
		case err := <-exited:
			r := ended(cmd.ProcessState, err)
			// The protocol's log_tail is standard error where there is any.
			if r.lines = stderr.lines(); len(r.lines) == 0 {
				r.lines = stdout.lines()
			}
			return r
		}
	}
}

// notStarted follows the shell: 127 for a command that is not there, 126 for
// one that cannot be executed.
func notStarted(err error) result {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return result{exitCode: 127, failReason: "not started: command not found"}
	}
	return result{exitCode: 126, failReason: "not started: " + err.Error()}
}

func ended(state *os.ProcessState, err error) result {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		sig := status.Signal()
		code := -int(sig)
		return result{exitCode: 128 + int(sig), alertCode: &code, failReason: "ended by signal: " + sig.String()}
	}
	code := state.ExitCode()
	r := result{exitCode: code, alertCode: &code}
	if code != 0 {
		r.failReason = fmt.Sprintf("exit code %d", code)
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		// The command ended well, but copying its output did not: a full disk, say.
		fmt.Fprintln(os.Stderr, "watch:", err)
	}
	return r
}

// isTerminal is true for a character device that is not the null device, which
// is near enough to a terminal to tell who sent an interrupt.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}
