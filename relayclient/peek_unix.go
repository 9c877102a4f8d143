//go:build darwin || freebsd || linux || netbsd || openbsd

package relayclient

import (
	"net"
	"syscall"
)

// hasNews reports whether the other end has sent something that was not read yet, or has ended the connection. Go's
// network poller may take 10 ms to say so while all processors are busy.
func hasNews(conn net.Conn) bool {
	socket, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	news := false
	// Control does not wait for the reader, as Read would. The socket does not block.
	raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
		news = err != syscall.EAGAIN && err != syscall.EINTR
	})
	return news
}
