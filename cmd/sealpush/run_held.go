package main

import (
	"bytes"
	"io"
	"os"
)

// heldInMemory is how much of each stream -quiet keeps in memory, in bytes. The rest is in a temporary file.
const heldInMemory = 1 << 20

// A held is a stream that is printed when the command has failed. Where it cannot be kept, it is printed at once.
type held struct {
	to     *os.File
	memory bytes.Buffer
	file   *os.File // what follows, or nil
	passes bool     // it is not held any more
}

// Write keeps p.
func (h *held) Write(p []byte) (int, error) {
	if h.passes {
		return h.to.Write(p)
	}
	if h.file == nil && h.memory.Len()+len(p) <= heldInMemory {
		return h.memory.Write(p)
	}
	var err error
	if h.file == nil {
		h.file, err = os.CreateTemp("", "sealpush-run-")
	}
	n := 0
	if err == nil {
		n, err = h.file.Write(p)
	}
	if err == nil {
		return n, nil
	}
	say("run", "the output is not held back any more: %v", err)
	if err := h.release(); err != nil {
		return n, err
	}
	rest, err := h.to.Write(p[n:])
	return n + rest, err
}

// release prints what is held, and from then on everything that is written.
func (h *held) release() error {
	if h.passes {
		return nil
	}
	h.passes = true
	if _, err := h.to.Write(h.memory.Bytes()); err != nil || h.file == nil {
		return err
	}
	if _, err := h.file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := io.Copy(h.to, h.file)
	return err
}

// close drops what is held.
func (h *held) close() {
	if h.file != nil {
		h.file.Close()
		os.Remove(h.file.Name())
	}
}
