// Watch runs a command and pages the paired phones when it fails:
//
//	go run ./examples/watch -relay URL -devices devices.json -- CMD ARGS…
//
// The command keeps this program's streams, signals and exit code, so watch can
// stand in front of any line of a crontab. Build it for that (go build
// ./examples/watch): "go run" itself exits with 1 whatever the program's code
// was, and passes no signal on. What the command leaves running in the
// background is not waited for; send its output to a file.
//
// The page ends with the last lines of standard error if the command wrote any,
// else with those of standard output. A command that warns on one and fails on
// the other wants -tail both, which interleaves them in the order in which they
// arrived.
//
// Whatever is wrong with the relay or the registry, the command has run. Standard
// error says so before it runs, and again when there would have been a page: for
// an empty $RELAY_URL, say, or a registry that is not there, which watch only
// reads and never makes. Without a command, or with a flag that it does not
// understand, watch runs nothing and exits with 2.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/sealpush/sealpush/payload"
)

type options struct {
	relay     string
	devices   string
	name      string
	onSuccess bool
	tailOf    string
	command   []string
}

func main() {
	opts, err := parseFlags(os.Args[1:])
	if err != nil {
		os.Exit(2) // flag has said why
	}
	pager := newPager(opts.relay, opts.devices)
	if err := pager.look(lookTimeout); err != nil {
		fmt.Fprintln(os.Stderr, "watch: nobody can be paged:", err)
	}
	// A reader of our output that goes away, as head does, must not end us before
	// the page; with a handler, which the command does not inherit, writing fails.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	start := time.Now()
	r := runCommand(opts.command, opts.tailOf)
	if r.failReason != "" || opts.onSuccess {
		pager.page(alertFor(opts, start, r))
	}
	pager.close()
	os.Exit(r.exitCode)
}

func parseFlags(args []string) (options, error) {
	var opts options
	flags := flag.NewFlagSet("watch", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: watch -relay URL -devices devices.json [flags] -- CMD ARGS…")
		flags.PrintDefaults()
	}
	flags.StringVar(&opts.relay, "relay", "", "`URL` that sealed alerts are posted to")
	flags.StringVar(&opts.devices, "devices", "", "registry `file` with the paired phones")
	flags.StringVar(&opts.name, "name", "", "job `name` that the phone shows (default: the command)")
	flags.BoolVar(&opts.onSuccess, "on-success", false, "page when the command succeeds, too")
	flags.Func("tail", "`stream` whose end the phone shows: stdout, stderr or both\n"+
		"(default: stderr if the command wrote to it, else stdout, as the protocol has it)", func(value string) error {
		switch opts.tailOf = value; value {
		case tailProtocol, tailStdout, tailStderr, tailBoth:
			return nil
		}
		return errors.New("it takes stdout, stderr or both")
	})
	if err := flags.Parse(withEmptyValues(args)); err != nil {
		return options{}, err
	}
	opts.command = flags.Args()
	if len(opts.command) == 0 {
		flags.Usage()
		return options{}, flag.ErrHelp
	}
	if opts.name == "" {
		opts.name = strings.Join(opts.command, " ")
	}
	if opts.name == "" { // -- "$CMD" of a variable that is not set
		opts.name = "(empty command)"
	}
	return opts, nil
}

// withEmptyValues puts back what a shell leaves out of -relay $RELAY_URL when the
// variable is not set: the next flag, or the "--", would be taken for the URL, and
// the file for the command.
func withEmptyValues(args []string) []string {
	var filled []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" || args[i] == "-" || !strings.HasPrefix(args[i], "-") {
			return append(filled, args[i:]...)
		}
		filled = append(filled, args[i])
		switch strings.TrimLeft(args[i], "-") {
		case "relay", "devices", "name", "tail":
			if i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
				i++
				filled = append(filled, args[i])
			} else {
				filled = append(filled, "")
			}
		}
	}
	return filled
}

func alertFor(opts options, start time.Time, r result) payload.Alert {
	alert := payload.NewSuccess("", jobName(opts.name))
	if r.failReason != "" {
		alert = payload.NewFailure("", jobName(opts.name))
	}
	alert.StartedAt = start
	alert.ExitCode = r.alertCode
	alert.FailReason = r.failReason
	alert.LogTail = r.lines
	return alert
}

// jobName cuts a command line to what fits beside a log: a name is the one
// thing that fitting never shortens.
func jobName(name string) string {
	const most = 64
	if runes := []rune(name); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return name
}
