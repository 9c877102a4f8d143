//go:build unix

package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestSignalIsPassedOnAndReported(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		t.Run(sig.String(), func(t *testing.T) {
			f := newRunFixture(t)
			cmd := f.run(t, "--", "sh", "-c", "echo waiting; exec sleep 60")
			firstLine(t, cmd)
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 128+int(sig) {
				t.Errorf("exit code %d", code)
			}
			alert := f.onlyAlert(t)
			if *alert.ExitCode != -int(sig) || !strings.Contains(alert.FailReason, sig.String()) || alert.LogTail[0] != "waiting" {
				t.Errorf("the phone reads %+v", alert)
			}
		})
	}
}

func TestSignalsThatTheCommandHandles(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		t.Run(sig.String(), func(t *testing.T) {
			f := newRunFixture(t)
			cmd := f.run(t, "--", os.Args[0], "job", "await-signal")
			firstLine(t, cmd)
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 9 {
				t.Errorf("exit code %d", code)
			}
			if alert := f.onlyAlert(t); alert.LogTail[len(alert.LogTail)-1] != "got "+sig.String() {
				t.Errorf("the phone reads %+v", alert)
			}
		})
	}
}

// As in "sealpush run … | head -1": the command is told as it would have been without
// run, and the page goes out.
func TestReaderThatGoesAway(t *testing.T) {
	f := newRunFixture(t)
	cmd := f.run(t, "--", os.Args[0], "job", "chatter")
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	out.Close()
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGPIPE) {
		t.Errorf("exit code %d", code)
	}
	if alert := f.onlyAlert(t); *alert.ExitCode != -int(syscall.SIGPIPE) || alert.LogTail[0] != "more" {
		t.Errorf("the phone reads %+v", alert)
	}
}

// What the command leaves running holds its streams open.
func TestBackgroundProcessDoesNotHoldUpThePage(t *testing.T) {
	f := newRunFixture(t)
	cmd := f.run(t, "--", os.Args[0], "job", "background")
	out, err := cmd.Output()
	if code := cmd.ProcessState.ExitCode(); code != 5 {
		t.Errorf("exit code %d, %v", code, err)
	}
	alert := f.onlyAlert(t)
	if !strings.Contains(strings.Join(alert.LogTail, "\n"), "the reason ") || !strings.Contains(string(out), "the reason ") {
		t.Errorf("output %q; the phone reads %+v", out, alert)
	}
	for _, line := range alert.LogTail {
		var left int
		if n, _ := fmt.Sscanf(line, "the reason %d", &left); n == 1 {
			syscall.Kill(left, syscall.SIGKILL)
		}
	}
}
