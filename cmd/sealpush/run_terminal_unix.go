//go:build linux || darwin || freebsd || netbsd || openbsd

package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// terminalText is what help says of terminals.
const terminalText = `Where standard input and standard output are a terminal, the command has a terminal of its own that passes on keys, colours
and the window's size, so that editors and password prompts work as they do without run. Control-Z does not suspend it. In all
other cases, and with -quiet, its output goes through a pipe: it may leave out colours, and hold lines back.`

// onTerminal reports whether we run in the foreground of a terminal, whose keys then send their signals to us and to the
// command.
func onTerminal() bool {
	for _, file := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		group, err := unix.IoctlGetInt(int(file.Fd()), unix.TIOCGPGRP)
		if err == nil && group == unix.Getpgrp() {
			return true
		}
	}
	return false
}

// A terminal is a pseudo-terminal that the command has for itself, and which passes on what happens on ours. Standard
// error has a second one, so that its end can be told from that of standard output.
type terminal struct {
	ours        int // standard input
	main        *os.File
	inner       *os.File // the command's end
	second      *os.File // standard error's, or nil
	before      *term.State
	signals     chan os.Signal
	wake        *os.File // closing it ends the copying
	woken       *os.File
	copying     sync.WaitGroup
	interrupted atomic.Bool
}

// openTerminal returns nil where standard input and output are not both the terminal in whose foreground we run.
func openTerminal() (*terminal, error) {
	if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())) || !onTerminal() {
		return nil, nil
	}
	t := &terminal{ours: int(os.Stdin.Fd())}
	settings, err := unix.IoctlGetTermios(t.ours, getTermios)
	if err != nil || settings.Lflag&unix.ICANON == 0 { // another program reads keys, and will set the mode back
		return nil, nil
	}
	if t.main, t.inner, err = t.pair(); err != nil {
		return nil, err
	}
	if t.woken, t.wake, err = os.Pipe(); err != nil {
		t.main.Close()
		t.inner.Close()
		return nil, err
	}
	return t, nil
}

// pair opens a pseudo-terminal that is set as ours is.
func (t *terminal) pair() (ours, theirs *os.File, err error) {
	ours, theirs, err = pty.Open()
	if err != nil {
		return nil, nil, err
	}
	if settings, err := unix.IoctlGetTermios(t.ours, getTermios); err == nil {
		unix.IoctlSetTermios(int(theirs.Fd()), setTermios, settings)
	}
	defer ours.Close() // which blocks, and has no deadlines
	fd, err := unix.FcntlInt(ours.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	ours = os.NewFile(uintptr(fd), ours.Name())
	t.resize(ours)
	return ours, theirs, nil
}

// resize gives a pseudo-terminal the size of ours.
func (t *terminal) resize(to *os.File) {
	if size, err := unix.IoctlGetWinsize(t.ours, unix.TIOCGWINSZ); err == nil {
		control(to, func(fd int) { unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size) })
	}
}

// control calls do with a file's descriptor, unless it is closed. Unlike Fd, it lets the file keep its deadlines.
func control(file *os.File, do func(fd int)) {
	if raw, err := file.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { do(int(fd)) })
	}
}

// attach makes the terminal the command's own.
func (t *terminal) attach(cmd *exec.Cmd) {
	cmd.Stdin = t.inner
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
}

// output passes on what the command writes to its terminal.
func (t *terminal) output(to io.Writer, end wholeLines) *outlet {
	return &outlet{in: t.inner, from: t.main, to: to, kept: end, done: make(chan struct{})}
}

// errors passes on what the command writes to standard error.
func (t *terminal) errors(to io.Writer, end wholeLines) (*outlet, error) {
	from, in, err := t.pair()
	if err != nil {
		return nil, err
	}
	t.second = from
	return &outlet{in: in, from: from, to: to, kept: end, done: make(chan struct{})}, nil
}

// start passes keys and sizes on, once the command has its end.
func (t *terminal) start() {
	t.before, _ = term.MakeRaw(t.ours)
	t.signals = make(chan os.Signal, 8)
	signal.Notify(t.signals, syscall.SIGWINCH, syscall.SIGCONT)
	t.copying.Go(t.copyInput)
	go func() {
		for sig := range t.signals {
			if sig == syscall.SIGCONT { // the shell has set its own mode meanwhile
				term.MakeRaw(t.ours)
			}
			t.resize(t.main)
			if t.second != nil {
				t.resize(t.second)
			}
		}
	}()
}

func (t *terminal) copyInput() {
	waiting := []unix.PollFd{{Fd: int32(t.ours), Events: unix.POLLIN}, {Fd: int32(t.woken.Fd()), Events: unix.POLLIN}}
	buf := make([]byte, 4<<10)
	for {
		if _, err := unix.Poll(waiting, -1); err == unix.EINTR {
			continue
		} else if err != nil || waiting[1].Revents != 0 {
			return
		}
		n, err := os.Stdin.Read(buf)
		if n > 0 {
			t.noteInterrupt(buf[:n])
			_, err = t.main.Write(buf[:n])
		}
		if err != nil {
			return
		}
	}
}

// noteInterrupt looks for the key that the command's terminal takes for an interrupt.
func (t *terminal) noteInterrupt(keys []byte) {
	control(t.main, func(fd int) {
		settings, err := unix.IoctlGetTermios(fd, getTermios)
		if err == nil && settings.Lflag&unix.ISIG != 0 && bytes.IndexByte(keys, settings.Cc[unix.VINTR]) >= 0 {
			t.interrupted.Store(true)
		}
	})
}

// close gives our terminal back, and says whether its user interrupted the command. The outlets have ended by then.
func (t *terminal) close() (interrupted bool) {
	signal.Stop(t.signals)
	close(t.signals)
	t.wake.Close()
	t.main.Close()
	t.copying.Wait()
	t.woken.Close()
	if t.before != nil {
		term.Restore(t.ours, t.before)
	}
	return t.interrupted.Load()
}

// abandon is for a command that did not start. The outlets are abandoned apart.
func (t *terminal) abandon() {
	t.wake.Close()
	t.woken.Close()
}
