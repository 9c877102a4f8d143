// Conformance holds a relay to the contract that daemons and bridges rely on,
// and prints what it finds:
//
//	go run ./examples/conformance -url https://relay.example.com
//	go run ./examples/conformance -token-url URL -bridge-url URL -client-id ID
//
// Without a URL it holds the reference relays to it, in this process.
//
// The bridge half registers devices and pushes to them, so it wants a client
// that was created for it; the client's secret is best handed over in the
// environment, as SEALPUSH_CLIENT_SECRET, because a command line is visible to
// all users of a machine. The same goes for a relay URL with credentials, in
// SEALPUSH_RELAY_URL.
//
// The exit code is 0 if nothing failed, 1 if a MUST did, and 2 if the checks
// could not be made, or not all of them: nobody answers, or the first request
// already shows that the URL or the credentials are wrong.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/relayclient/relaytest/conformance"
)

const (
	exitFailed   = 1
	exitNoReport = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	opts, err := parseFlags(args, getenv, stderr)
	if err != nil {
		return exitNoReport // flag has said why
	}
	if opts.list {
		return exitCode(conformance.WriteMarkdown(stdout), true, stderr)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, opts.timeout, fmt.Errorf("not done within %v", opts.timeout))
	defer cancel()
	if opts.target.URL == "" && opts.target.Bridge == (conformance.Bridge{}) {
		relay := relaytest.NewRelay()
		defer relay.Close()
		service := relaytest.NewBridgeService()
		defer service.Close()
		opts.target = references(relay, service)
	}
	report, err := conformance.Evaluate(ctx, opts.target)
	if len(report.Results) > 0 {
		if writeErr := write(stdout, report, opts.json); writeErr != nil {
			return exitCode(writeErr, false, stderr)
		}
	}
	return exitCode(err, report.OK(), stderr)
}

func references(relay *relaytest.Relay, service *relaytest.BridgeService) conformance.Target {
	const client = "conformance"
	return conformance.Target{
		URL: relay.URL,
		Bridge: conformance.Bridge{
			TokenURL: service.TokenURL, RelayURL: service.RelayURL,
			ClientID: client, ClientSecret: service.AddClient(client).Reveal(),
		},
	}
}

func write(w io.Writer, report conformance.Report, asJSON bool) error {
	if !asJSON {
		return report.WriteText(w)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(report)
}

func exitCode(err error, ok bool, stderr io.Writer) int {
	switch {
	case err != nil:
		fmt.Fprintln(stderr, err)
		return exitNoReport
	case !ok:
		return exitFailed
	}
	return 0
}

type options struct {
	target  conformance.Target
	timeout time.Duration
	json    bool
	list    bool
}

func parseFlags(args []string, getenv func(string) string, stderr io.Writer) (options, error) {
	var opts options
	target, bridge := &opts.target, &opts.target.Bridge
	flags := flag.NewFlagSet("conformance", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&target.URL, "url", "", "`URL` of a sealed relay, as a daemon is given it (or SEALPUSH_RELAY_URL)")
	flags.StringVar(&bridge.TokenURL, "token-url", "", "base `URL` of a bridge relay's token service")
	flags.StringVar(&bridge.RelayURL, "bridge-url", "", "base `URL` of the bridge relay (default: that of -url)")
	flags.StringVar(&bridge.ClientID, "client-id", "", "`id` of a client at the token service, made for this")
	flags.StringVar(&bridge.ClientSecret, "client-secret", "", "the client's `secret` (better: SEALPUSH_CLIENT_SECRET)")
	flags.DurationVar(&target.Pace, "pace", 50*time.Millisecond, "least time between two requests to -url or -bridge-url")
	flags.DurationVar(&opts.timeout, "timeout", 5*time.Minute, "time for all checks together")
	flags.BoolVar(&opts.json, "json", false, "print the report as JSON")
	flags.BoolVar(&opts.list, "list", false, "print the checks, in Markdown, and make none")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		fmt.Fprintln(stderr, "conformance takes no arguments but flags")
		return options{}, flag.ErrHelp
	}
	// Not as defaults of the flags, which the usage shows.
	fromEnvironment := func(value *string, name string) {
		if *value == "" {
			*value = getenv(name)
		}
	}
	fromEnvironment(&target.URL, "SEALPUSH_RELAY_URL")
	if *bridge != (conformance.Bridge{}) {
		fromEnvironment(&bridge.ClientSecret, "SEALPUSH_CLIENT_SECRET")
		if bridge.RelayURL == "" {
			bridge.RelayURL = target.URL
		}
	}
	return opts, nil
}
