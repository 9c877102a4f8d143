package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/BurntSushi/toml"
)

func configCommand() command {
	return command{
		name:    "config",
		summary: "print the settings in effect, and the source of each",
		usage:   "[COMMAND]",
		text: `Prints, as a sealpush.toml would have it, what COMMAND would use, or else what the commands share. A secret is not
shown.`,
		setup: func(s *settings) runFunc {
			var ignored pagerOptions
			s.pager(&ignored)
			s.spool(&ignored.spool)
			return func(_ context.Context, args []string) error {
				of := s
				switch {
				case len(args) > 1:
					return usagef("config takes one command at most")
				case len(args) == 1:
					c, known := find(args[0])
					if !known {
						return usagef("there is no such command: 'sealpush help' lists them")
					}
					of = newSettings(c)
					of.config = s.config
					if err := of.parse(nil, os.Getenv); err != nil {
						return err
					}
				}
				return of.write(os.Stdout)
			}
		},
	}
}

// quoted is a text as a file has it.
func quoted(text string) string {
	line, err := toml.Marshal(map[string]string{"x": text})
	if err != nil { // it is not UTF-8
		return strconv.Quote(text)
	}
	return strings.TrimPrefix(strings.TrimSpace(string(line)), "x = ")
}

// write prints each setting as a line of TOML, the shared ones first: what follows belongs to the command's table.
func (s *settings) write(out *os.File) error {
	for _, shared := range []bool{true, false} {
		begun := shared
		for _, name := range s.configurable() {
			if s.shared[name] != shared {
				continue
			}
			if !begun {
				begun = true
				fmt.Fprintf(out, "\n[%s]\n", s.command)
			}
			_, key := s.key(name)
			value, from := quoted(s.flags.Lookup(name).Value.String()), "the default"
			if origin, given := s.origin[name]; given {
				if from = origin; s.secret[name] {
					value = `"…"`
				}
			}
			if _, err := fmt.Fprintf(out, "%s = %s  # %s\n", key, value, from); err != nil {
				return err
			}
		}
	}
	return nil
}
