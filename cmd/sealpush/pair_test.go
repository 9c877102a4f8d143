package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/examples/programtest"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// pairFixture is a relay with inboxes, and where the registry will be.
type pairFixture struct {
	relay    *relaytest.Relay
	server   *httptest.Server
	registry string
}

func newPairFixture(t *testing.T) pairFixture {
	t.Helper()
	f := pairFixture{relay: relaytest.NewUnstartedRelay(), registry: filepath.Join(t.TempDir(), "new", "devices.json")}
	t.Cleanup(f.relay.Close)
	mux := http.NewServeMux()
	mux.Handle("/relay", http.StripPrefix("/relay", f.relay))
	mux.Handle("/inbox", f.relay.InboxHandler())
	f.server = httptest.NewServer(mux)
	t.Cleanup(f.server.Close)
	return f
}

// pair starts the command; what is written to the writer is typed.
func (f pairFixture) pair(t *testing.T, args ...string) (pair *programtest.Program, typed io.WriteCloser, process *os.Process) {
	t.Helper()
	cmd := tool(t, append([]string{"pair", "-relay-url", f.server.URL + "/relay", "-registry", f.registry, "-addr", "127.0.0.1:0", "-host", "db1"}, args...)...)
	typed, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pair = programtest.Start(t, cmd)
	return pair, typed, cmd.Process
}

func link(t *testing.T, pair *programtest.Program) string {
	t.Helper()
	pair.Await(t, "Control-C stops it")
	return pair.Await(t, `^Link +(\S+)$`)[1]
}

// phone starts a phone that ends with its first alert.
func (f pairFixture) phone(t *testing.T, link, state string) *programtest.Program {
	t.Helper()
	return programtest.Start(t, tool(t, "phone", "-link", link, "-state", state, "-name", "pocket", "-n", "1"))
}

func (f pairFixture) devices(t *testing.T) []pairing.Device {
	t.Helper()
	from, err := openRegistry(f.registry)
	if err != nil {
		t.Fatal(err)
	}
	defer from.close()
	snapshot, err := from.store.Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return snapshot.Devices
}

func typeLine(t *testing.T, typed io.Writer, line string) {
	t.Helper()
	if _, err := fmt.Fprintln(typed, line); err != nil {
		t.Fatal(err)
	}
}

func TestPair(t *testing.T) {
	for _, kind := range []string{"", "sqlite:"} {
		t.Run("registry "+kind, func(t *testing.T) {
			f := newPairFixture(t)
			f.registry = kind + f.registry
			pair, typed, _ := f.pair(t)
			address := link(t, pair)
			if !strings.HasPrefix(address, f.server.URL+"/pair#") {
				t.Errorf("the link is %s", address)
			}
			pair.Await(t, "This machine only: no real phone can reach http://127.0.0.1:")
			pair.Await(t, "sealpush phone -link 'LINK'")
			phone := f.phone(t, address, t.TempDir())
			onPhone := phone.Await(t, `^Fingerprint  (\S+)`)[1]
			shown := pair.Await(t, `(?s)^Phone +pocket \(example\)\nFingerprint  (\S+)\n.*Type yes`)[1]
			if shown != onPhone {
				t.Errorf("shows fingerprint %s, the phone %s", shown, onPhone)
			}
			typeLine(t, typed, "yes")
			if code := pair.ExitCode(t); code != 0 {
				t.Errorf("exit code %d:\n%s", code, pair.Output())
			}
			phone.Await(t, "TEST     test on db1")
			devices := f.devices(t)
			if len(devices) != 1 || devices[0].Name != "pocket" || devices[0].CreatedBy != pairedBy {
				t.Errorf("the registry has %v", devices)
			}
			late := f.phone(t, address, t.TempDir()) // with what the scrollback shows
			if code := late.ExitCode(t); code == 0 || len(f.devices(t)) != 1 {
				t.Errorf("the link has paired another phone:\n%s", late.Output())
			}
		})
	}
}

// The README's first commands: after a pairing with a relay's URL alone, the other commands need no flags. Those that were
// there before keep their settings.
func TestFirstCommands(t *testing.T) {
	f := newPairFixture(t)
	home := t.TempDir()
	at := func(args ...string) *exec.Cmd {
		cmd := tool(t, args...)
		cmd.Env = append(cmd.Env, "HOME="+home, "XDG_CONFIG_HOME="+home, "AppData="+home)
		return cmd
	}
	config := ""
	pairOne := func(number string) (said string) {
		t.Helper()
		cmd := at("pair", "-relay-url", f.server.URL+"/relay", "-addr", "127.0.0.1:0")
		typed, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		pair := programtest.Start(t, cmd)
		phone := programtest.Start(t, at("phone", "-link", link(t, pair), "-state", t.TempDir(), "-n", number))
		pair.Await(t, "Type yes")
		typeLine(t, typed, "yes")
		if code := pair.ExitCode(t); code != 0 {
			t.Fatalf("exit code %d:\n%s", code, pair.Output())
		}
		if number == "1" {
			return pair.Output()
		}
		config = pair.Await(t, `^The relay's URL is kept in (.+\.toml), `)[1]
		if said, code := output(t, at("run", "-name", "backup", "--", os.Args[0], "job", "fail")); code != 3 || strings.Contains(said, "sealpush") {
			t.Errorf("exit code %d, output %q", code, said)
		}
		phone.Await(t, "FAILURE  backup on ")
		return pair.Output()
	}
	pairOne("2")

	before, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(config); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the settings, which may hold a password: %v, %v", info.Mode(), err)
	}
	changed := append(before, "host = \"db1\"\n"...)
	if err := os.WriteFile(config, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if said := pairOne("1"); strings.Contains(said, "other commands") {
		t.Errorf("the settings are right, and it says %s", said)
	}
	if after, err := os.ReadFile(config); err != nil || !bytes.Equal(after, changed) {
		t.Errorf("another pairing changed the settings to %q, %v", after, err)
	}
	for settings, want := range map[string]string{
		"host = \"db1\"\n":                          "The other commands do not know this relay: set relay_url in " + config,
		"relay_url = \"https://relay.example/x\"\n": "The other commands post to another relay, whose URL is in " + config,
	} {
		write(t, config, settings)
		if said := pairOne("1"); !strings.Contains(said, want) {
			t.Errorf("%q is not in %s", want, said)
		}
	}
}

// A link leads to an address in the network. One that is of use on this machine alone is made where somebody asks for it.
func TestWhereTheLinkLeads(t *testing.T) {
	everywhere := &net.TCPAddr{IP: net.IPv6zero, Port: 8787}
	inNetwork, err := pairing.PhoneAddresses(everywhere.String())
	if err != nil { // a machine without a network
		inNetwork = []string{""}
	}
	for name, c := range map[string]struct {
		options pairOptions
		ip      net.IP
		want    string // "" for an error
	}{
		"all addresses":       {pairOptions{}, net.IPv6zero, inNetwork[0]},
		"one address":         {pairOptions{}, net.IPv4(192, 0, 2, 7), "192.0.2.7:8787"},
		"a link-local one":    {pairOptions{}, net.ParseIP("fe80::1"), ""},
		"this machine":        {pairOptions{}, net.IPv4(127, 0, 0, 1), "127.0.0.1:8787"},
		"this machine, by v6": {pairOptions{}, net.IPv6loopback, "[::1]:8787"},
		"as it is told":       {pairOptions{url: "http://localhost:1"}, net.IPv6zero, "localhost:1"},
	} {
		got, err := c.options.base(&net.TCPAddr{IP: c.ip, Port: 8787})
		if c.want == "" {
			if !errors.Is(err, pairing.ErrThisMachineOnly) || !strings.Contains(err.Error(), "-url") {
				t.Errorf("%s: %s, %v", name, got, err)
			}
		} else if err != nil || got != "http://"+c.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, c.want)
		}
	}
}

func TestAnythingButYesRevokes(t *testing.T) {
	for name, answer := range map[string]string{"no": "no\n", "y": "y\n", "empty": "\n", "end of input": ""} {
		t.Run(name, func(t *testing.T) {
			f := newPairFixture(t)
			pair, typed, _ := f.pair(t)
			f.phone(t, link(t, pair), t.TempDir())
			pair.Await(t, "Type yes")
			io.WriteString(typed, answer)
			typed.Close()
			if code := pair.ExitCode(t); code != exitFailed {
				t.Errorf("exit code %d", code)
			}
			pair.Await(t, "so the phone is revoked")
			if devices := f.devices(t); len(devices) != 0 || f.relay.Stats().Requests != 0 {
				t.Errorf("%d phones, %d requests to the relay", len(devices), f.relay.Stats().Requests)
			}
		})
	}
}

func TestPairByPastedRequest(t *testing.T) {
	f := newPairFixture(t)
	phone := relaytest.NewPhone()
	pair, typed, _ := f.pair(t)
	address := link(t, pair)
	typeLine(t, typed, "yes")
	pair.Await(t, "This line is no pairing request: .*")
	typeLine(t, typed, fmt.Sprintf(`{"name":"far","platform":"ios","publicKey":%q,"pushToken":%q}`, phone.PublicKey(), phone.PushToken()))
	pair.Await(t, "Fingerprint  "+phone.PublicKey().Fingerprint())
	if late := f.phone(t, address, t.TempDir()); late.ExitCode(t) == 0 {
		t.Errorf("the link has paired a second phone:\n%s", late.Output())
	}
	typeLine(t, typed, "yes")
	if code := pair.ExitCode(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, pair.Output())
	}
	if received, err := phone.Received(f.relay); err != nil || len(received) != 1 {
		t.Errorf("the phone received %v, %v", received, err)
	}
	if strings.Contains(pair.Output(), phone.PushToken()) {
		t.Errorf("prints the push token:\n%s", pair.Output())
	}
}

// The pairing API of the command is for the phone alone, and knows one thing.
func TestPairServesPairingAlone(t *testing.T) {
	f := newPairFixture(t)
	pair, _, _ := f.pair(t)
	parsed, err := pairing.ParseLink(link(t, pair))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		method, path, token string
		want                int
	}{
		{"POST", devicesPath, "", 401},
		{"POST", devicesPath, "wrong", 401},
		{"POST", devicesPath, parsed.Token.Reveal(), 400},
		{"GET", devicesPath, parsed.Token.Reveal(), 404},
		{"DELETE", devicesPath + "/1", parsed.Token.Reveal(), 404},
		{"GET", "/", "", 404},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, parsed.URL+c.path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+c.token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, resp.StatusCode, c.want)
		}
	}
}

func TestPairSaysWhatIsMissing(t *testing.T) {
	f := newPairFixture(t)
	expect(t, exitUsage, []string{"no relay url", "SEALPUSH_RELAY_URL"}, "pair", "-registry", f.registry)
	expect(t, exitUsage, []string{"no registry", "SEALPUSH_REGISTRY"}, "pair", "-relay-url", f.server.URL, "-registry=")
	expect(t, exitUsage, []string{"go together"}, "pair", "-relay-url", f.server.URL, "-registry", f.registry, "-tls-cert", "x")
	expect(t, exitFailed, []string{"no phone came within 1ms"}, "pair", "-relay-url", f.server.URL, "-registry", f.registry,
		"-addr", "127.0.0.1:0", "-timeout", "1ms")
}

// A test alert that does not arrive leaves the phone paired: its key was compared.
func TestPairWithoutARelay(t *testing.T) {
	f := newPairFixture(t)
	f.relay.Script(relaytest.Always, relaytest.Answer{Status: 410})
	pair, typed, _ := f.pair(t)
	f.phone(t, link(t, pair), t.TempDir())
	pair.Await(t, "Type yes")
	typeLine(t, typed, "yes")
	if code := pair.ExitCode(t); code != exitFailed || len(f.devices(t)) != 1 {
		t.Errorf("exit code %d:\n%s", code, pair.Output())
	}
	pair.Await(t, "the phone is paired, and the test alert was not delivered")
}

func TestDevices(t *testing.T) {
	f := newPairFixture(t)
	args := func(more ...string) []string {
		return append([]string{"devices", "-relay-url", f.server.URL + "/relay", "-registry", f.registry}, more...)
	}
	expect(t, exitFailed, []string{"there is no registry at " + f.registry}, args()...)
	expect(t, exitFailed, []string{"there is no registry at"}, args("revoke", "0123456789abcdef")...)
	if _, err := os.Stat(filepath.Dir(f.registry)); err == nil {
		t.Error("a registry was made")
	}

	phone := relaytest.NewPhone()
	from, err := openRegistry(f.registry)
	if err != nil {
		t.Fatal(err)
	}
	if err := from.create(); err != nil {
		t.Fatal(err)
	}
	registry, err := pairing.NewRegistry(from.store)
	if err != nil {
		t.Fatal(err)
	}
	req, err := pairing.ParseRequest(strings.NewReader(fmt.Sprintf(
		`{"name":"pocket","platform":"ios","publicKey":%q,"pushToken":%q}`, phone.PublicKey(), phone.PushToken())))
	if err != nil {
		t.Fatal(err)
	}
	device, _, err := registry.Pair(t.Context(), req, "laptop")
	if err != nil {
		t.Fatal(err)
	}
	expect(t, 0, []string{device.ID + "  pocket  ios", device.PublicKey.Fingerprint()}, args()...)
	expect(t, 0, []string{"accepted a test alert (202)"}, args("test", device.ID)...)
	if received, err := phone.Received(f.relay); err != nil || len(received) != 1 {
		t.Errorf("the phone received %v, %v", received, err)
	}
	expect(t, 0, []string{device.ID + " is now kitchen."}, args("rename", device.ID, "kitchen")...)
	if got := f.devices(t); len(got) != 1 || got[0].ID != device.ID || got[0].Name != "kitchen" || got[0].CreatedBy != "laptop" ||
		got[0].PublicKey != phone.PublicKey() || !got[0].PushToken.Equal(device.PushToken) {
		t.Errorf("the registry has %v", got)
	}
	expect(t, exitUsage, []string{"name must"}, args("rename", device.ID, strings.Repeat("x", 65))...)
	for _, verb := range []string{"test", "revoke"} {
		expect(t, exitFailed, []string{"'sealpush devices' lists the ids"}, args(verb, "0123456789abcdef")...)
	}
	f.relay.Script(1, relaytest.Answer{Status: 410})
	expect(t, exitFailed, []string{"was not delivered", "The app was deleted"}, args("test", device.ID)...)
	expect(t, 0, []string{"Revoked " + device.ID}, args("revoke", device.ID)...)
	expect(t, 0, []string{"No phone is paired", "sealpush pair"}, args()...)
	for _, wrong := range [][]string{{"tests"}, {"test"}, {"revoke", "a", "b"}, {"rename", "a"}} {
		expect(t, exitUsage, []string{"it takes nothing, test ID"}, args(wrong...)...)
	}
}
