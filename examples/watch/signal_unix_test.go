//go:build unix

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestSignalIsPassedOnAndReported(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			f := newFixture(t)
			cmd := f.watch(t, "--", os.Args[0], "job", "wait")
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
			f := newFixture(t)
			cmd := f.watch(t, "--", os.Args[0], "job", "await-signal")
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

// As in "watch … | head -n 1".
func TestReaderThatGoesAway(t *testing.T) {
	f := newFixture(t)
	cmd := f.watch(t, "--", os.Args[0], "job", "chatter")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	out.Close()
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 128+int(syscall.SIGPIPE) {
		t.Errorf("exit code %d, want the command's", code)
	}
	if alert := f.onlyAlert(t); !strings.Contains(alert.FailReason, "broken pipe") {
		t.Errorf("the phone reads %+v", alert)
	}
}
