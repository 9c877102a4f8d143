package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func manCommand() command {
	return command{
		name:    "man",
		summary: "print the manual page",
		text: `The page is made from the same text as help. To read it, and to install it:

    sealpush man | man -l -
    sealpush man | sudo tee /usr/local/share/man/man1/sealpush.1 >/dev/null`,
		setup: func(*settings) runFunc {
			return func(_ context.Context, args []string) error {
				if err := noArguments(args); err != nil {
					return err
				}
				return writeManual(os.Stdout)
			}
		},
	}
}

// writeManual writes a page in the man macros of roff.
func writeManual(w io.Writer) error {
	var page strings.Builder
	page.WriteString(".TH SEALPUSH 1\n.SH NAME\nsealpush \\- page phones that have been paired, from a shell\n" +
		".SH SYNOPSIS\n.B sealpush\n.I COMMAND\n[flags] [arguments]\n.SH COMMANDS\n")
	for _, c := range commands() {
		fmt.Fprintf(&page, ".SS %s\n%s.\n.PP\n%s\n", roff("sealpush "+strings.TrimSpace(c.name+" "+c.usage)), roff(capital(c.summary)), paragraphs(c.text))
		newSettings(c).eachFlag(func(f *flag.Flag, value, usage string) {
			fmt.Fprintf(&page, ".TP\n\\fB%s\\fR", roff("-"+f.Name))
			if value != "" {
				fmt.Fprintf(&page, " \\fI%s\\fR", roff(value))
			}
			fmt.Fprintf(&page, "\n%s\n", roff(usage))
		})
	}
	fmt.Fprintf(&page, ".SH CONFIGURATION\n%s\n.SH EXIT STATUS\n%s\n", paragraphs(configurationText), paragraphs(exitText))
	_, err := io.WriteString(w, page.String())
	return err
}

// paragraphs keeps indented lines as they are, and lets roff fill the others.
func paragraphs(text string) string {
	var out strings.Builder
	verbatim := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if indented := strings.HasPrefix(line, "    "); indented != verbatim && line != "" {
			verbatim = indented
			out.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[verbatim])
		}
		if line == "" {
			out.WriteString(".PP\n")
			continue
		}
		out.WriteString(roff(line) + "\n")
	}
	if verbatim {
		out.WriteString(".fi\n")
	}
	return out.String()
}

// roff escapes what roff would take for a request or a hyphen that may be broken.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}
