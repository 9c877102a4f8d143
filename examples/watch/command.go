package main

import (
	"errors"
	"fmt"
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
// it and keeps the end of what it prints to the stream that tailOf names.
func runCommand(args []string, tailOf string) result {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin = os.Stdin
	outTail, errTail := new(tail), new(tail)
	if tailOf == tailBoth {
		errTail = outTail
	}
	stdout, err := newOutlet(os.Stdout, outTail)
	if err != nil {
		return notStarted(err)
	}
	stderr, err := newOutlet(os.Stderr, errTail)
	if err != nil {
		stdout.abandon()
		return notStarted(err)
	}
	cmd.Stdout, cmd.Stderr = stdout.in, stderr.in

	signals := make(chan os.Signal, 8)
	signal.Notify(signals, passedOn...)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		stdout.abandon()
		stderr.abandon()
		return notStarted(err)
	}
	stdout.open()
	stderr.open()
	exited := make(chan struct{})
	go func() {
		cmd.Wait() // its error is in the ProcessState
		close(exited)
	}()
	onTerminal := isTerminal(os.Stdin)
	for {
		select {
		case sig := <-signals:
			// A terminal has sent what its keys mean to the command already.
			if !onTerminal || sig != os.Interrupt && sig != syscall.SIGQUIT {
				cmd.Process.Signal(sig)
			}
		case <-exited:
			stdout.finish()
			stderr.finish()
			r := ended(cmd.ProcessState)
			if tailOf != tailStdout {
				r.lines = errTail.lines()
			}
			if tailOf == tailStdout || tailOf == tailProtocol && len(r.lines) == 0 {
				r.lines = outTail.lines()
			}
			return r
		}
	}
}

// notStarted follows the shell: 127 for a command that is not there, 126 for
// one that cannot be executed.
func notStarted(err error) result {
	fmt.Fprintln(os.Stderr, "watch:", err)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return result{exitCode: 127, failReason: "not started: command not found"}
	}
	return result{exitCode: 126, failReason: "not started: " + err.Error()}
}

func ended(state *os.ProcessState) result {
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
