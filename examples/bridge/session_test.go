package main

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

func TestTokenIsNeeded(t *testing.T) {
	b := startBridge(t, noPush, "").pair(t)
	for name, header := range map[string]string{
		"none":         "",
		"wrong":        "Bearer wrong",
		"empty":        "Bearer ",
		"longer":       "Bearer " + b.response.AuthToken.Reveal() + "x",
		"other scheme": "Basic " + b.response.AuthToken.Reveal(),
	} {
		t.Run(name, func(t *testing.T) {
			conn, response, err := websocket.Dial(t.Context(), b.response.URL, &websocket.DialOptions{
				HTTPHeader: http.Header{"Authorization": {header}},
			})
			if err == nil {
				conn.CloseNow()
				t.Fatal("connected")
			}
			if response == nil || response.StatusCode != http.StatusUnauthorized || response.Header.Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestSecondClientReplacesTheFirst(t *testing.T) {
	b := startBridge(t, noPush, "").pair(t)
	first := b.connect(t)
	b.agent.tell(t, "to the first")
	first.expect("to the first")
	second := b.connect(t)
	first.expectClose(4001)
	b.agent.tell(t, "to the second")
	second.expect("to the second")
	second.send("from the second")
	b.agent.expect(t, "from the second")
}

func TestMessageSize(t *testing.T) {
	b := startBridge(t, noPush, "", "-max-message", "100000").pair(t)
	phone := b.connect(t)
	largest := message(strings.Repeat("x", 100_000-len(message(""))))
	phone.send(largest)
	b.agent.expect(t, largest)
	b.agent.tell(t, largest, largest+"x", strings.Repeat("x", 1_000_000), "after")
	phone.expect(largest)
	phone.expect("after")
	b.stderr.waitFor(t, "too long and lost")

	phone.send(largest + "x")
	phone.expectClose(websocket.StatusMessageTooBig)
	phone = b.connect(t)
	phone.send("after")
	b.agent.expect(t, "after")
}

func TestOddMessages(t *testing.T) {
	b := startBridge(t, noPush, "").pair(t)
	phone := b.connect(t)
	phone.send("{\n  \"a\": 1\r\n}\n")
	b.agent.expect(t, `{   "a": 1  } `)

	b.agent.print(t, "", message("with a CR")+"\r", "\r", message("not UTF-8: \xff"))
	phone.expect("with a CR")
	phone.expect("not UTF-8: \uFFFD")

	if err := phone.Write(t.Context(), websocket.MessageBinary, []byte("binary")); err != nil {
		t.Fatal(err)
	}
	phone.expectClose(websocket.StatusUnsupportedData)
}

// The phone gets JSON-RPC and nothing else of what an agent prints.
func TestNoiseStaysWithTheBridge(t *testing.T) {
	b := startBridge(t, noPush, "").pair(t)
	b.agent.print(t, "\uFEFF"+message("after a byte order mark"), "Agent 1.2, ready.", `{"level":"info","msg":"listening"}`, `[]`, `"text"`, `42`,
		`{"jsonrpc":"1.0","method":"old"}`, `[{"jsonrpc":"2.0","method":"a"},{"method":"b"}]`, `{"jsonrpc":"2.0","method":"cut`,
		`[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]`, message("last"))
	b.agent.printed(t)
	phone := b.connect(t)
	phone.expect("after a byte order mark")
	if got, err := phone.receive(); err != nil || got != `[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","method":"b"}]` {
		t.Errorf("the phone receives %q, %v", got, err)
	}
	phone.expect("last")
	b.stderr.waitFor(t, "WARN the agent printed a line that is not JSON-RPC")
	if got := strings.Count(b.stderr.text(), "not JSON-RPC"); got != 1 {
		t.Errorf("said %d times at Warn", got)
	}
}

func TestClientThatDoesNotAnswerPings(t *testing.T) {
	t.Parallel() // takes twice the timeout
	b := startBridge(t, noPush, "", "-timeout", "2s").pair(t)
	b.connect(t) // does not read, and so does not answer
	b.stderr.waitFor(t, "no answer to a ping")
	b.agent.tell(t, "kept")
	b.connect(t).expect("kept")
}

func TestClientThatDoesNotReadDoesNotStopTheAgent(t *testing.T) {
	b := startBridge(t, noPush, "", "-timeout", "1s", "-buffer", "4").pair(t)
	b.connect(t)
	line := strings.Repeat("x", 1<<20)
	for range 64 { // more than the sockets' buffers hold
		b.agent.tell(t, line)
	}
	b.agent.printed(t)
	b.stderr.waitFor(t, "outbox is full")
}

func TestAgentThatDoesNotRead(t *testing.T) {
	t.Parallel() // takes half the timeout
	b := startBridge(t, noPush, "deaf", "-timeout", "6s").pair(t)
	phone := b.connect(t)
	closed := make(chan error, 1)
	go func() {
		_, _, err := phone.Read(context.Background())
		closed <- err
	}()
	message := []byte(strings.Repeat("x", 200_000))
	for range 100 { // more than the pipe and the inbox hold
		if phone.Write(t.Context(), websocket.MessageText, message) != nil {
			break
		}
	}
	if err := <-closed; websocket.CloseStatus(err) != websocket.StatusTryAgainLater {
		t.Errorf("closed with %v", err)
	}
}
