package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
)

func completionCommand() command {
	return command{
		name:    "completion",
		summary: "print a script that completes commands and flags in a shell",
		usage:   "bash|zsh|fish",
		text: `For bash, in ~/.bashrc:

    eval "$(sealpush completion bash)"

For zsh, in ~/.zshrc, below compinit:

    eval "$(sealpush completion zsh)"

For fish, in ~/.config/fish/config.fish:

    sealpush completion fish | source`,
		setup: func(*settings) runFunc {
			return func(_ context.Context, args []string) error {
				script := ""
				switch strings.Join(args, " ") {
				case "bash":
					script = bashCompletion()
				case "zsh":
					script = zshCompletion()
				case "fish":
					script = fishCompletion()
				default:
					return usagef("completion takes the name of a shell: bash, zsh or fish")
				}
				_, err := os.Stdout.WriteString(script)
				return err
			}
		},
	}
}

// arguments are the words that a command takes after its flags.
func (c command) arguments() []string {
	switch c.name {
	case "completion":
		return []string{"bash", "zsh", "fish"}
	case "help", "config":
		var names []string
		for _, other := range commands() {
			names = append(names, other.name)
		}
		return names
	}
	return nil
}

// bashCompletion completes the names of files where a flag or a command wants another word. What follows "--" is
// another program's.
func bashCompletion() string {
	var cases, names strings.Builder
	for _, c := range commands() {
		names.WriteString(c.name + " ")
		words := c.arguments()
		newSettings(c).flags.VisitAll(func(f *flag.Flag) { words = append(words, "-"+f.Name) })
		fmt.Fprintf(&cases, "    %s) words='%s' ;;\n", c.name, strings.Join(words, " "))
	}
	return fmt.Sprintf(`_sealpush() {
  local word words=''
  COMPREPLY=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    [ "$word" = -- ] && { compopt -o default; return; }
  done
  if [ "$COMP_CWORD" -eq 1 ]; then
    words='%s'
  else
    case ${COMP_WORDS[1]} in
%s    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _sealpush sealpush
`, strings.TrimSpace(names.String()), cases.String())
}

func zshCompletion() string {
	var cases, names strings.Builder
	for _, c := range commands() {
		fmt.Fprintf(&names, "    %s\n", zshQuote(c.name+":"+c.summary))
		fmt.Fprintf(&cases, "    %s) _arguments -S", c.name)
		newSettings(c).eachFlag(func(f *flag.Flag, value, usage string) {
			usage, _, _ = strings.Cut(usage, "\n")
			spec := "-" + f.Name + "[" + strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`).Replace(usage) + "]"
			if value != "" {
				spec += ":" + value + ":_files"
			}
			cases.WriteString(" " + zshQuote(spec))
		})
		rest := "*:argument:_files"
		if words := c.arguments(); words != nil {
			rest = "1:argument:(" + strings.Join(words, " ") + ")"
		}
		fmt.Fprintf(&cases, " %s ;;\n", zshQuote(rest))
	}
	return fmt.Sprintf(`#compdef sealpush
_sealpush() {
  local -a commands=(
%s  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  shift words
  (( CURRENT-- ))
  case $words[1] in
%s  esac
}
compdef _sealpush sealpush
`, names.String(), cases.String())
}

func fishCompletion() string {
	var script strings.Builder
	for _, c := range commands() {
		fmt.Fprintf(&script, "complete -c sealpush -n __fish_use_subcommand -f -a %s -d %s\n", c.name, fishQuote(c.summary))
		seen := "-n '__fish_seen_subcommand_from " + c.name + "'"
		if words := c.arguments(); words != nil {
			fmt.Fprintf(&script, "complete -c sealpush %s -f -a %s\n", seen, fishQuote(strings.Join(words, " ")))
		}
		newSettings(c).eachFlag(func(f *flag.Flag, value, usage string) {
			usage, _, _ = strings.Cut(usage, "\n")
			takes := ""
			if value != "" {
				takes = " -r"
			}
			fmt.Fprintf(&script, "complete -c sealpush %s -o %s%s -d %s\n", seen, f.Name, takes, fishQuote(usage))
		})
	}
	return script.String()
}

func zshQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func fishQuote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
