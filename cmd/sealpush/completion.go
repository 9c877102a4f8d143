package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/sealpush/sealpush/relayclient"
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
	case "devices":
		return []string{"test", "revoke", "rename"}
	case "help", "config":
		var names []string
		for _, other := range commands() {
			names = append(names, other.name)
		}
		return names
	}
	return nil
}

// flagWords are the words that a flag takes, if it takes only some.
func flagWords(f *flag.Flag) (words []string) {
	switch value := f.Value.(type) {
	case choice:
		words = slices.DeleteFunc(slices.Clone(value.words), func(word string) bool { return word == "" })
	case flag.Getter: // of TextVar
		if _, ok := value.Get().(*priority); ok {
			words = []string{relayclient.TimeSensitive.String(), relayclient.Passive.String()}
		}
	}
	return words
}

// bashCompletion completes the names of files where a flag or a command wants another word. What follows "--" is
// another program's. Bash takes "=" for a word of its own.
func bashCompletion() string {
	var cases, values, names strings.Builder
	for _, c := range commands() {
		names.WriteString(c.name + " ")
		words := c.arguments()
		var free []string
		newSettings(c).eachFlag(func(f *flag.Flag, value, _ string) {
			words = append(words, "-"+f.Name)
			if takes := flagWords(f); takes != nil {
				fmt.Fprintf(&values, "  '%s -%s') words='%s' ;;\n", c.name, f.Name, strings.Join(takes, " "))
			} else if value != "" {
				free = append(free, "'"+c.name+" -"+f.Name+"'")
			}
		})
		fmt.Fprintf(&cases, "    %s) words='%s' ;;\n", c.name, strings.Join(words, " "))
		if len(free) > 0 {
			fmt.Fprintf(&values, "  %s) return ;;\n", strings.Join(free, "|"))
		}
	}
	return fmt.Sprintf(`_sealpush() {
  local i words='' current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]}
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    [ "${COMP_WORDS[i]}" = -- ] || continue
    if declare -F _command_offset >/dev/null; then
      _command_offset $((i + 1))
    elif [ $((i + 1)) -eq "$COMP_CWORD" ]; then
      COMPREPLY=($(compgen -c -- "$current"))
    fi
    return
  done
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '%s' -- "$current"))
    return
  fi
  if [ "$current" = = ]; then
    current=
  elif [ "$before" = = ]; then
    before=${COMP_WORDS[COMP_CWORD-2]}
  fi
  case "${COMP_WORDS[1]} ${before/#--/-}" in
%s  *)
    case ${COMP_WORDS[1]} in
%s    esac ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _sealpush sealpush
`, strings.TrimSpace(names.String()), values.String(), cases.String())
}

// zshCompletion leaves the name "commands" to zsh, which has the names of all programs there.
func zshCompletion() string {
	var cases, names strings.Builder
	for _, c := range commands() {
		fmt.Fprintf(&names, "    %s\n", zshQuote(c.name+":"+c.summary))
		fmt.Fprintf(&cases, "    %s) _arguments -S", c.name)
		newSettings(c).eachFlag(func(f *flag.Flag, value, usage string) {
			usage, _, _ = strings.Cut(usage, "\n")
			spec := "-" + f.Name + "[" + strings.NewReplacer("[", `\[`, "]", `\]`, ":", `\:`).Replace(usage) + "]"
			if words := flagWords(f); words != nil {
				spec += ":" + value + ":(" + strings.Join(words, " ") + ")"
			} else if value != "" {
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
  local -a subcommands=(
%s  )
  if (( CURRENT == 2 )); then
    _describe command subcommands
    return
  fi
  local -i end=${words[(i)--]}
  if (( end < CURRENT )); then
    shift $end words
    (( CURRENT -= end ))
    if (( CURRENT == 1 )); then
      _command_names -e
    else
      _normal
    fi
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
			if words := flagWords(f); words != nil {
				takes = " -x -a " + fishQuote(strings.Join(words, " "))
			} else if value != "" {
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
