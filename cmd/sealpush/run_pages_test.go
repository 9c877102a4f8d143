package main

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// awaitFile waits until there is a file.
func awaitFile(t *testing.T, path string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return
		} else if !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("%s is not made", path)
		}
	}
}

// alerts are what reached the phone.
func (f runFixture) alerts(t *testing.T) []payload.Alert {
	t.Helper()
	received, err := f.phone.Received(f.relay)
	if err != nil {
		t.Fatal(err)
	}
	var alerts []payload.Alert
	for _, one := range received {
		alerts = append(alerts, one.Alert)
	}
	return alerts
}

// kinds are those of the alerts that reached the phone.
func (f runFixture) kinds(t *testing.T) (kinds []payload.Kind) {
	for _, alert := range f.alerts(t) {
		kinds = append(kinds, alert.Kind)
	}
	return kinds
}

func TestNameIsTheCommandsAndArgumentsStayHere(t *testing.T) {
	f := newRunFixture(t)
	exitCode(t, f.run(t, "-host", "web-1", "-priority", "passive", "--", os.Args[0], "job", "fail", "--password=hunter2"))
	alert := f.onlyAlert(t)
	if alert.Name != filepath.Base(os.Args[0]) || alert.Host != "web-1" {
		t.Errorf("the phone reads %+v", alert)
	}
	text, err := alert.MarshalJSON()
	if err != nil || bytes.Contains(text, []byte("hunter2")) {
		t.Errorf("the phone reads %s, %v", text, err)
	}
	if sent, err := f.relay.Requests()[0].Envelope(); err != nil || string(sent.Priority) != relayclient.Passive.String() {
		t.Errorf("the relay reads %+v, %v", sent, err)
	}
}

func TestWhenToPage(t *testing.T) {
	const failure, success = payload.KindFailure, payload.KindSuccess
	for on, want := range map[string][]payload.Kind{
		"failure":  {failure, failure},
		"recovery": {failure, failure, success},
		"success":  {success, success, success},
		"always":   {success, failure, failure, success, success},
	} {
		t.Run(on, func(t *testing.T) {
			t.Parallel()
			f := newRunFixture(t, relaytest.WithoutPolicy())
			state := t.TempDir()
			for _, job := range []string{"succeed", "fail", "fail", "succeed", "succeed"} {
				exitCode(t, f.run(t, "-on", on, "-state", state, "-name", "backup", "--", os.Args[0], "job", job))
			}
			if got := f.kinds(t); !slices.Equal(got, want) {
				t.Errorf("paged %v, want %v", got, want)
			}
		})
	}
}

func TestQuiet(t *testing.T) {
	f := newRunFixture(t)
	for job, want := range map[string]string{"succeed": "", "fail": "working\n"} {
		cmd := f.run(t, "-quiet", "--", os.Args[0], "job", job)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		exitCode(t, cmd)
		if stdout.String() != want || (stderr.Len() > 0) != (job == "fail") {
			t.Errorf("%s printed %q, %q", job, stdout.String(), stderr.String())
		}
	}
	cmd := f.run(t, "-quiet", "--", os.Args[0], "job", "very-much")
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	if code := exitCode(t, cmd); code != 4 || stdout.Len() != veryMuch {
		t.Errorf("exit code %d, %d bytes of output", code, stdout.Len())
	}
}

func TestTimeout(t *testing.T) {
	f := newRunFixture(t)
	code := exitCode(t, f.run(t, "-timeout", "50ms", "--", os.Args[0], "job", "wait"))
	alert := f.onlyAlert(t)
	if code == 0 || alert.Kind != payload.KindFailure || !strings.HasPrefix(alert.FailReason, "timed out after 50ms") {
		t.Errorf("exit code %d; the phone reads %+v", code, alert)
	}
}

// The command goes on after that page, and ends when it has been delivered.
func TestLateAfter(t *testing.T) {
	f := newRunFixture(t)
	cmd := f.run(t, "-name", "backup", "-late-after", "50ms", "--", os.Args[0], "job", "echo")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.relay.WaitInbox(t.Context(), f.phone.PushToken(), 1); err != nil {
		t.Fatal(err)
	}
	stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	alert := f.onlyAlert(t)
	if alert.Kind != payload.KindSLA || alert.SLACheck != payload.CheckMaxRuntime || alert.Name != "backup" || *alert.ThresholdSeconds != 0.05 {
		t.Errorf("the phone reads %+v", alert)
	}
}

func TestCommandsEnvironment(t *testing.T) {
	f := newRunFixture(t)
	for _, keep := range []bool{false, true} {
		args := []string{"-keep-env=" + map[bool]string{true: "true", false: "false"}[keep], "--", os.Args[0], "job", "environment"}
		cmd := f.run(t, args...)
		cmd.Env = append(cmd.Env, "SEALPUSH_RELAY_URL=http://me:hunter2@relay.example", "OTHER=stays")
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), "OTHER=stays\n") || strings.Contains(string(out), "hunter2") != keep {
			t.Errorf("kept: %v: %v\n%s", keep, err, out)
		}
	}
}

// Cron gives a job next to nothing.
func TestEnvironmentOfCron(t *testing.T) {
	for name, home := range map[string][]string{"without HOME": nil, "HOME is no directory": {"HOME=" + os.DevNull}, "HOME is read-only": {"HOME=" + readOnlyDirectory(t)}} {
		t.Run(name, func(t *testing.T) {
			f := newRunFixture(t, relaytest.WithoutPolicy())
			config := filepath.Join(t.TempDir(), "sealpush.toml")
			write(t, config, "relay_url = '"+f.relay.URL+"'\nregistry = '"+f.devices+"'\n")
			var stderr bytes.Buffer
			for _, args := range [][]string{
				{"run", "-config", config, "--", os.Args[0], "job", "fail"},
				{"run", "-config", config, "-on", "recovery", "--", os.Args[0], "job", "fail"},
				{"send", "-config", config, "-name", "backup"},
			} {
				cmd := tool(t, args...)
				cmd.Env = append([]string{asTool + "=1", "PATH=/usr/bin:/bin", "SHELL=/bin/sh", "LOGNAME=nobody", "SystemRoot=" + os.Getenv("SystemRoot")}, home...)
				cmd.Stderr = &stderr
				if code := exitCode(t, cmd); code != map[string]int{"run": 3, "send": 0}[args[0]] {
					t.Errorf("%v: exit code %d: %s", args, code, stderr.String())
				}
			}
			if n := len(f.alerts(t)); n != 3 {
				t.Errorf("%d alerts: %s", n, stderr.String())
			}
		})
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// readOnlyDirectory is one in which nobody can make a file.
func readOnlyDirectory(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat("/proc/self"); err == nil {
		return "/proc" // for root, too
	}
	dir := filepath.Join(t.TempDir(), "home")
	if err := os.Mkdir(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	return dir
}
