//go:build linux || darwin || freebsd || netbsd || openbsd

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// playOnTerminal is what the tool runs to see which terminal it gives.
func playOnTerminal() int {
	for _, file := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if !term.IsTerminal(int(file.Fd())) {
			fmt.Println("no terminal:", file.Name())
		}
	}
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, syscall.SIGWINCH)
	printSize := func() {
		size, err := pty.GetsizeFull(os.Stdout)
		fmt.Println("size", size.Rows, size.Cols, err)
	}
	printSize()
	<-resized
	printSize()
	fmt.Fprintln(os.Stderr, "no space left")
	return 3
}

// A window is a terminal in which the tool runs.
type window struct {
	cmd   *exec.Cmd
	keys  *os.File
	ended chan struct{} // closed when the tool has

	mu      sync.Mutex
	printed bytes.Buffer
	more    chan struct{}
}

func openWindow(t *testing.T, cmd *exec.Cmd) *window {
	t.Helper()
	w := &window{cmd: cmd, ended: make(chan struct{}), more: make(chan struct{}, 1)}
	var err error
	if w.keys, err = pty.StartWithSize(cmd, &pty.Winsize{Rows: 30, Cols: 90}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.keys.Close() })
	go func() {
		defer close(w.ended)
		buf := make([]byte, 4096)
		for {
			n, err := w.keys.Read(buf)
			w.mu.Lock()
			w.printed.Write(buf[:n])
			w.mu.Unlock()
			select {
			case w.more <- struct{}{}:
			default:
			}
			if err != nil {
				cmd.Wait()
				return
			}
		}
	}()
	return w
}

func (w *window) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.printed.String()
}

// await waits until the window shows something.
func (w *window) await(t *testing.T, text string) {
	t.Helper()
	for !strings.Contains(w.text(), text) {
		select {
		case <-w.more:
		case <-w.ended:
			if !strings.Contains(w.text(), text) {
				t.Fatalf("the window shows no %q: %q", text, w.text())
			}
		case <-t.Context().Done():
			t.Fatalf("the window shows no %q: %q", text, w.text())
		}
	}
}

func (w *window) exitCode() int {
	<-w.ended
	return w.cmd.ProcessState.ExitCode()
}

func TestTerminalStaysATerminal(t *testing.T) {
	f := newRunFixture(t)
	w := openWindow(t, f.run(t, "--", os.Args[0], "job", "terminal"))
	before, err := unix.IoctlGetTermios(int(w.keys.Fd()), getTermios)
	if err != nil {
		t.Fatal(err)
	}
	w.await(t, "size 30 90 <nil>\r\n")
	if err := pty.Setsize(w.keys, &pty.Winsize{Rows: 40, Cols: 120}); err != nil {
		t.Fatal(err)
	}
	w.await(t, "size 40 120 <nil>\r\n")
	if code := w.exitCode(); code != 3 || strings.Contains(w.text(), "no terminal") {
		t.Errorf("exit code %d; the window shows %q", code, w.text())
	}
	if alert := f.onlyAlert(t); len(alert.LogTail) != 1 || alert.LogTail[0] != "no space left" {
		t.Errorf("log tail %q", alert.LogTail)
	}
	after, err := unix.IoctlGetTermios(int(w.keys.Fd()), getTermios)
	if err == nil && after.Lflag != before.Lflag {
		t.Errorf("local modes %x before, %x after", before.Lflag, after.Lflag)
	}
}

// The end of what a command prints is not lost when it ends at once.
func TestTerminalShowsAllOfTheOutput(t *testing.T) {
	f := newRunFixture(t)
	w := openWindow(t, f.run(t, "--", os.Args[0], "job", "much"))
	if code := w.exitCode(); code != 4 || strings.Count(w.text(), "y") != 100*1023 || !strings.HasSuffix(w.text(), "the reason\r\n") {
		t.Errorf("exit code %d; the window shows %d bytes", code, len(w.text()))
	}
	if alert := f.onlyAlert(t); alert.LogTail[len(alert.LogTail)-1] != "the reason" {
		t.Errorf("log tail %q", alert.LogTail)
	}
}

// A program that reads keys and a job would each set the other's mode back.
func TestTerminalThatAnotherProgramReads(t *testing.T) {
	f := newRunFixture(t)
	cmd := f.run(t, "--", "sh", "-c", "test -t 0 && ! test -t 1")
	cmd.Args = append([]string{"sh", "-c", `stty raw && exec "$0" "$@"`}, cmd.Args...)
	cmd.Path = "/bin/sh"
	if w := openWindow(t, cmd); w.exitCode() != 0 {
		t.Errorf("exit code %d; the window shows %q", w.exitCode(), w.text())
	}
}

// What is typed reaches the command, and what it asks for without echo is not shown.
func TestTyping(t *testing.T) {
	f := newRunFixture(t)
	w := openWindow(t, f.run(t, "--", "sh", "-c", "stty -echo; echo password; read p; stty echo; echo got $p; cat"))
	w.await(t, "password")
	w.keys.WriteString("hunter2\n")
	w.await(t, "got hunter2")
	w.keys.WriteString("\x04")
	if code := w.exitCode(); code != 0 || strings.Count(w.text(), "hunter2") != 1 {
		t.Errorf("exit code %d; the window shows %q", code, w.text())
	}
}

// The user who has pressed Ctrl-C knows.
func TestControlCPagesNobodyUnlessAsked(t *testing.T) {
	for name, tt := range map[string]struct {
		flags []string
		pages int
	}{
		"own terminal":          {nil, 0},
		"shared terminal":       {[]string{"-quiet"}, 0},
		"asked":                 {[]string{"-on-interrupt"}, 1},
		"asked, shared":         {[]string{"-on-interrupt", "-quiet"}, 1},
		"success after a break": {[]string{"-on", "recovery", "-state", t.TempDir()}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newRunFixture(t)
			// -quiet holds standard output back, so this says that it is there in the title of a file.
			ready := t.TempDir() + "/ready"
			args := append(tt.flags, "--", "sh", "-c", `echo >"$0"; exec sleep 60`, ready)
			w := openWindow(t, f.run(t, args...))
			awaitFile(t, ready)
			w.keys.WriteString("\x03")
			if code := w.exitCode(); code != 130 {
				t.Errorf("exit code %d; the window shows %q", code, w.text())
			}
			if n := len(f.relay.Requests()); n != tt.pages {
				t.Errorf("%d pages", n)
			}
			if tt.flags != nil && tt.flags[0] == "-on" {
				exitCode(t, f.run(t, append(tt.flags, "--", "true")...))
				if n := len(f.relay.Requests()); n != 0 {
					t.Errorf("%d pages for a recovery from an interrupt", n)
				}
			}
		})
	}
}

// A signal that is not of the user's keys pages.
func TestSignalToATerminalsCommand(t *testing.T) {
	f := newRunFixture(t)
	w := openWindow(t, f.run(t, "--", "sh", "-c", "echo waiting; exec sleep 60"))
	w.await(t, "waiting")
	w.cmd.Process.Signal(syscall.SIGTERM)
	if code := w.exitCode(); code != 143 {
		t.Errorf("exit code %d", code)
	}
	if alert := f.onlyAlert(t); *alert.ExitCode != -15 {
		t.Errorf("the phone reads %+v", alert)
	}
}
