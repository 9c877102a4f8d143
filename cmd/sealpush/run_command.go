package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"
)

// result is how a command ended.
type result struct {
	exitCode   int    // what this program exits with: the command's own, or a shell's convention
	alertCode  *int   // exit_code of the alert, a signal as its negative number; nil if nothing ran
	failReason string // empty for success
	lines      []string

	interrupted bool // by the user at the terminal
}

// A job is a command to run.
type job struct {
	args      []string
	env       []string // ours if it is nil
	tailOf    string
	quiet     bool
	timeout   time.Duration // 0 for none
	lateAfter time.Duration // 0 for never
	late      func()        // called once the command has been running for so long
	signals   <-chan os.Signal
}

const (
	killAfter   = 10 * time.Second       // that a command has to end by itself after SIGTERM
	signalGrace = 200 * time.Millisecond // for a signal that a key has sent to the command and to us
)

// run runs the command on this program's own streams, passes signals on to it and keeps the end of what it prints to
// the stream that tailOf names.
func (j job) run() result {
	cmd := exec.Command(j.args[0], j.args[1:]...)
	cmd.Stdin, cmd.Env = os.Stdin, j.env
	outTail, errTail := new(tail), new(tail)
	if j.tailOf == tailBoth {
		errTail = outTail
	}
	outEnd, errEnd := wholeLines{to: outTail, shared: outTail == errTail}, wholeLines{to: errTail, shared: outTail == errTail}
	var own *terminal
	if !j.quiet {
		var err error
		if own, err = openTerminal(); err != nil {
			say("run", "the command does not get a terminal of its own: %v", err)
		}
	}
	var toOut, toErr io.Writer = os.Stdout, os.Stderr
	if j.quiet {
		heldOut, heldErr := &held{to: os.Stdout}, &held{to: os.Stderr}
		defer heldOut.close()
		defer heldErr.close()
		toOut, toErr = heldOut, heldErr
	}
	var stdout, stderr *outlet
	var err error
	if own != nil {
		own.attach(cmd)
		stdout = own.output(toOut, outEnd)
	} else if stdout, err = newOutlet(toOut, outEnd); err != nil {
		return notStarted(err)
	}
	if own != nil && term.IsTerminal(int(os.Stderr.Fd())) {
		stderr, err = own.errors(toErr, errEnd)
	} else {
		stderr, err = newOutlet(toErr, errEnd)
	}
	if err == nil {
		cmd.Stdout, cmd.Stderr = stdout.in, stderr.in
		if err = cmd.Start(); err != nil {
			stderr.abandon()
		}
	}
	if err != nil {
		stdout.abandon()
		if own != nil {
			own.abandon()
		}
		return notStarted(err)
	}
	if own != nil {
		own.start()
	}
	stdout.open()
	stderr.open()
	atTerminal := onTerminal()
	r := j.wait(cmd, atTerminal, atTerminal && own == nil)
	stdout.end()
	stderr.end() // before the wait for the other: both have the same grace
	<-stdout.done
	<-stderr.done
	if own != nil {
		r.interrupted = own.close() || r.interrupted
	}
	if j.quiet && r.failReason != "" {
		toOut.(*held).release()
		toErr.(*held).release()
	}
	if j.tailOf != tailStdout {
		r.lines = errTail.lines()
	}
	if j.tailOf == tailStdout || j.tailOf == tailProtocol && len(r.lines) == 0 {
		r.lines = outTail.lines()
	}
	return r
}

// wait passes signals on until the command has ended. atTerminal says that an interrupt is from its user, and shared
// that the command has been sent what the keys send us.
func (j job) wait(cmd *exec.Cmd, atTerminal, shared bool) result {
	exited := make(chan struct{})
	go func() {
		cmd.Wait() // its error is in the ProcessState
		close(exited)
	}()
	var timeout, kill, late <-chan time.Time
	if j.timeout > 0 {
		timeout = time.After(j.timeout)
	}
	if j.lateAfter > 0 {
		late = time.After(j.lateAfter)
	}
	timedOut, interrupted := false, false
	for {
		select {
		case sig := <-j.signals:
			interrupted = interrupted || atTerminal && sig == os.Interrupt
			if !shared || sig != os.Interrupt && sig != syscall.SIGQUIT {
				cmd.Process.Signal(sig)
			}
		case <-late:
			j.late()
		case <-timeout:
			timedOut = true
			if cmd.Process.Signal(syscall.SIGTERM) != nil {
				cmd.Process.Kill() // Windows has no SIGTERM
			}
			kill = time.After(killAfter)
		case <-kill:
			cmd.Process.Kill()
		case <-exited:
			r := ended(cmd.ProcessState)
			if shared && !interrupted && r.exitCode == 128+int(syscall.SIGINT) {
				// The key has reached the command first. What it sends us is not to end the posting of a page, either.
				select {
				case sig := <-j.signals:
					interrupted = sig == os.Interrupt
				case <-time.After(signalGrace):
				}
			}
			r.interrupted = interrupted
			if timedOut {
				r.failReason = strings.TrimSuffix(fmt.Sprintf("timed out after %v: %s", j.timeout, r.failReason), ": ")
			}
			return r
		}
	}
}

// notStarted follows the shell: 127 for a command that is not there, 126 for one that cannot be executed.
func notStarted(err error) result {
	say("run", "%v", err)
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
