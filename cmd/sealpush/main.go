// Sealpush pages phones from a shell: it pairs them, runs commands and reports the ones that fail, checks a setup, and
// simulates a relay and a phone to try everything with. "sealpush help" lists its commands; each is described in the
// file that is named for it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes of every command but run, which ends with that of the command it ran.
const (
	exitFailed = 1 // not delivered, or a check failed
	exitUsage  = 2 // a flag, an argument or the configuration is wrong
)

// commands are all commands, in the order in which help lists them.
func commands() []command {
	return []command{
		pairCommand(), devicesCommand(), runCommand(), sendCommand(), alertmanagerCommand(),
		doctorCommand(), relayCommand(), phoneCommand(), conformanceCommand(),
		configCommand(), completionCommand(), manCommand(), versionCommand(), helpCommand(),
	}
}

func main() {
	trustFallbackRoots()
	os.Exit(run(os.Args[1:]))
}

// run runs the command that the arguments name and returns the exit code.
func run(args []string) int {
	name := "help"
	if len(args) > 0 {
		name, args = args[0], args[1:]
	}
	switch name {
	case "-h", "-help", "--help":
		name = "help"
	case "-version", "--version":
		name = "version"
	}
	c, known := find(name)
	if !known { // not quoted: it may be a URL with a password
		fmt.Fprintln(os.Stderr, "sealpush: no such command: 'sealpush help' lists them")
		return exitUsage
	}
	return c.exitCode(args)
}

func (c command) exitCode(args []string) int {
	settings := newSettings(c)
	err := settings.parse(args, os.Getenv)
	ctx := context.Background()
	if !c.ownSignals { // from here on: a file with settings may be slow
		var stop func()
		ctx, stop = signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
		defer stop()
	}
	if errors.Is(err, flag.ErrHelp) {
		err = c.writeHelp(os.Stdout)
	} else if err == nil {
		err = settings.run(ctx, settings.flags.Args())
	}
	if code, ok := errors.AsType[exitError](err); ok {
		return int(code)
	}
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "sealpush %s: %v\n", c.name, err)
	if _, ok := errors.AsType[usageError](err); ok {
		see := "See 'sealpush help " + c.name
		if c.name == "help" {
			see = "See 'sealpush help"
		}
		fmt.Fprintf(os.Stderr, "%s'.\n", see)
		return exitUsage
	}
	return exitFailed
}

// An exitError ends the process with a code and prints nothing.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// A usageError is a flag, an argument or a configuration that is wrong.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }
