package main

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/sealpush/sealpush/payload"
)

// Which stream the phone shows the end of.
const (
	tailProtocol = "" // the protocol's log_tail: standard error where there is any, else standard output
	tailStdout   = "stdout"
	tailStderr   = "stderr"
	tailBoth     = "both" // in the order in which lines arrived
)

const (
	tailSize = 64 << 10 // bytes kept of each stream, or of both together
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
		t.previous, t.current = t.current, t.previous[:0]
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
	kept := slices.Concat(t.previous, t.current)
	lines := payload.LogTail(payload.CleanOutput(kept[max(0, len(kept)-tailSize):]))
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

// wholeLines writes to a tail a line at a time where it is shared, so that two
// streams do not mix within one. It holds tailSize of a line at most.
type wholeLines struct {
	to     *tail
	shared bool
	rest   []byte
}

func (l *wholeLines) Write(p []byte) (int, error) {
	if !l.shared {
		return l.to.Write(p)
	}
	l.rest = append(l.rest, p...)
	whole := bytes.LastIndexByte(l.rest, '\n') + 1
	if len(l.rest)-whole > tailSize {
		whole = len(l.rest)
	}
	l.to.Write(l.rest[:whole])
	l.rest = append(l.rest[:0], l.rest[whole:]...)
	return len(p), nil
}

// flush ends the last line.
func (l *wholeLines) flush() {
	if len(l.rest) > 0 {
		l.to.Write(append(l.rest, '\n'))
		l.rest = nil
	}
}
