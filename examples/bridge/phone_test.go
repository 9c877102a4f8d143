package main

import (
	"context"
	"net/http"
	"testing"

	"github.com/coder/websocket"
)

// phone is a WebSocket client of the bridge.
type phone struct {
	*websocket.Conn
	t *testing.T
}

func (b *bridgeProcess) connect(t *testing.T) phone {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, b.response.URL, &websocket.DialOptions{
		HTTPClient: insecure,
		HTTPHeader: http.Header{"Authorization": {"Bearer " + b.response.AuthToken.Reveal()}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.CloseNow() })
	conn.SetReadLimit(-1)
	return phone{conn, t}
}

func (p phone) send(message string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	if err := p.Write(ctx, websocket.MessageText, []byte(message)); err != nil {
		p.t.Fatal(err)
	}
}

func (p phone) receive() (string, error) {
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	_, message, err := p.Read(ctx)
	return string(message), err
}

// expect checks the next message, as the agent was told to print it.
func (p phone) expect(want string) {
	p.t.Helper()
	want = message(want)
	if got, err := p.receive(); err != nil || got != want {
		p.t.Fatalf("the phone receives %.200q, %v; want %.200q", got, err, want)
	}
}

// expectClose checks the code with which the bridge closes the connection.
func (p phone) expectClose(want websocket.StatusCode) {
	p.t.Helper()
	if got, err := p.receive(); websocket.CloseStatus(err) != want {
		p.t.Fatalf("the phone receives %.200q, %v; want a close with %d", got, err, want)
	}
}

// leave closes the connection. The bridge knows when it returns.
func (p phone) leave() {
	p.t.Helper()
	if err := p.Close(websocket.StatusNormalClosure, ""); err != nil {
		p.t.Fatal(err)
	}
}
