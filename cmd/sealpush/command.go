package main

import (
	"context"
	"flag"
	"slices"
	"strings"
)

// A command is one of the tool's. Help, the manual page and the completions are made from its fields and its flags.
type command struct {
	name       string
	summary    string // one line, without a full stop
	usage      string // what follows the name, such as "[flags] -- CMD ARGS…"
	text       string // what help says below that: paragraphs, with an empty line between two
	ownSignals bool   // the command deals with SIGINT and SIGTERM; for the others, they end the context

	// lenient commands run even if the configuration has errors: they use the valid part, and the errors are in
	// settings.wrong. A flag without a value gets an empty one.
	lenient bool

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

// withEmptyValues adds an empty value after a flag that has none, such as -relay-url $URL when the variable is not set:
// otherwise the next flag, or the "--", would be taken as the URL. So a value that starts with "-" has to be written as
// -name=-value.
func withEmptyValues(flags *flag.FlagSet, args []string) []string {
	var filled []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" || args[i] == "-" || !strings.HasPrefix(args[i], "-") {
			return append(filled, args[i:]...)
		}
		filled = append(filled, args[i])
		f := flags.Lookup(strings.TrimPrefix(strings.TrimPrefix(args[i], "-"), "-"))
		if f == nil || isSwitch(f) { // nil for -name=value, too
			continue
		}
		if i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			i++
			filled = append(filled, args[i])
		} else {
			filled = append(filled, "")
		}
	}
	return filled
}

// isSwitch reports whether a flag takes no value.
func isSwitch(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// noArguments is an error if there are any. It does not quote them: one may be a URL with a password.
func noArguments(args []string) error {
	if len(args) > 0 {
		return usagef("an argument without a flag")
	}
	return nil
}
