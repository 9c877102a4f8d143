package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/examples/programtest"
)

// The test binary plays two parts more: started with asClient in its environment
// it is the client, and with the argument "agent" it is the bridge's command.
const asClient = "SEALPUSH_TEST_RUN_CLIENT"

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 2 && os.Args[1] == "agent":
		playAgent(os.Args[2])
	case os.Getenv(asClient) != "":
		main()
	default:
		os.Exit(m.Run())
	}
}

// playAgent answers each line, and prints what it is told at an address until
// there is no more.
func playAgent(address string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() {
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			fmt.Printf(`{"jsonrpc":"2.0","method":"echo","params":[%s]}`+"\n", in.Text())
		}
	}()
	io.Copy(os.Stdout, conn)
}

// setup is a running bridge, the test's line to its agent, and a push relay.
type setup struct {
	relay, bridge *programtest.Program
	agent         net.Conn
	pairingURL    string
}

func newSetup(t *testing.T, args ...string) setup {
	t.Helper()
	s := setup{relay: programtest.Start(t, exec.Command(build(t, "../../cmd/sealpush", "."), "relay", "-addr", "127.0.0.1:0"))}
	table := s.relay.Await(t, `^    \[push_relay\]\n(?:    .+\n)+`)[0]
	config := filepath.Join(t.TempDir(), "common.toml")
	if err := os.WriteFile(config, []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	args = append(args, "-config", config, "--", os.Args[0], "agent", listener.Addr().String())
	s.bridge = programtest.Start(t, exec.Command(build(t, ".", "."), args...))
	s.pairingURL = s.bridge.Await(t, `^ +(http\S+)$`)[1]
	s.bridge.Await(t, "^Ready")
	if s.agent, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.agent.Close() })
	return s
}

// build makes a program of a module, which is dir from the bridge's.
func build(t *testing.T, dir, pkg string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "program.exe")
	cmd := exec.Command("go", "build", "-C", filepath.Join("..", dir), "-o", binary, pkg)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return binary
}

// client runs the client; what is written to the writer is typed.
func client(t *testing.T, args ...string) (*programtest.Program, io.Writer) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asClient+"=1")
	typed, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	return programtest.Start(t, cmd), typed
}

func TestConversation(t *testing.T) {
	for name, args := range map[string][]string{"in the clear": nil, "TLS": {"-tls"}} {
		t.Run(name, func(t *testing.T) {
			s := newSetup(t, args...)
			phone, typed := client(t, s.pairingURL)
			phone.Await(t, "^Connected to ws")
			s.bridge.Await(t, "device registered with the push relay")

			io.WriteString(typed, "hello\n")
			phone.Await(t, `"echo".*"text":"hello"`)
			io.WriteString(s.agent, `{"jsonrpc":"2.0","method":"something new"}`+"\n")
			phone.Await(t, "something new")

			io.WriteString(typed, "\n")
			phone.Await(t, "^Disconnected")
			s.bridge.Await(t, "client disconnected")
			io.WriteString(s.agent, `{"jsonrpc":"2.0","method":"while you were away"}`+"\n")
			s.relay.Await(t, "path=/push-relay/push status=200")
			s.bridge.Await(t, "push notification sent devices=1$")
			if strings.Contains(phone.Output(), "away") {
				t.Errorf("it is not disconnected:\n%s", phone.Output())
			}

			io.WriteString(typed, "\n")
			phone.Await(t, "while you were away")
			s.agent.Close() // which ends it
			phone.Await(t, "^The bridge says: the agent has ended$")
			if code := phone.ExitCode(t); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	s := newSetup(t, "-tls")
	address, fingerprint, _ := strings.Cut(s.pairingURL, "#")
	_, code, _ := strings.Cut(address, "code=")
	other := "SHA256:" + strings.Repeat("00:", 31) + "00"
	for _, tt := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"no URL", nil, 2, "usage"},
		{"a flag", []string{"-help"}, 2, "usage"},
		{"another certificate", []string{address + "#" + other}, 1, "not the one of the pairing URL"},
		{"no fingerprint", []string{address}, 1, "certificate"},
		{"a wrong code", []string{strings.Replace(address, code, "wrong", 1) + "#" + fingerprint}, 1, "403 Forbidden: wrong code"},
		{"nobody there", []string{"http://127.0.0.1:1/pair?code=" + code}, 1, "not paired"},
		{"no URL at all", []string{"pairing.example"}, 1, "not paired"},
	} {
		phone, _ := client(t, tt.args...)
		if got := phone.ExitCode(t); got != tt.code || !strings.Contains(phone.Output(), tt.says) || strings.Contains(phone.Output(), code) {
			t.Errorf("%s: exit code %d, says %q", tt.name, got, phone.Output())
		}
	}
	first, _ := client(t, s.pairingURL)
	first.Await(t, "^Connected")
	second, _ := client(t, s.pairingURL)
	if got := second.ExitCode(t); got != 1 || !strings.Contains(second.Output(), "the code has been used") {
		t.Errorf("the second phone: exit code %d, says %q", got, second.Output())
	}
}
