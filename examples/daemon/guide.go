package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/sealpush/sealpush/examples/internal/state"
)

// guide is what the daemon prints when it is ready. It holds no secret: the
// token stays in its file.
type guide struct {
	url, relay, devices string
	callers             callers
	tokenFile           string // "" when the tokens were given
	stateDir            string
	ownRelay            bool
}

func (g guide) print(w io.Writer) {
	callers := g.callers.String()
	if g.tokenFile != "" {
		callers += ", by the token in " + g.tokenFile
	}
	fmt.Fprintf(w, "Daemon   %s\nRelay    %s\nPhones   %s\nCallers  %s\n", g.url, g.relay, g.devices, callers)
	fmt.Fprintf(w, "\nTo pair a phone, in another terminal:\n\n    %s\n\nReady. Control-C stops it.\n", g.phoneCommand())
}

// phoneCommand is ready to be pasted, save for what only the reader knows.
func (g guide) phoneCommand() string {
	command := []string{"go run ./examples/phone"}
	if g.url != "http://"+state.DaemonAddr {
		command = append(command, "-daemon", g.url)
	}
	if byDefault, err := state.Dir(); err != nil || filepath.Clean(g.stateDir) != byDefault {
		command = append(command, "-state", quoted(g.stateDir))
	}
	if g.tokenFile == "" {
		command = append(command, "-token", "TOKEN")
	}
	if !g.ownRelay {
		command = append(command, "-inbox", "URL-OF-THE-RELAY'S-INBOX")
	}
	return strings.Join(command, " ")
}

// quoted keeps a path with spaces in one piece, in any shell.
func quoted(path string) string {
	if strings.Contains(path, " ") {
		return `"` + path + `"`
	}
	return path
}
