//go:build darwin || freebsd || linux || netbsd || openbsd

package relayclient_test

import (
	"net"
	"runtime"
	"testing"

	"github.com/sealpush/sealpush/relayclient"
)

// What has come over a connection is seen before anybody has read it, and nobody's reading is disturbed.
func TestNewsOfAConnection(t *testing.T) {
	for name, act := range map[string]func(net.Conn){
		"bytes":  func(peer net.Conn) { peer.Write([]byte("x")) },
		"an end": func(peer net.Conn) { peer.Close() },
		"a reset": func(peer net.Conn) {
			peer.(*net.TCPConn).SetLinger(0)
			peer.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			conn, err := net.Dial("tcp", listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			peer, err := listener.Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer peer.Close()
			if relayclient.HasNews(conn) {
				t.Error("news at first")
			}
			act(peer)
			for !relayclient.HasNews(conn) { // until the kernel has brought it
				runtime.Gosched()
			}
			var b [2]byte
			if n, err := conn.Read(b[:]); name == "bytes" && (n != 1 || err != nil) || name != "bytes" && err == nil {
				t.Errorf("then read %d bytes, %v", n, err)
			}
		})
	}
}
