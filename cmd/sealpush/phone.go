package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sealpush/sealpush/internal/state"
	"github.com/sealpush/sealpush/relay/apns"
	"github.com/sealpush/sealpush/relayclient/pairing"
)

func phoneCommand() command {
	return command{
		name:    "phone",
		summary: "simulate a phone: pair with a daemon and print the alerts that it decrypts",
		usage:   "[flags]",
		text: `It makes a key, pairs with the daemon, fetches its alerts from the reference relay, and prints them decrypted. Without
flags it pairs with examples/daemon on this machine.

Compare the fingerprint that it prints with the one that the daemon shows: when they are the same, nobody in between
has replaced the key. Control-C stops it. The key stays in phone.json in -state, so that a phone that is started again is
paired already.`,
		setup: func(s *settings) runFunc {
			var opts phoneOptions
			s.flags.StringVar(&opts.daemon, "daemon", "http://"+state.DaemonAddr, "`URL` of the daemon")
			s.flags.StringVar(&opts.inbox, "inbox", "", "`URL` of the relay's inboxes (default: the daemon's own relay)")
			s.secretVar(&opts.link, "link", "the `link` of a daemon or of sealpush pair, in place of -daemon, -inbox and -token")
			s.secretVar(&opts.token, "token", "bearer `token` of the daemon (default: the file in -state)")
			s.flags.StringVar(&opts.name, "name", "example phone", "`name` by which the daemon's owner knows this phone")
			s.flags.StringVar(&opts.state, "state", "", "`directory` for the phone's files (default: sealpush-examples in the user's configuration)")
			s.flags.IntVar(&opts.alerts, "n", 0, "stop after this `number` of alerts (default: never)")
			return func(ctx context.Context, args []string) error {
				if err := noArguments(args); err != nil {
					return err
				}
				if err := opts.complete(); err != nil {
					return err
				}
				return opts.run(ctx)
			}
		},
	}
}

type phoneOptions struct {
	daemon string
	inbox  string
	token  string
	link   string
	name   string
	state  string
	alerts int
}

// complete fills in what was not given.
func (opts *phoneOptions) complete() error {
	if opts.link != "" {
		link, err := pairing.ParseLink(opts.link)
		if err != nil {
			return usageError{err}
		}
		opts.daemon, opts.token = link.URL, link.Token.Reveal()
		if origin, _, ok := strings.Cut(opts.link, "/pair#"); ok && opts.inbox == "" {
			opts.inbox = origin + inboxPath // where sealpush relay has it
		}
	}
	opts.daemon = strings.TrimSuffix(opts.daemon, "/")
	if opts.inbox == "" {
		opts.inbox = opts.daemon + "/inbox"
	}
	for _, f := range []struct{ name, url string }{{"-daemon", opts.daemon}, {"-inbox", opts.inbox}} {
		if u, err := url.Parse(f.url); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return usagef("%s must be a URL such as http://%s", f.name, state.DaemonAddr)
		}
	}
	if opts.state == "" {
		dir, err := state.Dir()
		if err != nil {
			return err
		}
		opts.state = dir
	}
	if opts.token == "" {
		token, err := state.ReadToken(state.TokenPath(opts.state))
		if errors.Is(err, fs.ErrNotExist) {
			return usagef("no token to pair with: start the daemon first, or pass its token with -token (%w)", err)
		}
		if err != nil {
			return err
		}
		opts.token = token
	}
	return nil
}

// run pairs, and prints alerts until ctx ends or there were enough.
func (opts phoneOptions) run(ctx context.Context) error {
	out := os.Stdout
	keyPath := filepath.Join(opts.state, "phone.json")
	phone, created, err := openPhone(keyPath)
	if err != nil {
		return err
	}
	how := "from"
	if created {
		how = "new, kept in"
	}
	fmt.Fprintf(out, "Fingerprint  %s (%s %s)\n", phone.PublicKey().Fingerprint(), how, keyPath)

	client := &http.Client{
		Timeout: time.Minute, // more than a fetch waits
		// Tokens go where they were meant to go, and nowhere else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	paired, err := pairWith(ctx, client, opts.daemon, opts.token, opts.name, phone)
	if err != nil {
		return err
	}
	again := ""
	if !paired.Created {
		again = " again"
	}
	fmt.Fprintf(out, "Paired%s as %s with %s: compare the fingerprint with the one that it shows, or has in its log.\n", again, printable(paired.Device.ID), opts.daemon)
	fmt.Fprintf(out, "Waiting for alerts. Control-C stops it.\n\n")

	shown := 0
	inbox := inbox{client: client, url: opts.inbox, phone: phone}
	return inbox.receive(ctx, func(m apns.Message) bool {
		n, err := phone.Open(m)
		if err != nil {
			fmt.Fprintln(os.Stderr, "sealpush phone: a message that cannot be shown:", err)
			return false
		}
		show(out, n)
		shown++
		return shown == opts.alerts
	})
}
