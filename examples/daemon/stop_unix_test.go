//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

func TestStopsOnSignal(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel() // a round of the daemon's own jobs takes half a second
			d := startDaemon(t)
			phone := relaytest.NewPhone()
			d.pair(t, phone)
			d.Await(t, "reported kind=event")
			if err := d.process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if code := d.ExitCode(t); code != 0 {
				t.Errorf("exit code %d:\n%s", code, d.Output())
			}
			store, err := pairing.OpenFile(filepath.Join(d.state, "devices.json"))
			if err != nil {
				t.Fatal(err)
			}
			kept, err := store.Load(t.Context())
			if err != nil || len(kept.Devices) != 1 || kept.Devices[0].PublicKey != phone.PublicKey() {
				t.Errorf("devices.json holds %v, %v", kept, err)
			}
		})
	}
}

func TestStopWaitsForReports(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	release := make(chan struct{})
	relay.Script(relaytest.Always, relaytest.Answer{Hold: release})
	phone := relaytest.NewPhone()
	d := startDaemon(t, "-relay", relay.URL, "-job", "backup=false")
	d.pair(t, phone)
	if err := relay.WaitInFlight(t.Context(), 2); err != nil { // the failure and the event
		t.Fatal(err)
	}
	if err := d.process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	d.Await(t, "stopping")
	close(release)
	if code := d.ExitCode(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, d.Output())
	}
	d.Await(t, "reported kind=failure name=backup run_id=.* phones=1 accepted=1")
	d.Await(t, "reported kind=event name=nightly run_id=.* phones=1 accepted=1")
}

// A round that the signal cuts short tells of the jobs that failed before, and not of those that were stopped.
func TestStopReportsWhatFailedBefore(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	phone := relaytest.NewPhone()
	d := startDaemon(t, "-relay", relay.URL, "-job", "backup=false", "-job", "sync=sleep 60")
	d.pair(t, phone)
	if _, err := relay.WaitInbox(t.Context(), phone.PushToken(), 1); err != nil { // the failure
		t.Fatal(err)
	}
	if err := d.process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := d.ExitCode(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, d.Output())
	}
	d.Await(t, "job stopped with the daemon.* name=sync run_id=")
	received, err := phone.Received(relay)
	if err != nil || len(received) != 2 || received[1].Alert.Subject != "1 of 2 jobs failed" {
		t.Errorf("the phone received %+v, %v", received, err)
	}
}

// What a job prints ends on a phone, so it must not find the daemon's tokens.
func TestJobsDoNotInheritSecrets(t *testing.T) {
	t.Setenv(tokensVariable, "laptop=0123456789abcdef")
	t.Setenv("BACKUP_TARGET", "nas")
	script := filepath.Join(t.TempDir(), "spill")
	if err := os.WriteFile(script, []byte("echo \"tokens: $SEALPUSH_TOKENS target: $BACKUP_TARGET\"; env | grep -c SEALPUSH; exit 3"), 0o600); err != nil {
		t.Fatal(err)
	}
	relay := relaytest.NewRelay()
	defer relay.Close()
	phone := relaytest.NewPhone()
	d := startDaemon(t, "-relay", relay.URL, "-job", "spill=sh "+script)
	d.pairAs(t, phone, "0123456789abcdef")
	if _, err := relay.WaitInbox(t.Context(), phone.PushToken(), 2); err != nil { // the failure and the event
		t.Fatal(err)
	}
	received, err := phone.Received(relay)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for _, n := range received {
		seen = append(seen, n.Alert.LogTail...)
	}
	if got := strings.Join(seen, "|"); got != "tokens:  target: nas|0" {
		t.Errorf("the job sees %q", got)
	}
}

func TestFilesAreTheOwnersAlone(t *testing.T) {
	d := startDaemon(t)
	d.pair(t, relaytest.NewPhone())
	for _, name := range []string{"token", "devices.json"} {
		info, err := os.Stat(filepath.Join(d.state, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if info, err := os.Stat(d.state); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v", err)
	}
}
