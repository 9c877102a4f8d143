package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
)

func versionCommand() command {
	return command{
		name:    "version",
		summary: "print the version, and what the program was built with",
		setup: func(*settings) runFunc {
			return func(_ context.Context, args []string) error {
				if err := noArguments(args); err != nil {
					return err
				}
				_, err := fmt.Fprintln(os.Stdout, "sealpush", version())
				return err
			}
		},
	}
}

// version is the module's, with the commit if the program was built in a clone.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown) " + runtime.Version()
	}
	text := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			text += " " + s.Value
		}
	}
	return fmt.Sprintf("%s %s %s/%s", text, info.GoVersion, runtime.GOOS, runtime.GOARCH)
}
