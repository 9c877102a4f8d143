//go:build !linux && !darwin && !freebsd && !netbsd && !openbsd

package main

import (
	"errors"
	"io"
	"os"
	"os/exec"

	"golang.org/x/term"
)

// terminalText is what help says of terminals.
const terminalText = `The command's output goes through a pipe, to a terminal too, so that the command may leave out colours, and hold lines back.`

// onTerminal reports whether the keys of a terminal send their signals to us and to the command.
func onTerminal() bool { return term.IsTerminal(int(os.Stdin.Fd())) }

// A terminal is one that the command has for itself, which this system does not offer.
type terminal struct{}

func openTerminal() (*terminal, error) { return nil, nil }

func (*terminal) attach(*exec.Cmd) {}

func (*terminal) output(io.Writer, wholeLines) *outlet { return nil }

func (*terminal) errors(to io.Writer, end wholeLines) (*outlet, error) {
	return nil, errors.ErrUnsupported
}

func (*terminal) start() {}

func (*terminal) close() (interrupted bool) { return false }

func (*terminal) abandon() {}
