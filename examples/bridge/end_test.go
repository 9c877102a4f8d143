package main

import (
	"strings"
	"testing"

	"github.com/coder/websocket"
)

func TestAgentEnds(t *testing.T) {
	for _, tt := range []struct {
		exit string
		code websocket.StatusCode
		want int
	}{
		{"exit 0", websocket.StatusNormalClosure, 0},
		{"exit 3", websocket.StatusInternalError, 3},
	} {
		t.Run(tt.exit, func(t *testing.T) {
			b := startBridge(t, noPush, "").pair(t)
			phone := b.connect(t)
			b.agent.tell(t, "last words", tt.exit)
			phone.expect("last words")
			phone.expectClose(tt.code)
			if status := b.wait(); status != tt.want {
				t.Errorf("exit status %d", status)
			}
		})
	}
}

func TestLastWordsWaitForAClient(t *testing.T) {
	b := startBridge(t, noPush, "").pair(t)
	b.agent.tell(t, "last words", "exit 3")
	b.stderr.waitFor(t, "waiting for a client to fetch")
	phone := b.connect(t)
	phone.expect("last words")
	phone.expectClose(websocket.StatusInternalError)
	if status := b.wait(); status != 3 {
		t.Errorf("exit status %d", status)
	}
}

func TestLastWordsDoNotWaitForEver(t *testing.T) {
	b := startBridge(t, noPush, "", "-linger", "10ms")
	b.agent.tell(t, "last words", "exit 3")
	b.stderr.waitFor(t, "no client fetched them")
	if status := b.wait(); status != 3 {
		t.Errorf("exit status %d", status)
	}
}

// What was dropped when the buffer was full counts as lost, too.
func TestLossIsCounted(t *testing.T) {
	b := startBridge(t, noPush, "", "-buffer", "2", "-linger", "10ms")
	b.agent.tell(t, "one", "two", "three", "four", "five", "exit 0")
	b.stderr.waitFor(t, "no client fetched them messages=2 dropped=3")
	b.wait()
}

func TestDroppedMessagesAreCountedWhenTheOthersWereFetched(t *testing.T) {
	b := startBridge(t, noPush, "", "-buffer", "2").pair(t)
	b.agent.tell(t, "one", "two", "three", "exit 0")
	b.stderr.waitFor(t, "waiting for a client to fetch the last messages")
	phone := b.connect(t)
	phone.expect("one")
	phone.expect("two")
	phone.expectClose(websocket.StatusNormalClosure)
	b.stderr.waitFor(t, "no client fetched them messages=0 dropped=1")
	b.wait()
}

func TestRefusals(t *testing.T) {
	for name, tt := range map[string]struct {
		config string
		args   []string
		status int
		says   string
	}{
		"no command":          {noPush, nil, 2, "usage"},
		"unknown flag":        {noPush, []string{"-frobnicate", "--", "true"}, 2, "usage"},
		"misspelt key":        {"[push_relay]\nurll = 1\n", []string{"--", "true"}, 1, "common.toml:2"},
		"no such config":      {noPush, []string{"-config", "nowhere.toml", "--", "true"}, 1, "nowhere.toml"},
		"no such command":     {noPush, []string{"--", "no-such-command-anywhere"}, 127, "no-such-command-anywhere"},
		"all addresses":       {noPush, []string{"-listen", ":0", "--", "true"}, 1, "-url"},
		"clear text":          {noPush, []string{"-listen", ":0", "-url", "http://bridge.example", "--", "true"}, 1, "-tls"},
		"clear text with TLS": {noPush, []string{"-tls", "-url", "http://bridge.example", "--", "true"}, 1, "https"},
		"URL with a password": {noPush, []string{"-url", "https://me:hunter2@bridge.example", "--", "true"}, 1, "credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, bridgeCommand(t, tt.config, tt.args...))
			if status := p.wait(); status != tt.status {
				t.Errorf("exit status %d", status)
			}
			if said := p.stderr.text(); !strings.Contains(said, tt.says) || strings.Contains(said, "hunter2") {
				t.Errorf("says %q", said)
			}
		})
	}
}
