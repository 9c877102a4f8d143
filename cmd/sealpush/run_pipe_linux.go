package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// widen lets a pipe hold more, so that its writer waits for us less often. The system may refuse.
func widen(pipe *os.File, bytes int) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	raw.Control(func(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, bytes) })
}
