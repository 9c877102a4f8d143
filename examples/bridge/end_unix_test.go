//go:build unix

package main

import (
	"syscall"
	"testing"

	"github.com/coder/websocket"
)

func TestSignalsEndAgentAndBridge(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		for _, manners := range []string{"", "stubborn"} {
			t.Run(sig.String()+" "+manners, func(t *testing.T) {
				t.Parallel() // a stubborn agent takes five seconds
				b := startBridge(t, noPush, manners).pair(t)
				phone := b.connect(t)
				b.agent.tell(t, "ready")
				phone.expect("ready")
				if err := b.cmd.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
				phone.expectClose(websocket.StatusGoingAway)
				b.agent.gone(t)
				if status := b.wait(); status != 0 {
					t.Errorf("exit status %d", status)
				}
			})
		}
	}
}

func TestAgentEndsByASignal(t *testing.T) {
	b := startBridge(t, noPush, "").pair(t)
	phone := b.connect(t)
	b.agent.tell(t, "kill")
	phone.expectClose(websocket.StatusInternalError)
	if status := b.wait(); status != 128+int(syscall.SIGKILL) {
		t.Errorf("exit status %d", status)
	}
}
