package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// A door is where the relay is reached while it is open. While it is shut, nobody listens.
type door struct {
	address string
	server  *http.Server
}

// newDoor returns one that is shut, and has the tool go to it.
func (f *runFixture) newDoor(t *testing.T) *door {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	d := &door{address: listener.Addr().String()}
	f.url = "http://" + d.address
	return d
}

func (d *door) open(t *testing.T, relay http.Handler) {
	t.Helper()
	listener, err := net.Listen("tcp", d.address)
	if err != nil {
		t.Fatal(err)
	}
	d.server = &http.Server{Handler: relay, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	go d.server.Serve(listener)
	t.Cleanup(func() { d.server.Close() })
}

// runSays runs the tool and returns what it says on standard error.
func runSays(t *testing.T, wantCode int, cmd *exec.Cmd) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if code := exitCode(t, cmd); code != wantCode {
		t.Errorf("exit code %d, want %d: %s", code, wantCode, stderr.String())
	}
	return stderr.String()
}

// entries are the names of what a spool holds.
func entries(t *testing.T, spool string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(spool)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, file := range files {
		if file.Name() != lockName {
			names = append(names, file.Name())
		}
	}
	return names
}

const briefly = "-patience=10ms" // for a relay that is not there

// The network is down, and back for the next run.
func TestSpooledAlertGoesOutWithTheNextRun(t *testing.T) {
	f := newRunFixture(t)
	d := f.newDoor(t)
	spool := filepath.Join(t.TempDir(), "spool")
	begin := time.Now().Truncate(time.Second)
	said := runSays(t, 3, f.run(t, briefly, "-spool", spool, "-name", "backup", "--", os.Args[0], "job", "fail"))
	if !strings.Contains(said, "1 alert kept in "+spool+", for the next run; a phone shows an alert that is older than 10 minutes as outdated") {
		t.Errorf("the tool says %q", said)
	}
	end := time.Now()
	kept := entries(t, spool)
	if len(kept) != 1 {
		t.Fatalf("the spool holds %v", kept)
	}
	path := filepath.Join(spool, kept[0])
	content, err := os.ReadFile(path)
	if err != nil || bytes.Contains(content, []byte("backup")) || bytes.Contains(content, []byte("no space left")) {
		t.Errorf("the spool holds %s, %v", content, err)
	}
	if info, err := os.Stat(path); runtime.GOOS != "windows" && (err != nil || info.Mode() != 0o600) {
		t.Errorf("the entry has mode %v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(spool); runtime.GOOS != "windows" && (err != nil || info.Mode().Perm() != 0o700) {
		t.Errorf("the spool has mode %v, %v", info.Mode(), err)
	}

	d.open(t, f.relay)
	said = runSays(t, 0, f.run(t, "-spool", spool, "--", os.Args[0], "job", "succeed"))
	if !strings.Contains(said, "which was kept in "+spool+", has been sent to phone "+f.device) {
		t.Errorf("the tool says %q", said)
	}
	if alert := f.onlyAlert(t); alert.Name != "backup" || alert.Time.Before(begin) || alert.Time.After(end) {
		t.Errorf("the phone reads %+v", alert)
	}
	if kept := entries(t, spool); len(kept) != 0 {
		t.Errorf("the spool still holds %v", kept)
	}
}

// The relay comes back while run waits for it.
func TestRelayComesBack(t *testing.T) {
	for _, spool := range []string{"", filepath.Join(t.TempDir(), "spool")} {
		f := newRunFixture(t)
		d := f.newDoor(t)
		cmd := f.run(t, "-patience", "5m", "-spool", spool, "--", os.Args[0], "job", "fail")
		firstLine(t, cmd)
		d.open(t, f.relay)
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 3 {
			t.Errorf("exit code %d", code)
		}
		f.onlyAlert(t)
		if spool == "" {
			continue
		}
		if kept := entries(t, spool); len(kept) != 0 {
			t.Errorf("the spool holds %v", kept)
		}
	}
}

// What the relay may have seen is never sent again.
func TestOnlyWhatWasNotSentIsKept(t *testing.T) {
	for name, answer := range map[string]relaytest.Answer{
		"no answer":     {Drop: true},
		"an error":      {Status: http.StatusServiceUnavailable},
		"too many":      {Status: http.StatusTooManyRequests},
		"no such phone": {Status: http.StatusGone},
	} {
		f := newRunFixture(t)
		f.relay.Script(1, answer)
		spool := t.TempDir()
		said := runSays(t, 3, f.run(t, "-spool", spool, "--", os.Args[0], "job", "fail"))
		if kept := entries(t, spool); len(kept) != 0 || !strings.Contains(said, "alert not delivered") {
			t.Errorf("%s: the spool holds %v; the tool says %q", name, kept, said)
		}
		runSays(t, 0, f.run(t, "-spool", spool, "--", os.Args[0], "job", "succeed"))
		if n := len(f.relay.Requests()); n != 1 {
			t.Errorf("%s: %d requests", name, n)
		}
	}
}

func TestRevokedPhoneIsNotSentWhatWaits(t *testing.T) {
	f := newRunFixture(t)
	other := relaytest.NewPhone()
	id := f.pair(t, other)
	d := f.newDoor(t)
	spool := t.TempDir()
	runSays(t, 3, f.run(t, briefly, "-spool", spool, "--", os.Args[0], "job", "fail"))
	if kept := entries(t, spool); len(kept) != 2 {
		t.Fatalf("the spool holds %v", kept)
	}
	if err := f.registry(t).Revoke(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	d.open(t, f.relay)
	said := runSays(t, 0, f.run(t, "-spool", spool, "--", os.Args[0], "job", "succeed"))
	if !strings.Contains(said, "is dropped: its phone "+id+" is no longer paired") {
		t.Errorf("the tool says %q", said)
	}
	f.onlyAlert(t)
	if n, kept := len(f.relay.Inbox(other.PushToken())), entries(t, spool); n != 0 || len(kept) != 0 {
		t.Errorf("%d messages for the revoked phone; the spool holds %v", n, kept)
	}
}

// A spool is bounded in number and in age, and drops what it cannot read.
func TestSpoolIsBounded(t *testing.T) {
	f := newRunFixture(t, relaytest.WithoutPolicy())
	d := f.newDoor(t)
	spool := t.TempDir()
	runSays(t, 3, f.run(t, briefly, "-spool", spool, "--", os.Args[0], "job", "fail"))
	content, err := os.ReadFile(filepath.Join(spool, entries(t, spool)[0]))
	if err != nil {
		t.Fatal(err)
	}
	add := func(age time.Duration, name string, content []byte) {
		write(t, filepath.Join(spool, fmt.Sprintf("%d-%s%s", time.Now().Add(-age).UnixNano(), name, waitingSuffix)), string(content))
	}
	for i := range 150 {
		add(time.Hour, fmt.Sprint(i), content)
	}
	said := runSays(t, 3, f.run(t, briefly, "-spool", spool, "--", os.Args[0], "job", "fail"))
	if n := len(entries(t, spool)); n != spoolMost || !strings.Contains(said, "is full: its oldest alert") {
		t.Errorf("the spool holds %d; the tool says %q", n, said)
	}
	for _, name := range entries(t, spool)[2:] {
		if err := os.Remove(filepath.Join(spool, name)); err != nil {
			t.Fatal(err)
		}
	}
	add(25*time.Hour, "old", content)
	add(time.Hour, "cut", content[:len(content)/2])
	add(time.Hour, "large", bytes.Repeat([]byte("x"), maxEntry+1))
	d.open(t, f.relay)
	said = runSays(t, 0, f.run(t, "-spool", spool, "--", os.Args[0], "job", "succeed"))
	if strings.Count(said, "older than 24 hours, and is dropped") != 1 || strings.Count(said, "cannot be read, and is dropped") != 2 {
		t.Errorf("the tool says %q", said)
	}
	if n, kept := len(f.relay.Requests()), entries(t, spool); n != 2 || len(kept) != 0 {
		t.Errorf("%d requests; the spool holds %v", n, kept)
	}
}

// What is not the spool's own stays where it is, whatever its name ends with, and nothing waits for it.
func TestSpoolLeavesOthersFilesAlone(t *testing.T) {
	f := newRunFixture(t)
	spool := t.TempDir()
	for _, name := range []string{"notes" + newSuffix, "mail" + waitingSuffix, "9" + postingSuffix} {
		write(t, filepath.Join(spool, name), "somebody's")
	}
	for _, name := range []string{"dir" + postingSuffix, "1-A" + waitingSuffix, "2-B" + newSuffix, "3-C" + postingSuffix} {
		if err := os.Mkdir(filepath.Join(spool, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	said := runSays(t, 3, f.run(t, "-spool", spool, "--", os.Args[0], "job", "fail"))
	if kept := entries(t, spool); said != "no space left\n" || len(kept) != 7 {
		t.Errorf("the spool holds %v; the tool says %q", kept, said)
	}
	f.onlyAlert(t)
}

// A page to more phones than a spool keeps alerts reaches each of them.
func TestMorePhonesThanTheSpoolKeeps(t *testing.T) {
	f := newRunFixture(t, relaytest.WithoutPolicy())
	for range spoolMost {
		f.pair(t, relaytest.NewPhone())
	}
	spool := t.TempDir()
	said := runSays(t, 3, f.run(t, "-spool", spool, "--", os.Args[0], "job", "fail"))
	if n, kept := len(f.relay.Requests()), entries(t, spool); n != spoolMost+1 || len(kept) != 0 || said != "no space left\n" {
		t.Errorf("%d phones of %d were paged; the spool holds %v; the tool says %q", n, spoolMost+1, kept, said)
	}
}

func TestTwoRunsOnOneSpool(t *testing.T) {
	f := newRunFixture(t, relaytest.WithoutPolicy())
	d := f.newDoor(t)
	spool := filepath.Join(t.TempDir(), "spool")
	both := func(args ...string) {
		t.Helper()
		var commands []*exec.Cmd
		for i := range 2 {
			cmd := f.run(t, append([]string{"-name", fmt.Sprint("job", i), "-spool", spool}, args...)...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			commands = append(commands, cmd)
		}
		for _, cmd := range commands {
			cmd.Wait()
		}
	}
	for range 3 {
		both(briefly, "--", os.Args[0], "job", "fail")
	}
	if kept := entries(t, spool); len(kept) != 6 {
		t.Errorf("the spool holds %v", kept)
	}
	d.open(t, f.relay)
	both("--", os.Args[0], "job", "succeed")
	seen := map[string]bool{}
	for _, request := range f.relay.Requests() {
		seen[string(request.Body)] = true
	}
	if n := len(f.relay.Requests()); n != 6 || len(seen) != 6 {
		t.Errorf("%d requests, %d different ones", n, len(seen))
	}
	if kept := entries(t, spool); len(kept) != 0 {
		t.Errorf("the spool holds %v", kept)
	}
}

// killAt is in the environment of a tool that is to be killed after a step of the spool.
const killAt = "TEST_KILL_AT"

// playKilled pages as run does, and ends this process after that step as SIGKILL does.
func playKilled(step string) {
	var o pagerOptions
	c := command{name: "run", setup: func(s *settings) runFunc {
		s.pager(&o)
		s.spool(&o.spool)
		return nil
	}}
	s := newSettings(c)
	if err := s.parse(os.Args[1:], func(string) string { return "" }); err != nil {
		panic(err)
	}
	p := s.newPager(o)
	p.step = func(name string) {
		if name == step {
			self, err := os.FindProcess(os.Getpid())
			if err != nil || self.Kill() != nil {
				panic("cannot be killed")
			}
			select {} // until it is
		}
	}
	p.page(context.Background(), payload.NewFailure("", "backup"))
	panic("there is no step " + step)
}

func TestKilledBetweenStepsOfTheSpool(t *testing.T) {
	for step, tt := range map[string]struct {
		before int    // requests before the kill
		after  int    // and when the next run has ended
		says   string // the next run
	}{
		"written":  {0, 1, "has been sent"},
		"waiting":  {0, 1, "has been sent"},
		"posting":  {0, 0, "is uncertain"},
		"answered": {1, 1, "is uncertain"},
	} {
		t.Run(step, func(t *testing.T) {
			f := newRunFixture(t)
			spool := t.TempDir()
			killed := tool(t, "-relay-url", f.url, "-registry", f.devices, "-spool", spool)
			killed.Env = append(killed.Env, killAt+"="+step)
			out, _ := output(t, killed)
			if strings.Contains(out, "panic") {
				t.Fatal(out)
			}
			if n := len(f.relay.Requests()); n != tt.before {
				t.Errorf("%d requests before the kill, want %d", n, tt.before)
			}
			if kept := entries(t, spool); len(kept) != 1 {
				t.Errorf("the kill left %v", kept)
			}
			for i := range 2 { // what is said once is not said again
				said := runSays(t, 0, f.run(t, "-spool", spool, "--", os.Args[0], "job", "succeed"))
				if strings.Contains(said, tt.says) != (i == 0) {
					t.Errorf("run %d after the kill says %q", i, said)
				}
			}
			if n, kept := len(f.relay.Requests()), entries(t, spool); n != tt.after || len(kept) != 0 {
				t.Errorf("%d requests, want %d; the spool holds %v", n, tt.after, kept)
			}
		})
	}
}

// The relay has the request, and the tool is killed before it has the answer.
func TestKilledDuringAPost(t *testing.T) {
	f := newRunFixture(t)
	hold := make(chan struct{})
	f.relay.Script(1, relaytest.Answer{Hold: hold})
	spool := t.TempDir()
	cmd := f.run(t, "-spool", spool, "--", os.Args[0], "job", "fail")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if err := f.relay.WaitInFlight(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	// While it lives, its alert is nobody else's business.
	if said := runSays(t, 0, f.run(t, "-spool", spool, "--", os.Args[0], "job", "succeed")); said != "" {
		t.Errorf("another run says %q", said)
	}
	cmd.Process.Kill()
	cmd.Wait()
	close(hold)
	said := runSays(t, 0, f.run(t, "-spool", spool, "--", os.Args[0], "job", "succeed"))
	if !strings.Contains(said, "whether phone "+f.device+" got it is uncertain, and it is not posted again") {
		t.Errorf("the next run says %q", said)
	}
	if n, kept := len(f.relay.Requests()), entries(t, spool); n != 1 || len(kept) != 0 {
		t.Errorf("%d requests; the spool holds %v", n, kept)
	}
}

// Without a place for a spool, the page goes out.
func TestSpoolThatCannotBeUsed(t *testing.T) {
	f := newRunFixture(t)
	said := runSays(t, 3, f.run(t, "-spool", f.devices, "--", os.Args[0], "job", "fail"))
	if !strings.Contains(said, "the spool cannot be used") {
		t.Errorf("the tool says %q", said)
	}
	f.onlyAlert(t)
}

// A signal ends the wait for the relay, and not the POST; the exit code is the command's.
func TestSignalWhilePaging(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // it has no signals to send
	}
	t.Run("waiting", func(t *testing.T) {
		f := newRunFixture(t)
		f.newDoor(t)
		spool := t.TempDir()
		cmd := f.run(t, "-patience", "9m", "-spool", spool, "--", os.Args[0], "job", "fail")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		awaitEntry(t, spool)
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		if code, kept := cmd.ProcessState.ExitCode(), entries(t, spool); code != 3 || len(kept) != 1 {
			t.Errorf("exit code %d; the spool holds %v", code, kept)
		}
	})
	t.Run("posting", func(t *testing.T) {
		f := newRunFixture(t)
		hold := make(chan struct{})
		f.relay.Script(1, relaytest.Answer{Hold: hold})
		cmd := f.run(t, "--", os.Args[0], "job", "fail")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if err := f.relay.WaitInFlight(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		cmd.Process.Signal(syscall.SIGTERM)
		close(hold)
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 3 {
			t.Errorf("exit code %d", code)
		}
		f.onlyAlert(t)
	})
}

// awaitEntry waits until a spool holds something that is whole.
func awaitEntry(t *testing.T, spool string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, name := range entries(t, spool) {
			if strings.HasSuffix(name, waitingSuffix) {
				return
			}
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the spool stays empty")
		}
	}
}
