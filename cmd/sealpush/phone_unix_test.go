//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A phone that waits for alerts holds up neither the daemon's end nor its own.
func TestPhoneAndDaemonStopOnSignal(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			d := startDaemon(t)
			phone, process := startPhone(t, d)
			phone.Await(t, "EVENT ") // and waits for more, which must not hold up the daemon
			if err := d.process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if code := d.ExitCode(t); code != 0 {
				t.Errorf("the daemon's exit code is %d:\n%s", code, d.Output())
			}
			phone.Await(t, "trying again")
			if err := process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if code := phone.ExitCode(t); code != 0 {
				t.Errorf("the phone's exit code is %d:\n%s", code, phone.Output())
			}
		})
	}
}

func TestPhoneKeyIsTheOwnersAlone(t *testing.T) {
	f := newPhoneFixture(t)
	phone := filepath.Join(f.state, "kept")
	if _, code := output(t, f.phone(t, "-state", phone, "-daemon", f.server.URL+"/elsewhere")); code != exitFailed {
		t.Errorf("exit code %d", code)
	}
	if info, err := os.Stat(filepath.Join(phone, "phone.json")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("phone.json: %v, %v", info, err)
	}
}
