package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/examples/programtest"
	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// send is the tool that sends an alert, with flags of this fixture.
func (f runFixture) send(t *testing.T, stdin string, args ...string) *exec.Cmd {
	cmd := tool(t, append([]string{"send", "-relay-url", f.url, "-registry", f.devices}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	return cmd
}

func TestSendFromFlags(t *testing.T) {
	log := filepath.Join(t.TempDir(), "backup.log")
	write(t, log, strings.Repeat("old\n", 100_000)+"\x1b[31mwrite: no space left\x1b[0m\n")
	for name, tt := range map[string]struct {
		args  []string
		stdin string
		right func(payload.Alert) bool
	}{
		"failure": {
			[]string{"-name", "backup", "-message", "disk full", "-exit-code", "3", "-log-tail", log}, "",
			func(a payload.Alert) bool {
				return a.Kind == payload.KindFailure && a.FailReason == "disk full" && *a.ExitCode == 3 &&
					slices.Equal(a.LogTail[len(a.LogTail)-2:], []string{"old", "write: no space left"})
			},
		},
		"success, log from standard input": {
			[]string{"-kind", "success", "-name", "backup", "-log-tail", "-", "-host", "db-1"}, "one\r\ntwo\r\n",
			func(a payload.Alert) bool {
				return a.Kind == payload.KindSuccess && a.Host == "db-1" && slices.Equal(a.LogTail, []string{"one", "two"}) && a.ExitCode == nil
			},
		},
		"event": {
			[]string{"-kind", "event", "-event", "deployed", "-name", "web", "-subject", "Version 12 is live", "-message", "by ci"}, "",
			func(a payload.Alert) bool {
				return a.Kind == payload.KindEvent && a.Event == "deployed" && a.Subject == "Version 12 is live" && a.Message == "by ci"
			},
		},
		"JSON": {
			[]string{"-json", "-log-tail", log}, `{"kind":"failure","name":"backup","run_id":"17","exit_code":0,"fail_reason":"none","host":"db-2","schedule":""}`,
			func(a payload.Alert) bool {
				return a.Kind == payload.KindFailure && a.RunID == "17" && *a.ExitCode == 0 && a.Host == "db-2" && time.Since(a.Time) < time.Hour &&
					a.LogTail[len(a.LogTail)-1] == "write: no space left"
			},
		},
		"JSON of an SLA breach": {
			[]string{"-json"}, `{"kind":"sla","name":"backup","sla_check":"lateAfter","threshold_seconds":60,"observed_seconds":61.5}`,
			func(a payload.Alert) bool {
				return a.Kind == payload.KindSLA && *a.ObservedSeconds == 61.5 && a.Host != ""
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newRunFixture(t)
			if out, code := output(t, f.send(t, tt.stdin, tt.args...)); code != 0 || out != "" {
				t.Errorf("exit code %d, says %q", code, out)
			}
			if alert := f.onlyAlert(t); !tt.right(alert) {
				t.Errorf("the phone reads %+v", alert)
			}
		})
	}
}

// An alert that the relay took for a repetition is not on the phone, whatever else is in it.
func TestSendSaysWhatIsNotShown(t *testing.T) {
	for same, args := range map[string][]string{
		"name":           {"-name", "backup"},
		"event and name": {"-kind", "event", "-event", "deployed", "-name", "web"},
	} {
		f := newRunFixture(t)
		if out, code := output(t, f.send(t, "", append(args, "-message", "one")...)); code != 0 || out != "" {
			t.Errorf("%s: exit code %d, says %q", same, code, out)
		}
		out, code := output(t, f.send(t, "", append(args, "-message", "two")...))
		if code != 0 || !strings.HasPrefix(out, "sealpush send: phone ") || !strings.Contains(out, "does not show this alert") ||
			!strings.Contains(out, "with the same "+same+",") {
			t.Errorf("%s: exit code %d, says %q", same, code, out)
		}
		if alert := f.onlyAlert(t); alert.FailReason+alert.Message != "one" {
			t.Errorf("%s: the phone reads %+v", same, alert)
		}
	}
}

// Somebody at a terminal is told why nothing happens.
func TestSendSaysThatItWaits(t *testing.T) {
	t.Parallel()
	f := newRunFixture(t)
	answer := make(chan struct{})
	f.relay.Script(1, relaytest.Answer{Hold: answer})
	send := programtest.Start(t, f.send(t, "", "-name", "backup", "-patience", "3m"))
	send.Await(t, "the relay has not taken the alert yet: trying for up to 3m0s")
	close(answer)
	if code := send.ExitCode(t); code != 0 {
		t.Errorf("exit code %d: %s", code, send.Output())
	}
}

func TestSendUsage(t *testing.T) {
	f := newRunFixture(t)
	missing := filepath.Join(t.TempDir(), "missing.log")
	for name, tt := range map[string]struct {
		args  []string
		stdin string
		says  string
	}{
		"no name":            {nil, "", "-name is missing"},
		"argument":           {[]string{"-name", "backup", "hunter2"}, "", "an argument without a flag"},
		"kind":               {[]string{"-kind", "sla", "-name", "backup"}, "", "it takes failure, success, event"},
		"event without word": {[]string{"-kind", "event", "-name", "web"}, "", "event"},
		"subject of failure": {[]string{"-name", "web", "-subject", "x"}, "", "-event and -subject go with -kind event"},
		"message of success": {[]string{"-kind", "success", "-name", "web", "-message", "x"}, "", "-message goes with"},
		"log of event":       {[]string{"-kind", "event", "-event", "x", "-name", "web", "-log-tail", "-"}, "x\n", "log_tail"},
		"exit code":          {[]string{"-name", "web", "-exit-code", "3x"}, "", "it takes a number"},
		"log not there":      {[]string{"-name", "web", "-log-tail", missing}, "", missing},
		"long name":          {[]string{"-name", strings.Repeat("x", 5000)}, "", "the alert cannot be sent"},
		"JSON and flags":     {[]string{"-json", "-name", "web"}, "{}", "-json goes with"},
		"JSON and its input": {[]string{"-json", "-log-tail", "-"}, "{}", "-json goes with"},
		"no JSON":            {[]string{"-json"}, "backup failed", "it is no JSON object"},
		"empty JSON":         {[]string{"-json"}, "", "it is no JSON object"},
		"null":               {[]string{"-json"}, "null", "it is no JSON object"},
		"JSON without kind":  {[]string{"-json"}, `{"name":"web"}`, "kind"},
		"misspelled member":  {[]string{"-json"}, `{"kind":"failure","name":"web","fail_reson":"hunter2"}`, `"fail_reson"`},
		"wrong type":         {[]string{"-json"}, `{"kind":"failure","name":"web","exit_code":"hunter2"}`, `"exit_code"`},
		"contradiction":      {[]string{"-json"}, `{"kind":"failure","name":"web","success":true}`, "success"},
		"large JSON":         {[]string{"-json"}, strings.Repeat(" ", maxAlertJSON) + "{}", "more than 65536 bytes"},
		"relay":              {[]string{"-relay-url", "ftp://me:hunter2@relay.example", "-name", "web"}, "", "the relay URL is not usable"},
	} {
		out, code := output(t, f.send(t, tt.stdin, tt.args...))
		if code != exitUsage || !strings.Contains(out, tt.says) || strings.Contains(out, "hunter2") {
			t.Errorf("%s: exit code %d, says %q, want %q", name, code, out, tt.says)
		}
	}
	for _, args := range [][]string{{"send", "-name", "web"}, {"send", "-name", "web", "-relay-url", f.url, "-registry="}} {
		expect(t, exitUsage, []string{"sealpush.toml", "See 'sealpush help send'"}, args...)
	}
	if n := len(f.relay.Requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// The exit code is 0 only when the relay took the alert for each phone.
func TestSendTellsWhetherEachPhonesAlertWasAccepted(t *testing.T) {
	f := newRunFixture(t, relaytest.WithoutPolicy())
	other := relaytest.NewPhone()
	id := f.pair(t, other)
	out, code := output(t, f.send(t, "", "-v", "-name", "web"))
	if code != 0 || !strings.Contains(out, f.device+"  accepted, forwarded\n") || !strings.Contains(out, id+"  accepted, forwarded\n") {
		t.Errorf("exit code %d, says %q", code, out)
	}
	f.relay.ScriptDevice(other.PushToken(), 1, relaytest.Answer{Status: http.StatusGone})
	out, code = output(t, f.send(t, "", "-v", "-name", "web"))
	if code != exitFailed || !strings.Contains(out, f.device+"  accepted, forwarded\n") || !strings.Contains(out, id+"  not accepted\n") {
		t.Errorf("exit code %d, says %q", code, out)
	}
	if n := len(f.alerts(t)); n != 2 {
		t.Errorf("%d alerts on the phone that is there", n)
	}

	// A phone that cannot be sent to counts.
	content, err := os.ReadFile(f.devices)
	if err != nil {
		t.Fatal(err)
	}
	write(t, f.devices, strings.Replace(string(content), other.PushToken(), "", 1))
	if out, code = output(t, f.send(t, "", "-name", "web")); code != exitFailed {
		t.Errorf("with an unusable phone: exit code %d, says %q", code, out)
	}

	f.newDoor(t)
	spool := t.TempDir()
	if out, code = output(t, f.send(t, "", briefly, "-spool", spool, "-name", "web")); code != exitFailed || !strings.Contains(out, "kept in "+spool) {
		t.Errorf("without a relay: exit code %d, says %q", code, out)
	}

	missing := filepath.Join(t.TempDir(), "devices.json")
	out, code = output(t, tool(t, "send", "-relay-url", f.url, "-registry", missing, "-name", "web"))
	if code != exitFailed || !strings.Contains(out, "there is no registry at "+missing) {
		t.Errorf("without a registry: exit code %d, says %q", code, out)
	}
}
