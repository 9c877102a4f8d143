package main

import (
	"bufio"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/secret"
)

// openTerminal returns both ends of a new pseudo-terminal (pty(7)).
func openTerminal(t *testing.T) (screen, terminal *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	var unlocked, number int32
	for request, value := range map[uintptr]*int32{syscall.TIOCSPTLCK: &unlocked, syscall.TIOCGPTN: &number} {
		if _, _, failed := syscall.Syscall(syscall.SYS_IOCTL, screen.Fd(), request, uintptr(unsafe.Pointer(value))); failed != 0 {
			t.Fatal(failed)
		}
	}
	if terminal, err = os.OpenFile("/dev/pts/"+strconv.Itoa(int(number)), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { terminal.Close() })
	return screen, terminal
}

func TestLinkInATerminal(t *testing.T) {
	screen, terminal := openTerminal(t)
	state := t.TempDir()
	cmd := daemonCommand(t, "-listen", "127.0.0.1:0", "-state", state, "-link")
	cmd.Stdout = terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	terminal.Close()
	defer cmd.Wait()
	defer cmd.Process.Kill()
	code, local, shown := false, false, ""
	for lines := bufio.NewScanner(screen); !local && lines.Scan(); {
		code = code || strings.Contains(lines.Text(), "█")
		local = strings.HasPrefix(lines.Text(), "This machine only: ")
		if text, found := strings.CutPrefix(lines.Text(), "Link     "); found {
			shown = text
		}
	}
	link, err := pairing.ParseLink(shown)
	if err != nil {
		t.Fatalf("link %q: %v", shown, err)
	}
	token, err := os.ReadFile(filepath.Join(state, "token"))
	if err != nil {
		t.Fatal(err)
	}
	if !code || link.Token.Reveal() != strings.TrimSpace(string(token)) || !strings.HasPrefix(link.URL, "http://127.0.0.1:") {
		t.Errorf("a QR code: %v; the link leads to %s", code, link.URL)
	}
}

func TestLinkInANarrowWindow(t *testing.T) {
	t.Setenv("COLUMNS", "40")
	var shown strings.Builder
	caller := caller{label: "operator", token: secret.New("token")}
	if err := showLink(&shown, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 8787}, "https://relay.example", caller); err != nil {
		t.Fatal(err)
	}
	if text := shown.String(); strings.Contains(text, "█") || !strings.Contains(text, "too narrow") || !strings.Contains(text, "Link     https://relay.example/pair#") {
		t.Errorf("shows\n%s", text)
	}
}
