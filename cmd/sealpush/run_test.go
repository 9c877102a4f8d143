package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

// veryMuch is more than -quiet keeps in memory, in bytes.
const veryMuch = heldInMemory + 1000

// playJob is the command that the tool runs.
func playJob(what string) int {
	switch what {
	case "fail":
		fmt.Println("working")
		fmt.Fprintln(os.Stderr, "no space left")
		return 3
	case "fail-quietly":
		fmt.Println("all there is to see")
		return 1
	case "warn-and-fail":
		fmt.Println("working")
		fmt.Fprint(os.Stderr, "deprecated: ")
		fmt.Fprintln(os.Stderr, "-x")
		fmt.Print("FATAL disk full")
		return 1
	case "succeed":
		fmt.Println("done")
	case "one-line":
		os.Stdout.WriteString(strings.Repeat("x", 1<<20) + "the end")
		return 1
	case "echo":
		io.Copy(os.Stdout, os.Stdin)
	case "binary":
		os.Stderr.Write([]byte("\x00\x1b[31m\xff\xfe\r50%\r100%\n\x80\x80\x80\n"))
		return 1
	case "chatter":
		for {
			if _, err := fmt.Println("more"); err != nil {
				return 1
			}
		}
	case "much":
		for range 100 {
			fmt.Println(strings.Repeat("y", 1023))
		}
		fmt.Println("the reason")
		return 4
	case "very-much":
		os.Stdout.Write(bytes.Repeat([]byte("z"), veryMuch))
		return 4
	case "environment":
		fmt.Println(strings.Join(os.Environ(), "\n"))
	case "terminal":
		return playOnTerminal()
	case "background":
		left := exec.Command(os.Args[0], "job", "wait")
		left.Stdout, left.Stderr = os.Stdout, os.Stderr
		if err := left.Start(); err != nil {
			return 1
		}
		fmt.Println("the reason", left.Process.Pid)
		return 5
	case "wait":
		fmt.Println("waiting")
		<-time.After(time.Minute) // a signal ends it long before
	case "await-signal":
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, passedOn...)
		fmt.Println("waiting")
		fmt.Println("got", <-signals)
		return 9
	}
	return 0
}

// A fixture is a relay, a phone and the registry file that pairs them.
type runFixture struct {
	relay   *relaytest.Relay
	url     string // where the relay is reached
	phone   *relaytest.Phone
	device  string // the phone's id
	devices string
}

func newRunFixture(t *testing.T, opts ...relaytest.RelayOption) runFixture {
	t.Helper()
	relay := relaytest.NewRelay(opts...)
	t.Cleanup(relay.Close)
	f := runFixture{relay: relay, url: relay.URL, phone: relaytest.NewPhone(), devices: filepath.Join(t.TempDir(), "devices.json")}
	f.device = f.pair(t, f.phone)
	return f
}

func (f runFixture) registry(t *testing.T) *pairing.Registry {
	t.Helper()
	store, err := pairing.OpenFile(f.devices)
	if err != nil {
		t.Fatal(err)
	}
	registry, err := pairing.NewRegistry(store, pairing.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

// pair pairs a phone and returns its id.
func (f runFixture) pair(t *testing.T, phone *relaytest.Phone) string {
	t.Helper()
	device, _, err := f.registry(t).Pair(t.Context(), pairing.Request{
		Name: "phone", Platform: "ios", PublicKey: phone.PublicKey(), PushToken: secret.New(phone.PushToken()),
	}, "")
	if err != nil {
		t.Fatal(err)
	}
	return device.ID
}

// run is the tool that runs a command, with flags of this fixture.
func (f runFixture) run(t *testing.T, args ...string) *exec.Cmd {
	return tool(t, append([]string{"run", "-relay-url", f.url, "-registry", f.devices}, args...)...)
}

// onlyAlert returns the one alert that reached the phone.
func (f runFixture) onlyAlert(t *testing.T) payload.Alert {
	t.Helper()
	received, err := f.phone.Received(f.relay)
	if err != nil || len(received) != 1 {
		t.Fatalf("the phone received %v, %v", received, err)
	}
	return received[0].Alert
}

func exitCode(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

func TestPagesOnFailure(t *testing.T) {
	f := newRunFixture(t)
	cmd := f.run(t, "-name", "backup", "--", os.Args[0], "job", "fail")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if code := exitCode(t, cmd); code != 3 {
		t.Errorf("exit code %d", code)
	}
	if stdout.String() != "working\n" || stderr.String() != "no space left\n" {
		t.Errorf("output %q, %q", stdout.String(), stderr.String())
	}
	alert := f.onlyAlert(t)
	if alert.Kind != payload.KindFailure || alert.Name != "backup" || *alert.ExitCode != 3 || alert.FailReason != "exit code 3" {
		t.Errorf("the phone reads %+v", alert)
	}
	if len(alert.LogTail) != 1 || alert.LogTail[0] != "no space left" {
		t.Errorf("log tail %q, want standard error's", alert.LogTail)
	}
}

func TestTailIsStandardOutputWhereThereIsNoError(t *testing.T) {
	f := newRunFixture(t)
	exitCode(t, f.run(t, "--", os.Args[0], "job", "fail-quietly"))
	if alert := f.onlyAlert(t); len(alert.LogTail) != 1 || alert.LogTail[0] != "all there is to see" {
		t.Errorf("log tail %q", alert.LogTail)
	}
}

func TestTailOfTheStreamThatIsAskedFor(t *testing.T) {
	for stream, want := range map[string][]string{
		"":       {"deprecated: -x"},
		"stderr": {"deprecated: -x"},
		"stdout": {"working", "FATAL disk full"},
		"both":   {"FATAL disk full", "deprecated: -x", "working"}, // sorted: two pipes have no order among them
	} {
		f := newRunFixture(t)
		exitCode(t, f.run(t, "-tail", stream, "--", os.Args[0], "job", "warn-and-fail"))
		got := f.onlyAlert(t).LogTail
		if stream == "both" {
			slices.Sort(got)
		}
		if !slices.Equal(got, want) {
			t.Errorf("log tail of %q: %q", stream, got)
		}
	}
	f := newRunFixture(t)
	exitCode(t, f.run(t, "-tail", "stderr", "--", os.Args[0], "job", "fail-quietly"))
	if got := f.onlyAlert(t).LogTail; len(got) != 0 {
		t.Errorf("log tail of a silent standard error: %q", got)
	}
}

// The lines of two streams are in the order of arrival and do not mix within one.
func TestInterleaving(t *testing.T) {
	var both tail
	out, err := wholeLines{to: &both, shared: true}, wholeLines{to: &both, shared: true}
	out.Write([]byte("one\ntw"))
	err.Write([]byte("warning: "))
	out.Write([]byte("o\nthr"))
	err.Write([]byte("old\n"))
	out.Write([]byte("ee"))
	out.flush()
	err.flush()
	if got, want := both.lines(), []string{"one", "two", "warning: old", "three"}; !slices.Equal(got, want) {
		t.Errorf("lines %q, want %q", got, want)
	}
	for range 100 { // a line that does not end is not held for ever
		out.Write(bytes.Repeat([]byte("x"), 10_000))
	}
	if size := cap(out.rest); size > 4*tailSize {
		t.Errorf("holds %d bytes", size)
	}
}

// The registry file of the deployed daemon, as it is.
func TestDeployedRegistry(t *testing.T) {
	registry, err := os.ReadFile(filepath.Join("..", "..", "testdata", "vectors", "devices.json"))
	if err != nil {
		t.Fatal(err)
	}
	var vector struct {
		Devices []struct {
			PushToken string `json:"pushToken"`
		} `json:"devices"`
	}
	if err := json.Unmarshal(registry, &vector); err != nil || len(vector.Devices) == 0 {
		t.Fatalf("%d devices in the vector, %v", len(vector.Devices), err)
	}
	f := newRunFixture(t)
	if err := os.WriteFile(f.devices, registry, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := exitCode(t, f.run(t, "--", os.Args[0], "job", "fail")); code != 3 {
		t.Errorf("exit code %d", code)
	}
	for _, device := range vector.Devices {
		if n := len(f.relay.Inbox(device.PushToken)); n != 1 {
			t.Errorf("%d messages for a device", n)
		}
	}
}

func TestPagesOnSuccessOnlyWhenAsked(t *testing.T) {
	f := newRunFixture(t)
	if code := exitCode(t, f.run(t, "--", os.Args[0], "job", "succeed")); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if n := f.relay.Stats().Requests; n != 0 {
		t.Errorf("paged %d times", n)
	}
	if code := exitCode(t, f.run(t, "-on", "always", "--", os.Args[0], "job", "succeed")); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if alert := f.onlyAlert(t); alert.Kind != payload.KindSuccess || *alert.ExitCode != 0 || alert.LogTail[0] != "done" {
		t.Errorf("the phone reads %+v", alert)
	}
}

func TestOneLineWithoutEnd(t *testing.T) {
	f := newRunFixture(t)
	cmd := f.run(t, "--", os.Args[0], "job", "one-line")
	var stdout bytes.Buffer
	cmd.Stdout = &stdout
	if code := exitCode(t, cmd); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if stdout.Len() != 1<<20+len("the end") {
		t.Errorf("%d bytes of output", stdout.Len())
	}
	if alert := f.onlyAlert(t); len(alert.LogTail) != 1 || !strings.HasSuffix(alert.LogTail[0], "xxxthe end") {
		t.Errorf("log tail %q", alert.LogTail)
	}
}

func TestStandardInputReachesTheCommand(t *testing.T) {
	f := newRunFixture(t)
	cmd := f.run(t, "--", os.Args[0], "job", "echo")
	cmd.Stdin = strings.NewReader("\x00\xff raw bytes\r\n")
	out, err := cmd.Output()
	if err != nil || string(out) != "\x00\xff raw bytes\r\n" {
		t.Errorf("%q, %v", out, err)
	}
}

func TestCommandNotFound(t *testing.T) {
	f := newRunFixture(t)
	if code := exitCode(t, f.run(t, "--", "no-such-command-anywhere")); code != 127 {
		t.Errorf("exit code %d", code)
	}
	if alert := f.onlyAlert(t); alert.ExitCode != nil || !strings.Contains(alert.FailReason, "not found") {
		t.Errorf("the phone reads %+v", alert)
	}
}

func TestBinaryOutput(t *testing.T) {
	f := newRunFixture(t)
	cmd := f.run(t, "--", os.Args[0], "job", "binary")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if code := exitCode(t, cmd); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if stderr.String() != "\x00\x1b[31m\xff\xfe\r50%\r100%\n\x80\x80\x80\n" {
		t.Errorf("output %q", stderr.String())
	}
	if alert := f.onlyAlert(t); len(alert.LogTail) != 2 || alert.LogTail[0] != "100%" {
		t.Errorf("log tail %q", alert.LogTail)
	}
}

func TestNames(t *testing.T) {
	for name, args := range map[string][]string{
		strings.Repeat("é", 63) + "…": {"-name", strings.Repeat("é", 50_000), "--", os.Args[0], "job", "fail"},
		"(empty command)":             {"--", ""},
	} {
		f := newRunFixture(t)
		if code := exitCode(t, f.run(t, args...)); code == 0 {
			t.Error("exit code 0")
		}
		if alert := f.onlyAlert(t); alert.Name != name {
			t.Errorf("the phone reads %q, want %q", alert.Name, name)
		}
	}
}

// A reader that takes its time after the command has ended loses nothing.
func TestSlowReader(t *testing.T) {
	f := newRunFixture(t)
	cmd := f.run(t, "--", os.Args[0], "job", "much")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read, err := io.ReadAll(iotest.OneByteReader(bufio.NewReaderSize(out, 16)))
	if err != nil || len(read) != 100*1024+len("the reason\n") {
		t.Errorf("%d bytes, %v", len(read), err)
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 4 {
		t.Errorf("exit code %d", code)
	}
}

func TestRelayDownChangesNothing(t *testing.T) {
	f := newRunFixture(t)
	f.relay.Close()
	cmd := f.run(t, "-patience", "10ms", "--", os.Args[0], "job", "fail")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if code := exitCode(t, cmd); code != 3 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(stderr.String(), "alert not delivered") || strings.Contains(stderr.String(), f.phone.PushToken()) {
		t.Errorf("standard error says %q", stderr.String())
	}
}

func TestUnreadableRegistryChangesNothing(t *testing.T) {
	f := newRunFixture(t)
	if err := os.WriteFile(f.devices, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := f.run(t, "--", os.Args[0], "job", "fail")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if code := exitCode(t, cmd); code != 3 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(stderr.String(), "registry unavailable") || !strings.Contains(stderr.String(), "devices.json") {
		t.Errorf("standard error says %q", stderr.String())
	}
}

// An unset variable in a crontab, a typo: the job must not be skipped for it.
func TestCommandRunsWithoutAnybodyToPage(t *testing.T) {
	f := newRunFixture(t)
	elsewhere := filepath.Join(t.TempDir(), "devcies.json")
	usersOwn, _ := userFile("devices.json")
	empty := filepath.Join(t.TempDir(), "empty.json")
	if err := os.WriteFile(empty, []byte(`{"version":1,"devices":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	unusable := filepath.Join(t.TempDir(), "unusable.json")
	if err := os.WriteFile(unusable, []byte(`{"version":1,"devices":[{"id":"4f290363","publicKey":"?","pushToken":"abcd"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := os.Stat(elsewhere); err == nil {
			t.Error("looking for the registry made it")
		}
	})
	for name, tt := range map[string]struct {
		args []string
		says string
	}{
		"no relay":              {[]string{"-registry", f.devices}, "no relay url: set relay_url in sealpush.toml, $SEALPUSH_RELAY_URL or -relay-url"},
		"empty relay":           {[]string{"-relay-url", "", "-registry", f.devices}, "no relay url: set relay_url in sealpush.toml, $SEALPUSH_RELAY_URL or -relay-url"},
		"unset relay":           {[]string{"-relay-url", "-registry", f.devices}, "no relay url: set relay_url in sealpush.toml, $SEALPUSH_RELAY_URL or -relay-url"},
		"unset relay at end":    {[]string{"-registry", f.devices, "--relay-url"}, "no relay url: set relay_url in sealpush.toml, $SEALPUSH_RELAY_URL or -relay-url"},
		"relay without scheme":  {[]string{"-relay-url", "relay.example", "-registry", f.devices}, "the relay URL is not usable"},
		"ftp relay":             {[]string{"-relay-url", "ftp://me:hunter2@relay.example", "-registry", f.devices}, "the relay URL is not usable"},
		"registry not named":    {[]string{"-relay-url", f.relay.URL}, "there is no registry at " + usersOwn},
		"unset registry":        {[]string{"-registry", "-relay-url", f.relay.URL}, "no registry: set registry"},
		"registry not there":    {[]string{"-relay-url", f.relay.URL, "-registry", elsewhere}, "there is no registry at " + elsewhere},
		"registry without any":  {[]string{"-relay-url", f.relay.URL, "-registry", empty}, "no phone is paired in " + empty},
		"no usable phone":       {[]string{"-relay-url", f.relay.URL, "-registry", unusable}, "unusable device: there is no other in " + unusable},
		"registry not readable": {[]string{"-relay-url", f.relay.URL, "-registry", filepath.Dir(empty)}, filepath.Dir(empty)},
		"unset name and relay":  {[]string{"-registry", f.devices, "-name", "-relay-url"}, "no relay url: set relay_url in sealpush.toml, $SEALPUSH_RELAY_URL or -relay-url"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := tool(t, append(append([]string{"run"}, tt.args...), "--", os.Args[0], "job", "fail")...)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if code := exitCode(t, cmd); code != 3 || stdout.String() != "working\n" {
				t.Errorf("exit code %d, output %q", code, stdout.String())
			}
			before, after, ran := strings.Cut(stderr.String(), "no space left\n")
			if !ran || !strings.Contains(before, "sealpush run: nobody can be paged: ") || !strings.Contains(before, tt.says) ||
				!strings.Contains(after, "sealpush run: nobody was paged: ") || !strings.Contains(after, tt.says) {
				t.Errorf("standard error says %q", stderr.String())
			}
			if unavailable := strings.Contains(stderr.String(), "unavailable"); unavailable != strings.Contains(name, "registry not") {
				t.Errorf("the registry's state is wrong: %q", stderr.String())
			}
			if strings.Contains(stderr.String(), "hunter2") {
				t.Error("standard error has the password")
			}
			succeeds := tool(t, append(append([]string{"run"}, tt.args...), "--", os.Args[0], "job", "succeed")...)
			if out, err := succeeds.Output(); err != nil || string(out) != "done\n" {
				t.Errorf("output %q, %v", out, err)
			}
		})
	}
}

// A registry that a hand or another program wrote without a salt stays as it is.
func TestRegistryIsOnlyRead(t *testing.T) {
	f := newRunFixture(t)
	content, err := os.ReadFile(f.devices)
	if err != nil {
		t.Fatal(err)
	}
	content = regexp.MustCompile(`"collapseSalt": *"[0-9a-f]+",`).ReplaceAll(content, nil)
	if bytes.Contains(content, []byte("Salt")) {
		t.Fatalf("the registry still holds a salt: %s", content)
	}
	if err := os.WriteFile(f.devices, content, 0o600); err != nil {
		t.Fatal(err)
	}
	exitCode(t, f.run(t, "--", os.Args[0], "job", "fail"))
	f.onlyAlert(t)
	if now, err := os.ReadFile(f.devices); err != nil || !bytes.Equal(now, content) {
		t.Errorf("the registry holds %q, %v", now, err)
	}
}

func TestRunUsage(t *testing.T) {
	f := newRunFixture(t)
	for name, args := range map[string][]string{
		"no command":   {},
		"unknown flag": {"-frobnicate", "--", "true"},
		"unknown tail": {"-tail", "head", "--", "true"},
		"unknown time": {"-on", "error", "--", "true"},
		"patience":     {"-patience", "10m", "--", "true"},
	} {
		cmd := f.run(t, args...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if code := exitCode(t, cmd); code != 2 || stderr.Len() == 0 {
			t.Errorf("%s: exit code %d, says %q", name, code, stderr.String())
		}
	}
}

func TestTailIsBounded(t *testing.T) {
	var kept tail
	line := []byte(strings.Repeat("é", 1000) + "\n")
	for range 10_000 {
		kept.Write(line)
	}
	kept.Write([]byte("last"))
	if size := cap(kept.previous) + cap(kept.current); size > 4*tailSize {
		t.Errorf("holds %d bytes", size)
	}
	lines := kept.lines()
	if len(lines) == 0 || lines[len(lines)-1] != "last" {
		t.Fatalf("%d lines", len(lines))
	}
	for _, line := range lines {
		if len(line) > lineSize+len("…") || strings.ContainsRune(line, '\ufffd') {
			t.Errorf("line of %d bytes: %q", len(line), line)
		}
	}
}

// firstLine waits until a process has printed its first line.
func firstLine(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
}
