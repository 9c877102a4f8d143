package main

import (
	"context"
	"fmt"
	"os"
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
			value, from := fmt.Sprintf("%q", s.flags.Lookup(name).Value), "the default"
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
