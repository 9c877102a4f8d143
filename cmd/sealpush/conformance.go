package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/relayclient/relaytest/conformance"
	"github.com/sealpush/sealpush/secret"
)

// exitNoReport is the exit code when not all checks could be made.
const exitNoReport = exitUsage

func conformanceCommand() command {
	return command{
		name:    "conformance",
		summary: "check that a relay follows the protocol that daemons and bridges rely on",
		usage:   "[flags]",
		text: `For a relay of sealed alerts, and for one of bridges:

    sealpush conformance -url https://relay.example.com
    sealpush conformance -token-url URL -bridge-url URL -client-id ID

Without a URL it checks the reference relays, in this process.

The checks of a bridge's relay register devices and push to them: use a client that was created for this. A command line is visible
to all users of a machine: give the client's secret in $SEALPUSH_CONFORMANCE_CLIENT_SECRET, or as client_secret in table
[conformance] of the configuration. The same goes for a URL with credentials, $SEALPUSH_CONFORMANCE_URL.

The exit code is 0 if nothing failed, 1 if a MUST did, and 2 if the checks could not be made, or not all of them: nobody
answers, the first request already shows that the URL or the credentials are wrong, or the relay accepts nothing, because its
push service is down or refuses the made-up device tokens of the checks.`,
		setup: func(s *settings) runFunc {
			var opts conformanceOptions
			target, bridge := &opts.target, &opts.target.Bridge
			s.secretVar(&target.URL, "url", "`URL` of a sealed relay, as a daemon is given it")
			s.secretVar(&opts.clientSecret, "client-secret", "the `secret` of -client-id")
			s.flags.StringVar(&bridge.TokenURL, "token-url", "", "base `URL` of a bridge relay's token service")
			s.flags.StringVar(&bridge.RelayURL, "bridge-url", "", "base `URL` of the bridge relay (default: that of -url)")
			s.flags.StringVar(&bridge.ClientID, "client-id", "", "`id` of a client at the token service, made for this")
			target.Pace, opts.timeout = 50*time.Millisecond, 5*time.Minute
			s.flags.Var(span{&target.Pace, true}, "pace", "least `time` between two requests to -url or -bridge-url")
			s.flags.Var(span{&opts.timeout, false}, "timeout", "`time` for all checks together")
			s.flags.BoolVar(&opts.json, "json", false, "print the report as JSON")
			s.flags.BoolVar(&opts.list, "list", false, "print the checks, in Markdown, and make none")
			return func(ctx context.Context, args []string) error {
				if err := noArguments(args); err != nil {
					return err
				}
				return opts.run(ctx)
			}
		},
	}
}

type conformanceOptions struct {
	target       conformance.Target
	clientSecret string
	timeout      time.Duration
	json         bool
	list         bool
}

func (o conformanceOptions) run(ctx context.Context) error {
	if o.list {
		return conformance.WriteMarkdown(os.Stdout)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("not done within %v", o.timeout))
	defer cancel()
	bridge := o.target.Bridge
	none := bridge.TokenURL == "" && bridge.RelayURL == "" && bridge.ClientID == "" // the secret is for -client-id alone
	switch {
	case none && o.target.URL == "":
		target, cleanUp := references()
		defer cleanUp()
		o.target = target
	case none:
		o.target.Bridge = conformance.Bridge{}
	default:
		bridge.ClientSecret = secret.New(o.clientSecret)
		bridge.RelayURL = cmp.Or(bridge.RelayURL, o.target.URL)
		o.target.Bridge = bridge
	}
	report, err := conformance.Evaluate(ctx, o.target)
	if len(report.Results) > 0 {
		if err := writeConformance(report, o.json); err != nil {
			return err
		}
	}
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "sealpush conformance:", err)
		return exitError(exitNoReport)
	case !report.OK():
		return exitError(exitFailed)
	}
	return nil
}

// references checks both reference relays.
func references() (target conformance.Target, cleanUp func()) {
	const client = "conformance"
	relay, service := relaytest.NewRelay(), relaytest.NewBridgeService()
	target.URL = relay.URL
	target.Bridge = conformance.Bridge{
		TokenURL: service.TokenURL, RelayURL: service.RelayURL,
		ClientID: client, ClientSecret: service.AddClient(client),
	}
	return target, func() {
		relay.Close()
		service.Close()
	}
}

func writeConformance(report conformance.Report, asJSON bool) error {
	if !asJSON {
		return report.WriteText(os.Stdout)
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(report)
}
