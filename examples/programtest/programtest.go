// Package programtest runs programs as processes, for the tests of the examples and of the tool.
package programtest

import (
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long anything may take before a test gives up on it.
const patience = 30 * time.Second

// A Program is a running process. It is safe for concurrent use.
type Program struct {
	cmd    *exec.Cmd
	exited chan struct{}

	mu      sync.Mutex
	output  strings.Builder
	changed chan struct{} // closed with the next output
}

// Start starts the command and ends it with the test.
func Start(t testing.TB, cmd *exec.Cmd) *Program {
	t.Helper()
	p := &Program{cmd: cmd, exited: make(chan struct{}), changed: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = writer{p}, writer{p}
	cmd.WaitDelay = patience // for the output of a child that outlives it
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.exited)
		cmd.Wait()
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-p.exited
	})
	return p
}

// Await waits until the output, standard error included, matches a regular expression, and returns the match and its
// groups. In it, ^ and $ stand for the start and the end of a line.
func (p *Program) Await(t testing.TB, pattern string) []string {
	t.Helper()
	expression := regexp.MustCompile("(?m)" + pattern)
	deadline := time.After(patience)
	for ended := false; ; {
		p.mu.Lock()
		output, changed := p.output.String(), p.changed
		p.mu.Unlock()
		if match := expression.FindStringSubmatch(output); match != nil {
			return match
		}
		if ended {
			t.Fatalf("%v ended without printing %q, but\n%s", p.cmd, pattern, output)
		}
		select {
		case <-changed:
		case <-p.exited:
			ended = true
		case <-deadline:
			t.Fatalf("%v does not print %q, but\n%s", p.cmd, pattern, output)
		}
	}
}

// ExitCode waits for the process to end.
func (p *Program) ExitCode(t testing.TB) int {
	t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		t.Fatalf("%v does not end, having printed\n%s", p.cmd, p.Output())
	}
	return p.cmd.ProcessState.ExitCode()
}

// Output is what the process has printed so far, standard error included.
func (p *Program) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}

type writer struct{ p *Program }

func (w writer) Write(b []byte) (int, error) {
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	w.p.output.Write(b)
	close(w.p.changed)
	w.p.changed = make(chan struct{})
	return len(b), nil
}
