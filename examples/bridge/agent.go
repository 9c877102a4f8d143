package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/coder/websocket"
)

var errAgentEnded = errors.New("the agent has ended")

// agent is a running command. It is safe for concurrent use.
type agent struct {
	inbox  chan []byte      // lines on their way to its standard input
	exited chan struct{}    // closed when the process is gone
	done   chan struct{}    // closed when, moreover, its standard output has been read to the end
	state  *os.ProcessState // once exited is closed
}

// startAgent runs a command and calls say with each line that it prints, one at a time. When ctx ends it asks the
// command to end, and kills it after a grace period.
func startAgent(ctx context.Context, args []string, maxLine int, say func(line []byte)) (*agent, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = grace
	cmd.Cancel = func() error {
		cmd.Process.Signal(syscall.SIGTERM) // Windows has no signals: there the command sees the end of its input
		return nil
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Not StdoutPipe, which is closed when the process ends, so that its last lines would be lost.
	stdout, childStdout, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout = childStdout
	err = cmd.Start()
	childStdout.Close()
	if err != nil {
		stdout.Close()
		return nil, err
	}

	a := &agent{inbox: make(chan []byte, 64), exited: make(chan struct{}), done: make(chan struct{})}
	go func() {
		cmd.Wait() // the process state says how it ended
		a.state = cmd.ProcessState
		close(a.exited)
	}()
	go func() {
		defer stdout.Close()
		if err := eachLine(stdout, maxLine, say); err != nil {
			slog.Error("cannot read the agent's output", "error", err)
		}
		<-a.exited
		close(a.done)
	}()
	go func() {
		defer stdin.Close()
		for {
			select {
			case line := <-a.inbox:
				if _, err := stdin.Write(line); err != nil {
					slog.Warn("a message did not reach the agent", "error", err)
				}
			case <-ctx.Done():
				return
			case <-a.exited:
				return
			}
		}
	}()
	return a, nil
}

// tell hands a message to the agent as one line. It waits until there is room.
func (a *agent) tell(ctx context.Context, message []byte) error {
	line := append(make([]byte, 0, len(message)+1), message...)
	for i, b := range line {
		if b == '\n' || b == '\r' {
			line[i] = ' '
		}
	}
	select {
	case a.inbox <- append(line, '\n'):
		return nil
	case <-a.exited:
		return errAgentEnded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wait returns when the process is gone and its output read, but only for a while if another process still holds the
// output open.
func (a *agent) wait() {
	<-a.exited
	select {
	case <-a.done:
	case <-time.After(grace):
	}
}

// status is the exit status of an agent that is gone, by a shell's convention.
func (a *agent) status() int {
	if status, ok := a.state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return a.state.ExitCode()
}

// goodbye is why the connection closes when the agent has ended.
func (a *agent) goodbye() closing {
	if a.state.Success() {
		return closing{websocket.StatusNormalClosure, "the agent has ended"}
	}
	return closing{websocket.StatusInternalError, "the agent has failed: " + a.state.String()}
}
