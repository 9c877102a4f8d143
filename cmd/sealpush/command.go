package main

import (
	"context"
	"slices"
)

// A command is one of the tool's. Help, the manual page and the completions are made from its fields and its flags.
type command struct {
	name       string
	summary    string // one line, without a full stop
	usage      string // what follows the name, such as "[flags] -- CMD ARGS…"
	text       string // what help says below that: paragraphs, with an empty line between two
	ownSignals bool   // the command deals with SIGINT and SIGTERM; for the others, they end the context

	// setup declares the command's flags and returns what runs once they have their values.
	setup func(*settings) runFunc
}

// runFunc runs a command with the arguments that follow its flags. An error is printed and means exit code 1, a
// usageError 2; an exitError is a code without a message.
type runFunc func(ctx context.Context, args []string) error

func find(name string) (command, bool) {
	all := commands()
	i := slices.IndexFunc(all, func(c command) bool { return c.name == name })
	if i < 0 {
		return command{}, false
	}
	return all[i], true
}

// noArguments is an error if there are any. It does not quote them: one may be a URL with a password.
func noArguments(args []string) error {
	if len(args) > 0 {
		return usagef("an argument without a flag")
	}
	return nil
}
