package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// tokensVariable is the environment's way to give tokens. Other users cannot read it in the list of processes, as they
// can read flags.
const tokensVariable = "SEALPUSH_TOKENS"

type options struct {
	listen  string
	relay   string
	state   string
	devices string
	dag     string
	jobs    []job
	every   time.Duration
	callers callers
	link    bool
}

func parseOptions(args []string) (options, error) {
	var opts options
	var maxRuntime time.Duration
	flags := flag.NewFlagSet("daemon", flag.ContinueOnError)
	flags.StringVar(&opts.listen, "listen", defaultAddr, "`address` to serve the pairing API on; port 0 takes a free one")
	flags.StringVar(&opts.relay, "relay", "", "`URL` that sealed alerts are posted to (default: a relay of the daemon's own)")
	flags.StringVar(&opts.state, "state", "", "`directory` for the daemon's files (default: in the user's configuration)")
	flags.StringVar(&opts.devices, "devices", "", "registry `file` with the paired phones (default: devices.json in -state)")
	flags.StringVar(&opts.dag, "dag", "nightly", "`name` of what the jobs are together")
	flags.DurationVar(&opts.every, "every", 2*time.Minute, "how often the jobs run, besides whenever a phone is paired")
	flags.DurationVar(&maxRuntime, "max-runtime", 0, "page when a -job runs longer (default: never)")
	flags.Func("job", "`NAME=CMD ARGS…` to run; may be given again (default: three jobs as a demonstration)", func(text string) error {
		j, err := parseJob(text)
		opts.jobs = append(opts.jobs, j)
		return err
	})
	flags.BoolVar(&opts.link, "link", false, "show a pairing link, which holds the first caller's token, as a QR code and as text; in a terminal only")
	tokens := strings.Fields(os.Getenv(tokensVariable))
	flags.Func("token", "`LABEL=TOKEN` that of a caller of the pairing API; may be given again\n"+
		"(default: those in $"+tokensVariable+", separated by spaces, or else one in a file in -state)", func(text string) error {
		tokens = append(tokens, text) // read later, because flag quotes what is wrong
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q: give a command with -job", flags.Arg(0))
	}
	for i := range opts.jobs {
		opts.jobs[i].maxRuntime = maxRuntime
	}
	for _, labelled := range tokens {
		if err := opts.callers.add(labelled); err != nil {
			return options{}, fmt.Errorf("-token or $%s: %w", tokensVariable, err)
		}
	}
	return opts, opts.complete()
}

// complete checks the options and fills in what was not given.
func (o *options) complete() (err error) {
	if o.every <= 0 {
		return errors.New("-every must be more than 0")
	}
	if o.state == "" {
		if o.state, err = defaultState(); err != nil {
			return err
		}
	}
	if o.devices == "" {
		o.devices = filepath.Join(o.state, "devices.json")
	}
	if len(o.jobs) == 0 {
		o.jobs, err = demoJobs()
	}
	return err
}
