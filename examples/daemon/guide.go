package main

import (
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
)

// guide is what the daemon prints when it is ready. It holds no secret: a token stays in its file.
type guide struct {
	options
	url       string // of the daemon
	tokenFile bool   // whether the token is the one in the state directory
}

func (g guide) print(w io.Writer) {
	relay := "its own, in memory"
	if u, err := url.Parse(g.relay); err == nil && g.relay != "" {
		relay = u.Scheme + "://" + u.Host // the rest may be secret
	}
	callers := g.callers.String()
	if g.tokenFile {
		callers += ", with the token in " + tokenPath(g.state)
	}
	fmt.Fprintf(w, "Daemon   %s\nRelay    %s\nPhones   %s\nCallers  %s\n", g.url, relay, g.devices, callers)
	fmt.Fprintf(w, "\nTo pair a phone, in another terminal:\n\n    %s\n\nReady. Control-C stops it.\n", g.phoneCommand())
}

// phoneCommand is the command to paste, with placeholders for secrets.
func (g guide) phoneCommand() string {
	command := []string{"sealpush phone"}
	if g.url != "http://"+defaultAddr {
		command = append(command, "-daemon", g.url)
	}
	if byDefault, err := defaultState(); err != nil || filepath.Clean(g.state) != byDefault {
		command = append(command, "-state", quoted(g.state))
	}
	if !g.tokenFile {
		command = append(command, "-token", "TOKEN")
	}
	if g.relay != "" {
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
