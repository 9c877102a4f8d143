// Daemon is a small scheduler that pages paired phones when its jobs fail,
// succeed or take too long, and when a round of them has failed:
//
//	go run ./examples/daemon
//	go run ./examples/phone     in another terminal
//
// It serves the pairing API of package pairing at /push/devices, to those with a
// bearer token. Unless -relay says otherwise, it also runs the reference relay,
// which hands the phone its messages. Run it with -help for its flags, as in
//
//	go run ./examples/daemon -relay URL -every 1h -job 'backup=/usr/local/bin/backup --all'
//
// The files are in sealpush-examples in the user's configuration, which on Linux
// is ~/.config/sealpush-examples: devices.json with the paired phones, and token,
// which the phone reads from there too.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sealpush/sealpush/examples/internal/state"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// shutdownTimeout bounds how long requests in hand are waited for.
const shutdownTimeout = 5 * time.Second

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
	if err == nil {
		err = serve(ctx, opts, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "daemon:", err)
		os.Exit(1)
	}
}

// serve runs the daemon until ctx ends, and then finishes what is in hand.
func serve(ctx context.Context, opts options, out io.Writer) error {
	guide := guide{devices: opts.devices, stateDir: opts.state, ownRelay: opts.relay == ""}
	if len(opts.callers) == 0 {
		guide.tokenFile = state.TokenPath(opts.state)
		token, err := state.EnsureToken(guide.tokenFile)
		if err != nil {
			return err
		}
		if err := opts.callers.add("local=" + token); err != nil {
			return fmt.Errorf("%s: %w", guide.tokenFile, err)
		}
	}
	guide.callers = opts.callers

	listener, err := net.Listen("tcp", opts.listen)
	if err != nil {
		return fmt.Errorf("%w: choose another address with -listen", err)
	}
	defer listener.Close()
	addr := listener.Addr().(*net.TCPAddr)
	guide.url = "http://" + reachable(addr)
	if !addr.IP.IsLoopback() {
		slog.Warn("other machines can reach the daemon, and tokens travel in clear: put TLS in front", "address", addr)
	}
	var relay *relaytest.Relay
	if opts.relay == "" {
		relay = relaytest.NewUnstartedRelay(relaytest.WithHistory(1000))
		defer relay.Close()
		opts.relay = guide.url + relayPath
	}
	client, err := relayclient.New(opts.relay)
	if err != nil {
		return err
	}
	defer client.Close()
	guide.relay = client.String()

	if err := os.MkdirAll(filepath.Dir(opts.devices), 0o700); err != nil {
		return err
	}
	store, err := pairing.OpenFile(opts.devices)
	if err != nil {
		return err
	}
	registry := pairing.NewRegistry(store)
	devices, err := registry.Devices(ctx)
	if err != nil {
		return err
	}
	notifier, err := relayclient.NewNotifier(client, registry, "")
	if err != nil {
		return err
	}

	now := make(chan struct{}, 1)
	if len(devices) > 0 {
		wake(now)
	}
	server := newServer(routes(opts.callers, pairingAPI(registry, notifier, now), relay))
	if relay != nil {
		server.RegisterOnShutdown(relay.Close) // which lets the waiting phones go
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	guide.print(out)

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	scheduler := &scheduler{dag: opts.dag, jobs: opts.jobs, every: opts.every, notifier: notifier}
	scheduled := make(chan struct{})
	go func() {
		defer close(scheduled)
		scheduler.run(ctx, now)
	}()
	select {
	case err = <-served:
	case <-ctx.Done():
		slog.Info("stopping: waiting for jobs and reports")
	}
	cancel()
	<-scheduled // the relay serves on, because reports may be on their way to it
	ctx, cancelShutdown := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancelShutdown()
	return errors.Join(err, server.Shutdown(ctx))
}
