package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"golang.org/x/net/netutil"
)

const (
	sealedPath = "/relay"
	inboxPath  = "/inbox"
	tokenPath  = "/token-service"
	pushPath   = "/push-relay"
)

// clientIDPattern is what JSON, TOML and a shell take as it is.
var clientIDPattern = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

type relayOptions struct {
	addr, baseURL, clientID, metrics string
	apple                            apple
	web                              web
}

func relayCommand() command {
	return command{
		name:    "relay",
		summary: "run a self-hosted relay for browsers and iPhones, or two reference relays to try things with",
		usage:   "[flags]",
		text: `Without -web and -apns-key it runs two reference relays, one for sealed alerts and one for bridges with its token service, on
one port and in memory. It prints their URLs, a [push_relay] table for a bridge's common.toml, and curl commands to test them.
GET / lists what arrived. No real phone is woken: the relays simulate Apple's and Google's services, and sealpush phone
fetches its alerts at /inbox. Control-C stops it.

With -web it is a self-hosted relay for sealed alerts that pages browsers by Web Push. It serves the web phone at /phone, and
the subscriptions and mailboxes that the web phone and sealpush pair use. Subscriptions, keys and what the relay remembers are
in a file in -state, so that phones stay paired when it restarts. A link with the invitation lets a browser subscribe; it is printed on
a terminal, or with -show-invitation. Browsers subscribe over https only, or on the same machine: put TLS in front, and give
its address with -url.

    sealpush relay -web -url https://relay.example

With an APNs key of Apple it forwards to iPhones, with or without -web:

    sealpush relay -apns-key AuthKey_ABC1234567.p8 -apns-team DEF7654321 -topic com.example.app`,
		setup: func(s *settings) runFunc {
			var opts relayOptions
			s.flags.StringVar(&opts.addr, "addr", "127.0.0.1:8080", "`address` to listen on; port 0 takes a free one")
			s.flags.StringVar(&opts.baseURL, "url", "", "base `URL` by which others reach that address (default: the address itself)")
			s.flags.StringVar(&opts.clientID, "client", "bridge-home-office", "without -web: `id` of the bridge that may push")
			s.flags.StringVar(&opts.metrics, "metrics", "", "separate `address` on which to serve GET /metrics for Prometheus (default: none)")
			opts.apple.addFlags(s.flags)
			opts.web.addFlags(s)
			return func(ctx context.Context, args []string) error {
				if err := noArguments(args); err != nil {
					return err
				}
				if err := opts.web.check(s); err != nil {
					return err
				}
				return opts.run(ctx)
			}
		},
	}
}

// run serves until ctx ends, and then finishes the requests in hand.
func (opts relayOptions) run(ctx context.Context) error {
	if !clientIDPattern.MatchString(opts.clientID) {
		return usagef("-client takes letters, digits, '.', '_' and '-'")
	}
	if opts.baseURL != "" && !isBaseURL(opts.baseURL) {
		return usagef("-url takes an http or https URL, without credentials or query")
	}
	if opts.web.on {
		if err := checkOrigin(opts.baseURL); err != nil {
			return err
		}
	}
	forwarder, err := opts.apple.forwarder()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", opts.addr)
	if err != nil {
		return fmt.Errorf("%w: choose another address with -addr", err)
	}
	baseURL := strings.TrimSuffix(opts.baseURL, "/")
	if baseURL == "" {
		baseURL = "http://" + reachable(listener.Addr().(*net.TCPAddr))
	}

	var observed []relay.Option
	metricsURL := "" // where they are served
	if opts.metrics != "" {
		var devices func() int // nil with -web: the state is a database
		if !opts.web.on {
			state, err := relay.NewMemoryState(relay.DefaultMaxDevices)
			if err != nil {
				return err
			}
			devices = state.Devices
			observed = append(observed, relay.WithState(state))
		}
		m := newMetrics(devices)
		observed = append(observed, relay.WithObserver(m.observe))
		serving, stop := context.WithCancel(ctx)
		defer stop()
		if metricsURL, err = serveMetrics(serving, opts.metrics, m); err != nil {
			return err
		}
	}

	mux := http.NewServeMux()
	server := newRelayServer(logged(mux))
	alerts := &counter{}
	mux.Handle(sealedPath, http.StripPrefix(sealedPath, alerts))
	mux.Handle("/pair", relay.PairPage())
	g := guide{Base: baseURL, Sealed: baseURL + sealedPath, Destination: opts.apple.destination(), Metrics: metricsURL}
	if forwarder != nil {
		defer forwarder.Close()
		association, err := relay.AppSiteAssociation(opts.apple.team + "." + opts.apple.topic)
		if err != nil {
			return err
		}
		mux.Handle("/.well-known/apple-app-site-association", association)
	}
	switch {
	case opts.web.on:
		var fallback relay.Forwarder // a nil *apns.Forwarder would be one
		if forwarder != nil {
			fallback = forwarder
		}
		web, err := opts.web.open(ctx, baseURL, fallback)
		if err != nil {
			return err
		}
		defer web.close()
		sealed, err := relay.New(append(observed, relay.WithForwarder(web.forwarder), relay.WithState(web.state))...)
		if err != nil {
			return err
		}
		defer sealed.Close()
		alerts.next = sealed
		web.mount(mux)
		server.RegisterOnShutdown(web.mailboxes.Close) // or those who wait for mail would hold it up
		if g.Invitation, err = opts.web.invitationLink(baseURL, web.invitation); err != nil {
			return err
		}
		g.Web, g.Destination = true, opts.web.destination(opts.apple)
	case forwarder != nil:
		sealed, err := relay.New(append(observed, relay.WithForwarder(forwarder))...)
		if err != nil {
			return err
		}
		defer sealed.Close()
		alerts.next = sealed
	default:
		sealed := relaytest.NewUnstartedRelay(relaytest.WithoutRequests(), relaytest.WithRelay(observed...))
		defer sealed.Close()
		alerts.next = sealed
		g.Inbox = baseURL + inboxPath
		mux.Handle(inboxPath, sealed.InboxHandler())
		// Or a phone that waits for alerts would hold it up. On their way to Apple, alerts are waited for: no daemon
		// posts them again.
		server.RegisterOnShutdown(sealed.Close)
	}
	if !opts.web.on { // bridges are for trying out, not for the public
		bridge := relaytest.NewUnstartedBridgeService(baseURL+tokenPath, baseURL+pushPath)
		defer bridge.Close()
		mux.Handle(tokenPath+"/", http.StripPrefix(tokenPath, bridge.TokenHandler()))
		mux.Handle(pushPath+"/", http.StripPrefix(pushPath, bridge.RelayHandler()))
		mux.Handle("GET /{$}", arrivals(alerts, bridge, opts.clientID))
		g.Token, g.Push = bridge.TokenURL, bridge.RelayURL
		g.ClientID, g.ClientSecret = opts.clientID, bridge.AddClient(opts.clientID).Reveal()
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(netutil.LimitListener(listener, maxConnections)) }()

	if err := printGuide(os.Stdout, g); err != nil {
		return errors.Join(err, server.Close())
	}
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return server.Shutdown(ctx)
}

// maxConnections is how many daemons, bridges and others are served at once. More wait until one of them is done or
// timed out.
const maxConnections = 1000

// newRelayServer bounds every request. A forward may take 30 s, as may a phone's wait for its next message.
func newRelayServer(handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       40 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(slog.Default().Handler(), slog.LevelWarn),
	}
}

func isBaseURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.RawQuery == ""
}

// reachable is an address to dial for one that was listened on.
func reachable(addr *net.TCPAddr) string {
	if addr.IP.IsUnspecified() {
		return fmt.Sprintf("localhost:%d", addr.Port)
	}
	return addr.String()
}
