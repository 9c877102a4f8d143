//go:build unix

package regular

import "syscall"

// Flags of [os.OpenFile].
const (
	NonBlock = syscall.O_NONBLOCK // do not wait for the other end of a named pipe
	NoFollow = syscall.O_NOFOLLOW // fail on a symbolic link
)
