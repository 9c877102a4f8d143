// Daemon is a small scheduler that pages paired phones when its jobs fail, succeed or take too long, and when a round
// of them has failed:
//
//	go run ./examples/daemon
//	sealpush phone               in another terminal
//
// It serves the pairing API of package pairing at /push/devices, to those with a bearer token. Unless -relay says
// otherwise, it also runs the reference relay, which hands the phone its messages. Run it with -help for its flags, as
// in
//
//	go run ./examples/daemon -relay URL -every 1h -job 'backup=/usr/local/bin/backup --all'
//
// With -link it shows a pairing link in the terminal.
//
// The files are in sealpush-examples in the user's configuration, which on Linux is ~/.config/sealpush-examples:
// devices.json with the paired phones, and token, which the phone reads from there too.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"golang.org/x/net/netutil"
)

// shutdownTimeout bounds how long requests under way are waited for.
const shutdownTimeout = 3 * time.Second

func main() {
	if len(os.Args) == 3 && os.Args[1] == demoJob {
		os.Exit(runDemoJob(os.Args[2]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal does not wait
	opts, err := parseOptions(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err == nil && opts.link && !isTerminal(os.Stdout) {
		err = errors.New("-link shows a secret, which is not for a file or a log: use it in a terminal")
	}
	if err == nil {
		err = serve(ctx, opts, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "daemon:", err)
		os.Exit(1)
	}
}

// serve runs the daemon until ctx ends, and then finishes what is under way.
func serve(ctx context.Context, opts options, out io.Writer) error {
	tokenFile, err := opts.callers.ensure(tokenPath(opts.state))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", opts.listen)
	if err != nil {
		return fmt.Errorf("%w: choose another address with -listen", err)
	}
	defer listener.Close()
	addr := listener.Addr().(*net.TCPAddr)
	if !addr.IP.IsLoopback() {
		slog.Warn("other machines can reach the daemon, and tokens travel in clear: put TLS in front", "address", addr)
	}
	guide := guide{options: opts, url: "http://" + reachable(addr), tokenFile: tokenFile}

	var relay *relaytest.Relay // nil when -relay names another one
	relayURL := opts.relay
	if relayURL == "" {
		relay = relaytest.NewUnstartedRelay(relaytest.WithHistory(1000), relaytest.WithoutRequests())
		defer relay.Close()
		relayURL = guide.url + relayPath
	}
	client, err := relayclient.New(relayURL)
	if err != nil {
		return err
	}
	defer client.Close()
	registry, err := openRegistry(opts.devices)
	if err != nil {
		return err
	}
	devices, err := registry.Devices(ctx)
	if err != nil {
		return err // find a faulty registry now, not when an alert is due
	}
	notifier, err := relayclient.NewNotifier(client, registry, "", relayclient.WithStormGuard(30)) // half of what a relay takes at once
	if err != nil {
		return err
	}

	now := make(chan struct{}, 1)
	if len(devices) > 0 {
		wake(now)
	}
	api, err := pairingAPI(registry, notifier, now)
	if err != nil {
		return err
	}
	server := newServer(routes(opts.callers, api, relay))
	if relay != nil {
		server.RegisterOnShutdown(relay.Close) // ends the requests of phones that wait for alerts
	}
	reporter := newReporter(notifier)
	scheduler := &scheduler{dag: opts.dag, jobs: opts.jobs, every: opts.every, reporter: reporter}
	guide.print(out)
	if opts.link {
		if err := showLink(out, addr, relayURL, opts.callers[0]); err != nil {
			return err
		}
	}
	return work(ctx, server, listener, func(ctx context.Context) {
		scheduler.run(ctx, now)
		reporter.close()
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
		defer cancel()
		if err := notifier.Close(closing); err != nil {
			slog.Warn("stopping: nobody was told of some alerts", "error", err)
		}
		client.Close() // its idle connections would delay the server's shutdown
	})
}

// openRegistry makes the registry's directory, but not yet the file.
func openRegistry(path string) (*pairing.Registry, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	store, err := pairing.OpenFile(path)
	if err != nil {
		return nil, err
	}
	return pairing.NewRegistry(store)
}

// work serves and schedules until ctx ends. The server stops last, because reports may be on their way to the relay
// behind it.
func work(ctx context.Context, server *http.Server, listener net.Listener, schedule func(context.Context)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() { served <- server.Serve(netutil.LimitListener(listener, maxConnections)) }()
	scheduled := make(chan struct{})
	go func() {
		defer close(scheduled)
		schedule(ctx)
	}()

	var err error
	select {
	case err = <-served:
		cancel()
	case <-ctx.Done():
		slog.Info("stopping: waiting for jobs and reports")
	}
	<-scheduled
	ctx, cancelShutdown := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancelShutdown()
	if server.Shutdown(ctx) != nil {
		slog.Warn("stopping: some requests are cut off")
		err = errors.Join(err, server.Close())
	}
	return err
}
