package main

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	// What a command left running may hold its streams open for years. Once the command itself has ended, its output is
	// read until there has been none for grace, and no more than was in the pipe.
	grace = 2 * time.Second

	pipeSize = 1 << 20   // bytes that a pipe is asked to hold; a system may not let it have more than 64 KiB
	readSize = 256 << 10 // bytes
)

// outlet passes on what a command writes to one of its streams, and keeps the end.
type outlet struct {
	in   *os.File // the command's end: of a pipe or a terminal
	from *os.File
	to   io.Writer
	kept wholeLines

	exited atomic.Bool   // the command has
	done   chan struct{} // closed when all is passed on
}

// newOutlet passes on what is written to a pipe.
func newOutlet(to io.Writer, end wholeLines) (*outlet, error) {
	from, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	widen(from, pipeSize)
	return &outlet{in: in, from: from, to: to, kept: end, done: make(chan struct{})}, nil
}

// abandon is for a command that did not start.
func (o *outlet) abandon() {
	o.in.Close()
	o.from.Close()
}

// open begins, once the command has its end.
func (o *outlet) open() {
	o.in.Close()
	go o.pass()
}

// end says that the command has ended. done is closed when what it wrote is passed on.
func (o *outlet) end() {
	o.exited.Store(true)
	// On Windows, where a pipe has no deadline, it takes the end of the stream.
	o.from.SetReadDeadline(time.Now().Add(grace))
}

func (o *outlet) pass() {
	defer close(o.done)
	defer o.from.Close()
	defer o.kept.flush()
	broken := false
	buf := make([]byte, readSize)
	for left := pipeSize; left > 0; {
		exited := o.exited.Load()
		if exited {
			o.from.SetReadDeadline(time.Now().Add(grace)) // the wait for a slow reader does not count
		}
		n, err := o.from.Read(buf)
		if exited {
			left -= n
		}
		o.kept.Write(buf[:n])
		if n > 0 && !broken {
			_, failed := o.to.Write(buf[:n])
			if errors.Is(failed, syscall.EPIPE) {
				return // closing the pipe tells the command, as it would have been told without us
			}
			if broken = failed != nil; broken { // a full disk, say: the command goes on, and so does the tail
				say("run", "output is lost: %v", failed)
			}
		}
		if err != nil {
			return
		}
	}
}
