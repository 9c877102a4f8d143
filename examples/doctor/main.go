// Doctor checks a configuration from end to end, and says what to do about what
// is wrong. It pages nobody unless asked, changes nothing, and prints no secret:
//
//	go run ./examples/doctor -relay URL -devices devices.json    a daemon's
//	go run ./examples/doctor -config common.toml                 a bridge's
//
// With -page it also sends a test alert to each phone, and a notification through
// the bridge's relay. It exits with 1 when a check failed; warnings do not count.
//
// Without flags it checks $RELAY_URL if that is set, or else what examples/daemon
// and examples/phone keep, or else a reference setup in this process, to show what
// a good run looks like.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// relayVariable is the environment's way to give the relay's URL. Unlike a flag,
// it is not in the list of processes for every user to read.
const relayVariable = "RELAY_URL"

type options struct {
	relay   string
	devices string
	config  string
	page    bool
	json    bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	opts, err := parseOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	healthy := false
	if err == nil {
		healthy, err = run(ctx, opts, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "doctor:", err)
	}
	if err != nil || !healthy {
		os.Exit(1)
	}
}

func parseOptions(args []string) (options, error) {
	var opts options
	flags := flag.NewFlagSet("doctor", flag.ContinueOnError)
	flags.StringVar(&opts.relay, "relay", "", "`URL` that sealed alerts are posted to (default: $"+relayVariable+")")
	flags.StringVar(&opts.devices, "devices", "", "registry `file` with the paired phones")
	flags.StringVar(&opts.config, "config", "", "a bridge's common.toml: the `file` with its [push_relay] table")
	flags.BoolVar(&opts.page, "page", false, "send a test alert to each phone, and a notification through the bridge's relay")
	flags.BoolVar(&opts.json, "json", false, "print one JSON document instead of text")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 { // not quoted: it may be a URL with a password
		return options{}, errors.New("an argument without a flag: the relay's URL belongs after -relay, files after -devices and -config")
	}
	if opts.relay == "" {
		opts.relay = os.Getenv(relayVariable)
	}
	if opts.page && opts.config == "" && (opts.relay == "") != (opts.devices == "") {
		return options{}, errors.New("-page takes both -relay and -devices, or -config")
	}
	return opts, nil
}

// run checks what the options name, and says whether nothing failed.
func run(ctx context.Context, opts options, out io.Writer) (healthy bool, err error) {
	note := ""
	switch {
	case opts.relay == "" && opts.devices == "" && opts.config == "":
		what, cleanUp, err := opts.fillIn(ctx)
		if err != nil {
			return false, err
		}
		defer cleanUp()
		if note = yours; opts.json {
			note = what + "\n\n" + yours
		} else {
			fmt.Fprintln(out, what+"\n")
		}
	case opts.relay == "" && opts.devices != "":
		note = "The relay was not checked: pass its URL with -relay."
	case opts.relay != "" && opts.devices == "":
		note = "The paired phones were not checked: pass the registry file with -devices."
	}
	r := &report{out: out, quiet: opts.json}
	otherServer := opts.relay != "" && checkRelay(ctx, r, opts.relay)
	if opts.devices != "" {
		checkRegistry(ctx, r, opts.devices)
	}
	switch {
	case !opts.page || opts.relay == "" || opts.devices == "":
	case otherServer:
		r.begin("Test alerts")
		r.fail("Correct the relay's URL first.", "nobody was paged: an envelope names its phone, and is for a relay alone")
	default:
		pagePhones(ctx, r, opts.relay, opts.devices)
	}
	if opts.config != "" {
		checkBridge(ctx, r, opts.config, opts.page)
	}
	if ctx.Err() != nil {
		return false, errors.New("interrupted")
	}
	return r.healthy(), r.finish(note)
}
