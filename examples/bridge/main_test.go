package main

import (
	"bufio"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary plays two parts more: started with asBridge in its environment
// it is the bridge, and with the argument "agent" it is the bridge's command.
const asBridge = "SEALPUSH_TEST_RUN_BRIDGE"

// patience is how long a test waits for what must come.
const patience = time.Minute

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 3 && os.Args[1] == "agent":
		playAgent(os.Args[2], os.Args[3])
	case os.Getenv(asBridge) != "":
		main()
	default:
		slog.SetDefault(slog.New(slog.DiscardHandler))
		os.Exit(m.Run())
	}
}

// playAgent prints what it is told at addr and tells there what it reads, each a
// line. It answers ? with !, once all before has been printed; "exit N", "kill"
// and the end of its standard input end it. Its manners may be "deaf", which does not
// read, or "stubborn", which does not end.
func playAgent(addr, manners string) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(70)
	}
	switch manners {
	case "stubborn":
		signal.Ignore(os.Interrupt, syscall.SIGTERM)
	case "deaf":
	default:
		go func() {
			for in := bufio.NewReader(os.Stdin); ; {
				line, err := in.ReadString('\n')
				if err != nil {
					os.Exit(0)
				}
				conn.Write([]byte(line))
			}
		}()
	}
	told := bufio.NewReader(conn)
	for {
		line, err := told.ReadString('\n')
		if err != nil {
			os.Exit(71) // the test is over
		}
		if line == "?\n" {
			conn.Write([]byte("!\n"))
			continue
		}
		if line == "kill\n" {
			self, _ := os.FindProcess(os.Getpid())
			self.Kill()
		}
		if status, ok := strings.CutPrefix(line, "exit "); ok {
			n, _ := strconv.Atoi(strings.TrimSpace(status))
			os.Exit(n)
		}
		os.Stdout.WriteString(line)
	}
}

// agentControl is the test's end of an agent's connection.
type agentControl struct {
	net.Conn
	said *bufio.Reader
}

// acceptAgent waits for the agent to introduce itself.
func acceptAgent(t *testing.T, listener net.Listener) *agentControl {
	t.Helper()
	listener.(*net.TCPListener).SetDeadline(time.Now().Add(patience))
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(2 * patience))
	return &agentControl{conn, bufio.NewReader(conn)}
}

// message returns text as a JSON-RPC message. What begins with a brace is one already.
func message(text string) string {
	if strings.HasPrefix(text, "{") {
		return text
	}
	return `{"jsonrpc":"2.0","method":"say","params":["` + text + `"]}`
}

// tell makes the agent print messages, or do what playAgent says.
func (a *agentControl) tell(t *testing.T, lines ...string) {
	t.Helper()
	for i, line := range lines {
		if line != "?" && line != "kill" && !strings.HasPrefix(line, "exit ") {
			lines[i] = message(line)
		}
	}
	a.print(t, lines...)
}

// print makes the agent print lines as they are.
func (a *agentControl) print(t *testing.T, lines ...string) {
	t.Helper()
	if _, err := a.Write([]byte(strings.Join(lines, "\n") + "\n")); err != nil {
		t.Fatal(err)
	}
}

// printed waits until the agent has printed all that it was told.
func (a *agentControl) printed(t *testing.T) {
	t.Helper()
	a.tell(t, "?")
	a.expect(t, "!")
}

// expect checks the next line that the agent tells.
func (a *agentControl) expect(t *testing.T, want string) {
	t.Helper()
	if got, err := a.said.ReadString('\n'); err != nil || got != want+"\n" {
		t.Fatalf("the agent says %q, %v; want %q", got, err, want)
	}
}

// gone waits until the agent's process has ended.
func (a *agentControl) gone(t *testing.T) {
	t.Helper()
	if line, err := a.said.ReadString('\n'); err == nil || os.IsTimeout(err) {
		t.Fatalf("the agent lives: %q, %v", line, err)
	}
}
