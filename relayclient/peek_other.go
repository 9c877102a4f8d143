//go:build !darwin && !freebsd && !linux && !netbsd && !openbsd

package relayclient

import "net"

func hasNews(net.Conn) bool { return false }
