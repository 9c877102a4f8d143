//go:build unix

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
)

// relayProcess is a running relay.
type relayProcess struct {
	cmd   *exec.Cmd
	guide string
	logs  logBuffer
}

// A logBuffer is what a running process has logged so far.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// startRelay runs the relay until it says that it is ready.
func startRelay(t *testing.T, args ...string) *relayProcess {
	t.Helper()
	r := &relayProcess{cmd: tool(t, append([]string{"relay"}, args...)...)}
	r.cmd.Stderr = &r.logs
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.cmd.Process.Kill()
		r.cmd.Wait()
	})
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		r.guide += lines.Text() + "\n"
		if strings.HasPrefix(lines.Text(), "Ready.") {
			return r
		}
	}
	r.cmd.Wait()
	t.Fatalf("the relay ended before it was ready:\n%s%s", r.guide, &r.logs)
	return nil
}

// commands are the lines that a reader would paste: the indented ones, but for
// the TOML.
func (r *relayProcess) commands(t *testing.T) string {
	t.Helper()
	_, steps, found := strings.Cut(r.guide, "\n1. ")
	if !found {
		t.Fatalf("no steps in\n%s", r.guide)
	}
	var commands strings.Builder
	for line := range strings.Lines(steps) {
		if command, indented := strings.CutPrefix(line, "    "); indented {
			commands.WriteString(command)
		}
	}
	return commands.String()
}

func TestPrintedRelayLinesWorkWhenPasted(t *testing.T) {
	r := startRelay(t, "-addr", "127.0.0.1:0")
	shell := exec.CommandContext(t.Context(), "sh", "-e")
	shell.Stdin = strings.NewReader(r.commands(t))
	var stderr bytes.Buffer
	shell.Stderr = &stderr
	out, err := shell.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, &stderr)
	}

	answers := json.NewDecoder(bytes.NewReader(out))
	var registered, pushed struct {
		OK      bool
		Results []struct{ Platform, Status string }
	}
	var arrived struct {
		Devices []struct{ Platform, BundleID string }
		Pushes  []struct{ Title, Body string }
	}
	for _, answer := range []any{&registered, &pushed, &arrived} {
		if err := answers.Decode(answer); err != nil {
			t.Fatalf("%v in\n%s", err, out)
		}
	}
	if !registered.OK {
		t.Errorf("not registered:\n%s", out)
	}
	if !pushed.OK || len(pushed.Results) != 1 || pushed.Results[0].Status != "sent" {
		t.Errorf("not sent:\n%s", out)
	}
	if len(arrived.Devices) != 1 || arrived.Devices[0].BundleID != "com.aptove.ios" ||
		len(arrived.Pushes) != 1 || arrived.Pushes[0].Body != "Push relay is working" {
		t.Errorf("what arrived is not what was sent:\n%s", out)
	}

	if err := r.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := r.cmd.Wait(); err != nil {
		t.Errorf("on an interrupt: %v", err)
	}
	for _, line := range []string{"path=/token-service/token status=200", "path=/push-relay/push status=200"} {
		if !strings.Contains(r.logs.String(), line) {
			t.Errorf("%q is not in the log:\n%s", line, &r.logs)
		}
	}
}

func TestOtherAddressAndClient(t *testing.T) {
	r := startRelay(t, "-addr", "127.0.0.1:0", "-url", "https://relay.example/", "-client", "my-bridge")
	for _, want := range []string{
		"Sealed relay    https://relay.example/relay\n",
		`url = "https://relay.example/push-relay"`,
		`token_url = "https://relay.example/token-service"`,
		`client_id = "my-bridge"`,
	} {
		if !strings.Contains(r.guide, want) {
			t.Errorf("%q is not in\n%s", want, r.guide)
		}
	}
}

func TestRelayRefusals(t *testing.T) {
	r := startRelay(t, "-addr", "127.0.0.1:0")
	_, rest, _ := strings.Cut(r.guide, "http://")
	inUse, _, _ := strings.Cut(rest, "/")
	for name, args := range map[string][]string{
		"address in use":       {"-addr", inUse},
		"client with a quote":  {"-addr", "127.0.0.1:0", "-client", `a"b`},
		"URL without a scheme": {"-addr", "127.0.0.1:0", "-url", "relay.example"},
		"URL that is no URL":   {"-addr", "127.0.0.1:0", "-url", "http://%zz"},
		"URL that is a path":   {"-addr", "127.0.0.1:0", "-url", "/relay"},
		"URL with a query":     {"-addr", "127.0.0.1:0", "-url", "http://relay.example?a=b"},
	} {
		t.Run(name, func(t *testing.T) {
			out, code := output(t, tool(t, append([]string{"relay"}, args...)...))
			if code == 0 || !strings.HasPrefix(out, "sealpush relay: ") {
				t.Errorf("exit code %d, %q", code, out)
			}
		})
	}
}

// A pairing link leads to /pair of the relay's origin.
func TestRelayServesThePageOfPairingLinks(t *testing.T) {
	r := startRelay(t, "-addr", "127.0.0.1:0")
	_, rest, _ := strings.Cut(r.guide, "Sealed relay ")
	address, _, _ := strings.Cut(strings.TrimSpace(rest), "\n")
	resp, err := http.Get(strings.TrimSuffix(address, "/relay") + "/pair")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Security-Policy") == "" {
		t.Errorf("%s, policy %q", resp.Status, resp.Header.Get("Content-Security-Policy"))
	}
}
