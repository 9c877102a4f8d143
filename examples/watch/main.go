// Watch runs a command and pages the paired phones when it fails:
//
//	go run ./examples/watch -relay URL -devices devices.json -- CMD ARGS…
//
// The command keeps this program's streams, signals and exit code, so watch can
// stand in front of any line of a crontab. Build it for that (go build
// ./examples/watch): "go run" itself exits with 1 whatever the program's code
// was, and passes no signal on. Whatever is wrong with the relay or the
// registry, the command has run. What the command leaves running in the
// background is not waited for; send its output to a file.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
)

// pageTimeout bounds what paging may add to the command's own time.
const pageTimeout = 30 * time.Second

type options struct {
	relay     string
	devices   string
	name      string
	onSuccess bool
	command   []string
}

func main() {
	opts, err := parseFlags(os.Args[1:])
	if err != nil {
		os.Exit(2) // flag has said why
	}
	notifier, closeNotifier, err := newNotifier(opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, "watch:", err)
		os.Exit(2)
	}
	// A reader of our output that goes away, as head does, must not end us before
	// the page; with a handler, which the command does not inherit, writing fails.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	start := time.Now()
	r := runCommand(opts.command)
	if r.failReason != "" || opts.onSuccess {
		page(notifier, alertFor(opts, start, r))
	}
	closeNotifier()
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
	flags.StringVar(&opts.name, "name", "", "job name that the phone shows (default: the command)")
	flags.BoolVar(&opts.onSuccess, "on-success", false, "page when the command succeeds, too")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	opts.command = flags.Args()
	if opts.relay == "" || opts.devices == "" || len(opts.command) == 0 {
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

// newNotifier refuses a relay URL that can never work before the command runs.
// A registry that cannot be read now may well be readable when it matters.
func newNotifier(opts options) (*relayclient.Notifier, func(), error) {
	client, err := relayclient.New(opts.relay)
	if err != nil {
		return nil, nil, err
	}
	store, err := pairing.OpenFile(opts.devices)
	if err != nil {
		return nil, nil, err
	}
	notifier, err := relayclient.NewNotifier(client, pairing.NewRegistry(store), "")
	if err != nil {
		return nil, nil, err
	}
	return notifier, client.Close, nil
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

// page reports to standard error, through the client's log, and fails nobody.
func page(notifier *relayclient.Notifier, alert payload.Alert) {
	ctx, cancel := context.WithTimeout(context.Background(), pageTimeout)
	defer cancel()
	notifier.Notify(ctx, alert)
}
