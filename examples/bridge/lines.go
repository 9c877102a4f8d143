package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"slices"
)

// jsonRPC returns the JSON-RPC message, or the batch of them, in a line that an agent has printed. A byte order mark
// before it is dropped, and what is not UTF-8 in it becomes U+FFFD: a WebSocket client would close the connection
// because of it, and receive the same message on the next one. For any other line (a banner, a warning, a log line) ok
// is false.
func jsonRPC(line []byte) (message []byte, ok bool) {
	line = bytes.ToValidUTF8(bytes.TrimPrefix(line, []byte("\uFEFF")), []byte("\uFFFD"))
	type version struct {
		Version string `json:"jsonrpc"`
	}
	var one version
	if json.Unmarshal(line, &one) == nil {
		return line, one.Version == "2.0"
	}
	var batch []version
	if json.Unmarshal(line, &batch) != nil || len(batch) == 0 {
		return nil, false
	}
	return line, !slices.ContainsFunc(batch, func(v version) bool { return v.Version != "2.0" })
}

// eachLine calls do with each line of r, without its end; do must not keep it. Blank lines are skipped, and so are
// those longer than most bytes, which are logged. The last line needs no end.
func eachLine(r io.Reader, most int, do func(line []byte)) error {
	in := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	size := 0 // length of the line in bytes, of which at most most are kept
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
