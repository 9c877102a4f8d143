package main

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relayclient/bridge"
)

// output collects the lines of a stream.
type output struct {
	mu    sync.Mutex
	lines []string
	next  int           // the first line that waitFor has not seen
	more  chan struct{} // closed and renewed with each line
	end   chan struct{}
}

func collect(r io.Reader) *output {
	o := &output{more: make(chan struct{}), end: make(chan struct{})}
	go func() {
		defer close(o.end)
		lines := bufio.NewScanner(r)
		for lines.Scan() {
			o.mu.Lock()
			o.lines = append(o.lines, lines.Text())
			close(o.more)
			o.more = make(chan struct{})
			o.mu.Unlock()
		}
	}()
	return o
}

func (o *output) text() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.lines, "\n") + "\n"
}

// find returns the next line with want in it, or what to wait for.
func (o *output) find(want string) (line string, more <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.next < len(o.lines) {
		o.next++
		if line := o.lines[o.next-1]; strings.Contains(line, want) {
			return line, nil
		}
	}
	return "", o.more
}

// waitFor returns the next line with want in it.
func (o *output) waitFor(t *testing.T, want string) string {
	t.Helper()
	timeout := time.After(patience)
	for {
		line, more := o.find(want)
		if more == nil {
			return line
		}
		select {
		case <-more:
		case <-o.end:
			if line, more := o.find(want); more == nil {
				return line
			}
			t.Fatalf("the process ended without %q:\n%s", want, o.text())
		case <-timeout:
			t.Fatalf("no %q in\n%s", want, o.text())
		}
	}
}

type process struct {
	cmd            *exec.Cmd
	stdout, stderr *output
}

func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd, collect(stdout), collect(stderr)}
	t.Cleanup(func() {
		cmd.Process.Kill()
		p.wait()
		if strings.Contains(p.stderr.text(), "DATA RACE") {
			t.Error(p.stderr.text())
		}
	})
	return p
}

// wait returns the exit status.
func (p *process) wait() int {
	<-p.stdout.end
	<-p.stderr.end
	p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode()
}

// relayProcess is the tool's relay, built and running.
type relayProcess struct {
	*process
	base      string
	pushRelay string // the [push_relay] table that it prints
	secret    string
}

func startRelay(t *testing.T) *relayProcess {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "sealpush.exe")
	build := exec.Command("go", "build", "-C", "../../cmd/sealpush", "-o", binary, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build, err, out)
	}
	r := &relayProcess{process: start(t, exec.Command(binary, "relay", "-addr", "127.0.0.1:0"))}
	r.stdout.waitFor(t, "Ready.")
	_, rest, _ := strings.Cut(r.stdout.text(), "    [push_relay]\n")
	table, rest, _ := strings.Cut(rest, "\n\n")
	r.pushRelay = "[push_relay]\n" + table + "\n"
	_, secret, _ := strings.Cut(table, `client_secret = "`)
	r.secret, _, _ = strings.Cut(secret, `"`)
	_, rest, _ = strings.Cut(rest, "    curl http://")
	host, _, found := strings.Cut(rest, "/\n")
	if !found || r.secret == "" {
		t.Fatalf("cannot read\n%s", r.stdout.text())
	}
	r.base = "http://" + host + "/"
	return r
}

// arrivals is what the relay's GET / says.
type arrivals struct {
	Devices []struct{ Platform, BundleID string }
	Pushes  []struct {
		Title, Body string
		Results     []struct{ Status string }
	}
}

func (r *relayProcess) arrivals(t *testing.T) (a arrivals) {
	t.Helper()
	answer := get(t, r.base)
	if err := json.Unmarshal([]byte(answer.body), &a); err != nil {
		t.Fatalf("%v in %q", err, answer.body)
	}
	return a
}

// bridgeProcess is this program, running, and its agent.
type bridgeProcess struct {
	*process
	agent    *agentControl
	pairURL  string
	response bridge.PairingResponse // after pair
}

// noPush is a common.toml without [push_relay].
const noPush = "[agent]\nname = \"other\"\n"

func startBridge(t *testing.T, config, manners string, args ...string) *bridgeProcess {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	b := &bridgeProcess{}
	b.process = start(t, bridgeCommand(t, config, append(args, "--", os.Args[0], "agent", listener.Addr().String(), manners)...))
	b.pairURL = strings.TrimSpace(b.stdout.waitFor(t, "/pair?code="))
	b.stdout.waitFor(t, "Ready.")
	b.agent = acceptAgent(t, listener)
	return b
}

func bridgeCommand(t *testing.T, config string, args ...string) *exec.Cmd {
	t.Helper()
	path := filepath.Join(t.TempDir(), "common.toml")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], append([]string{"-config", path}, args...)...)
	cmd.Env = append(os.Environ(), asBridge+"=1")
	return cmd
}

// pair does what a phone does that has scanned the pairing URL.
func (b *bridgeProcess) pair(t *testing.T) *bridgeProcess {
	t.Helper()
	answer := get(t, b.pairURL)
	if answer.status != http.StatusOK {
		t.Fatalf("pairing: %d, %q", answer.status, answer.body)
	}
	if err := json.Unmarshal([]byte(answer.body), &b.response); err != nil {
		t.Fatalf("%v in %q", err, answer.body)
	}
	return b
}

type answer struct {
	status int
	body   string
	header http.Header
	tls    *tls.ConnectionState
}

// insecure is for a phone that checks a certificate by its fingerprint.
var insecure = &http.Client{Timeout: patience, Transport: &http.Transport{
	TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
}}

func get(t *testing.T, url string) answer {
	t.Helper()
	response, err := insecure.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response.StatusCode, string(body), response.Header, response.TLS}
}
