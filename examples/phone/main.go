// Phone plays the phone of examples/daemon: it makes a key, pairs with the
// daemon, fetches what the reference relay has for it, and prints what it
// decrypts:
//
//	go run ./examples/phone
//
// Compare the fingerprint that it prints with the one in the daemon's log: when
// they are the same, nobody has put a key of their own in between. Control-C
// stops it. The key stays in phone.json in sealpush-examples in the user's
// configuration, which on Linux is ~/.config/sealpush-examples, so that a phone
// that is started again is paired already.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/sealpush/sealpush/internal/state"
	"github.com/sealpush/sealpush/relay/apns"
)

type options struct {
	daemon string
	inbox  string
	token  string
	name   string
	state  string
	alerts int
}

// tokenVariable is the environment's way to give the token. Unlike a flag, it
// is not in the list of processes for every user to read.
const tokenVariable = "SEALPUSH_TOKEN"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	opts, err := parseOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil {
		err = run(ctx, opts, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "phone:", err)
		os.Exit(1)
	}
}

func parseOptions(args []string) (options, error) {
	var opts options
	flags := flag.NewFlagSet("phone", flag.ContinueOnError)
	flags.StringVar(&opts.daemon, "daemon", "http://"+state.DaemonAddr, "`URL` of the daemon")
	flags.StringVar(&opts.inbox, "inbox", "", "`URL` of the relay's inboxes (default: the daemon's own relay)")
	flags.StringVar(&opts.token, "token", "", "bearer `token` of the daemon (default: $"+tokenVariable+", or else the file in -state)")
	flags.StringVar(&opts.name, "name", "example phone", "what the daemon's owner calls this phone")
	flags.StringVar(&opts.state, "state", "", "`directory` for the phone's files (default: in the user's configuration)")
	flags.IntVar(&opts.alerts, "n", 0, "stop after this many alerts (default: never)")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("what is %q?", flags.Arg(0))
	}
	opts.daemon = strings.TrimSuffix(opts.daemon, "/")
	if opts.inbox == "" {
		opts.inbox = opts.daemon + "/inbox"
	}
	for _, f := range []struct{ name, url string }{{"-daemon", opts.daemon}, {"-inbox", opts.inbox}} {
		if u, err := url.Parse(f.url); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return options{}, fmt.Errorf("%s must be a URL such as http://%s", f.name, state.DaemonAddr)
		}
	}
	if opts.state == "" {
		dir, err := state.Dir()
		if err != nil {
			return options{}, err
		}
		opts.state = dir
	}
	if opts.token == "" {
		opts.token = os.Getenv(tokenVariable)
	}
	if opts.token == "" {
		token, err := state.ReadToken(state.TokenPath(opts.state))
		if errors.Is(err, fs.ErrNotExist) {
			return options{}, fmt.Errorf("no token to pair with: start the daemon first, or pass its token with -token (%w)", err)
		}
		if err != nil {
			return options{}, err
		}
		opts.token = token
	}
	return opts, nil
}

// run pairs, and prints alerts until ctx ends or there were enough.
func run(ctx context.Context, opts options, out io.Writer) error {
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
	pairing, err := pair(ctx, client, opts.daemon, opts.token, opts.name, phone)
	if err != nil {
		return err
	}
	again := ""
	if !pairing.Created {
		again = " again"
	}
	fmt.Fprintf(out, "Paired%s as %s with %s: compare the fingerprint with the one in its log.\n", again, printable(pairing.Device.ID), opts.daemon)
	fmt.Fprintf(out, "Waiting for alerts. Control-C stops it.\n\n")

	shown := 0
	inbox := inbox{client: client, url: opts.inbox, phone: phone}
	return inbox.receive(ctx, func(m apns.Message) bool {
		n, err := phone.Open(m)
		if err != nil {
			fmt.Fprintln(os.Stderr, "phone: a message that cannot be shown:", err)
			return false
		}
		show(out, n)
		shown++
		return shown == opts.alerts
	})
}
