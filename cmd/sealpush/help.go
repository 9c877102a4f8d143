package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

const synopsis = "Usage: sealpush COMMAND [flags] [arguments]"

func helpCommand() command {
	return command{
		name:    "help",
		summary: "list the commands, or describe one",
		usage:   "[COMMAND]",
		setup: func(*settings) runFunc {
			return func(_ context.Context, args []string) error {
				switch len(args) {
				case 0:
					return writeOverview(os.Stdout)
				case 1:
					if c, known := find(args[0]); known {
						return c.writeHelp(os.Stdout)
					}
				}
				return usagef("there is no such command")
			}
		},
	}
}

// configurationText is in the overview and in the manual page.
const configurationText = `A flag's value is taken from the command line, or else from the environment, the file of -config, the user's
sealpush.toml (~/.config/sealpush on Linux) or the system's (/etc/sealpush), in this order. Flags that commands share stand
at the top of a file, and those of one command in a table with its name: -relay-url is relay_url and $SEALPUSH_RELAY_URL,
and -addr of the relay command is addr in [relay] and $SEALPUSH_RELAY_ADDR. A secret can also be given as the name of a file
that holds it: relay_url_file, $SEALPUSH_RELAY_URL_FILE. Unlike flags, files and variables
are not in the list of processes.`

// exitText is in the overview and in the manual page.
const exitText = `0 means done, 1 not delivered or a check failed, 2 that a flag, an argument or the configuration is wrong. run ends with
the exit code of the command that it ran.`

func writeOverview(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n\nCommands:\n", synopsis)
	for _, c := range commands() {
		fmt.Fprintf(&text, "  %-12s %s\n", c.name, c.summary)
	}
	fmt.Fprintf(&text, "\n%s\n\nExit code: %s\n\n'sealpush help COMMAND' describes one.\n", configurationText, exitText)
	_, err := io.WriteString(w, text.String())
	return err
}

// writeHelp describes one command.
func (c command) writeHelp(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "Usage: sealpush %s\n\n%s.\n", strings.TrimSpace(c.name+" "+c.usage), capital(c.summary))
	if c.text != "" {
		fmt.Fprintf(&text, "\n%s\n", c.text)
	}
	text.WriteString("\nFlags:\n")
	newSettings(c).eachFlag(func(f *flag.Flag, value, usage string) {
		fmt.Fprintf(&text, "  -%s\n        %s\n", strings.TrimSpace(f.Name+" "+value), strings.ReplaceAll(usage, "\n", "\n        "))
	})
	_, err := io.WriteString(w, text.String())
	return err
}

// eachFlag calls do with each flag, the name of its value, empty for a switch, and what it is for, with its default.
func (s *settings) eachFlag(do func(f *flag.Flag, value, usage string)) {
	s.flags.VisitAll(func(f *flag.Flag) {
		value, usage := flag.UnquoteUsage(f)
		switch f.DefValue {
		case "", "false", "0", "0s":
		default:
			usage += " (default: " + f.DefValue + ")"
		}
		do(f, value, usage)
	})
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
