package main

import (
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/sealpush/sealpush/payload"
)

const (
	tailSize = 64 << 10 // bytes kept of each stream
	lineSize = 256      // bytes kept of each line, from its end
)

// tail keeps the last bytes written to it, in two buffers of tailSize: when the
// current one is full it becomes the previous one. Memory stays the same
// however much a command prints.
type tail struct {
	mu                sync.Mutex
	previous, current []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(p)
	p = p[max(0, len(p)-tailSize):]
	if len(t.current)+len(p) > tailSize {
		t.previous, t.current = t.current, append(make([]byte, 0, tailSize), p...)
		return n, nil
	}
	t.current = append(t.current, p...)
	return n, nil
}

// lines returns the last lines, as a phone can show them. Of a line longer than
// a phone would show, the end is kept: progress bars and stack traces put the
// news there.
func (t *tail) lines() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := string(t.previous) + string(t.current)
	lines := payload.LogTail(kept[max(0, len(kept)-tailSize):])
	for i, line := range lines {
		lines[i] = lineEnd(line)
	}
	return lines
}

func lineEnd(line string) string {
	if len(line) <= lineSize {
		return strings.Clone(line) // not the whole tail with it
	}
	start := len(line) - lineSize
	for start < len(line) && !utf8.RuneStart(line[start]) {
		start++
	}
	return "…" + line[start:]
}
