package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
)

// eachLine calls do with each line of r, without its end; do must not keep it.
// Blank lines are skipped, and so, with a word in the log, are those longer than
// most bytes. The last line needs no end.
func eachLine(r io.Reader, most int, do func(line []byte)) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	size := 0 // of the line, though no more than most of it is kept
	for {
		part, err := in.ReadSlice('\n')
		size += len(part)
		if size <= most+len("\r\n") {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		switch text := bytes.TrimRight(line, "\r\n"); {
		case size > most+len("\r\n") || len(text) > most:
			slog.Error("the agent's message is too long and lost", "bytes", size, "at_most", most)
		case len(text) > 0:
			do(text)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		line, size = line[:0], 0
	}
}
