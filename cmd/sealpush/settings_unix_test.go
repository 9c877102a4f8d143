//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// namedPipe makes one that nobody writes to.
func namedPipe(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A file with settings that never comes does not keep the job from running.
func TestSettingsThatNeverCome(t *testing.T) {
	for name, args := range map[string][]string{
		"configuration": {"-config", namedPipe(t, configName)},
		"secret":        {"-config", writeFile(t, filepath.Join(t.TempDir(), configName), "relay_url_file = '"+namedPipe(t, "url")+"'\n")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := tool(t, append(append([]string{"run"}, args...), "--", os.Args[0], "job", "succeed")...)
			out, code := output(t, cmd)
			if code != 0 || !strings.Contains(out, "cannot be read within") || !strings.Contains(out, "done\n") {
				t.Errorf("exit code %d: %s", code, out)
			}
		})
	}
}

// A spool that everybody may write to would have others' alerts posted with the relay's password.
func TestSpoolOfEverybody(t *testing.T) {
	f := newRunFixture(t)
	spool := t.TempDir()
	if err := os.Chmod(spool, 0o777); err != nil {
		t.Fatal(err)
	}
	said := runSays(t, 3, f.run(t, "-spool", spool, "--", os.Args[0], "job", "fail"))
	if !strings.Contains(said, "the spool cannot be used: everybody may write to "+spool) {
		t.Errorf("the tool says %q", said)
	}
	f.onlyAlert(t)
}

// Standard input that never ends does not keep send from ending by a signal.
func TestInterruptWhileSendReads(t *testing.T) {
	f := newRunFixture(t)
	cmd := tool(t, "send", "-relay-url", f.url, "-registry", f.devices, "-name", "backup", "-log-tail", "-")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stdin.Write([]byte(strings.Repeat("line\n", 1<<20))) // more than a pipe holds: it returns while send is reading
	cmd.Process.Signal(syscall.SIGINT)
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitFailed || !strings.Contains(said.String(), "interrupted: nothing was sent") {
		t.Errorf("exit code %d: %s", code, said.String())
	}
	if n := len(f.relay.Requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}
