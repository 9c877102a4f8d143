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
