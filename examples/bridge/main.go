// Bridge puts a command that talks JSON-RPC over its standard input and output, one message a line, on a WebSocket for
// a phone, and wakes the phone when the command says something while nobody is connected:
//
//	go run -C examples/bridge . -config "$PWD/common.toml" -- CMD ARGS…
//
// Run so, the command starts in examples/bridge; a built binary runs it where you are. The bridge is a module of its
// own, so that nobody who imports sealpush gets a WebSocket library with it. In another terminal, a client stands in
// for the phone:
//
//	go run -C examples/bridge ./client 'PAIRING_URL'
//
// # Pairing
//
// It prints a pairing URL with a code (on a terminal, `qrencode -t ansiutf8` makes a QR code of it). The code works
// once, within five minutes. Anybody who has it can get the pairing response with the authToken; to pair another phone,
// restart the bridge. Token and certificate are new with each start.
//
// Without -tls the bridge only listens on a loopback address, unless -url says that a proxy in front of it speaks
// https. With -tls it makes a self-signed certificate, whose fingerprint is in the pairing response and, for the
// pairing request itself, behind the '#' of the pairing URL: "SHA256:" and the hash of the DER certificate in hex with
// colons, as openssl prints it.
//
// # Connection
//
// The phone connects with "Authorization: Bearer <authToken>". There is one client at a time. A second one replaces the
// first, which is closed with 4001: a phone that lost its network connects again before the bridge can know that the
// old connection is dead. A client which does not answer a ping, or does not take a message, within -timeout is
// dropped, and messages that it did not take go to the next one. A message longer than -max-message closes the
// connection (1009), a binary one too (1003), and so does an agent that does not read (1013).
//
// A message counts as delivered once it is written to the connection. What is on its way when a network breaks is lost,
// for the protocol has no acknowledgement.
//
// Every message is one line for the agent, byte for byte but for line breaks, which become spaces; in JSON they mean
// the same. The two push messages stay with the bridge.
//
// Of what the agent prints, the phone gets the lines that are JSON-RPC 2.0: an object with "jsonrpc": "2.0", or a batch
// of them. A banner, a warning or a log line is counted in the log and goes nowhere; a byte order mark is dropped.
//
// # The end
//
// When the agent ends (its process and all others that hold its standard output open), the bridge waits up to -linger
// for a client to fetch what it said last, closes the connection (1000, or 1011 if the agent failed) and exits with the
// agent's status. On SIGINT or SIGTERM it closes the agent's standard input, passes a SIGTERM on, kills the agent after
// five seconds, and exits with 0; the connection is closed with 1001.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/coder/websocket"

	"github.com/sealpush/sealpush/relayclient/bridge"
)

// grace is how long the parts of the bridge may take to end.
const grace = 5 * time.Second

type options struct {
	config     string
	listen     string
	url        string
	tls        bool
	name       string
	buffer     int
	maxMessage int
	timeout    time.Duration
	linger     time.Duration
	verbose    bool
	command    []string
}

func main() {
	opts, err := parseFlags(os.Args[1:])
	if err != nil {
		os.Exit(2) // package flag has printed the reason
	}
	if opts.verbose {
		slog.SetLogLoggerLevel(slog.LevelDebug)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the bridge at once
	status, err := run(ctx, opts)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bridge:", err)
	}
	os.Exit(status)
}

func parseFlags(args []string) (options, error) {
	var opts options
	flags := flag.NewFlagSet("bridge", flag.ContinueOnError)
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: bridge [flags] -- CMD ARGS…")
		flags.PrintDefaults()
	}
	flags.StringVar(&opts.config, "config", "common.toml", "`file` with the [push_relay] table")
	flags.StringVar(&opts.listen, "listen", "127.0.0.1:0", "`address` to listen on; port 0 takes a free one")
	flags.StringVar(&opts.url, "url", "", "base `URL` by which phones reach that address (default: the address itself)")
	flags.BoolVar(&opts.tls, "tls", false, "serve TLS with a self-signed certificate")
	flags.StringVar(&opts.name, "name", "Agent", "`title` of the notifications")
	flags.IntVar(&opts.buffer, "buffer", bridge.DefaultOutboxMessages, "`messages` kept while no client is connected, in memory\n"+
		"and of 64 MiB in all; those that come when it is full are dropped")
	flags.IntVar(&opts.maxMessage, "max-message", 4<<20, "longest message in either direction, in `bytes`")
	flags.DurationVar(&opts.timeout, "timeout", 30*time.Second, "time for a client to take a message or answer a ping, and between pings")
	flags.DurationVar(&opts.linger, "linger", 10*time.Minute, "time for a client to fetch the last messages of an agent that ended")
	flags.BoolVar(&opts.verbose, "verbose", false, "log also what is at Debug: each notification that was not due yet")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	opts.command = flags.Args()
	if len(opts.command) == 0 || opts.buffer < 1 || opts.maxMessage < 1 || opts.timeout <= 0 || opts.name == "" {
		flags.Usage()
		return options{}, flag.ErrHelp
	}
	return opts, nil
}

// run returns the exit status: the agent's, 0 when ctx ended it all, and 1 or a shell's convention with an error.
func run(ctx context.Context, opts options) (status int, err error) {
	config, err := bridge.LoadConfig(opts.config)
	if err != nil {
		return 1, err
	}
	client, err := bridge.New(config)
	if err != nil {
		return 1, err
	}
	address, err := listen(opts)
	if err != nil {
		return 1, err
	}
	defer address.Close()
	s, err := newServer(opts, client)
	if err != nil {
		return 1, err
	}
	defer s.outbox.Close()

	agentCtx, stopAgent := context.WithCancel(context.Background())
	defer stopAgent()
	s.agent, err = startAgent(agentCtx, opts.command, opts.maxMessage, s.say)
	if err != nil {
		return notStarted(err), err
	}
	served := make(chan error, 1)
	go func() { served <- s.serve(address, config) }()

	goodbye, status := closing{websocket.StatusGoingAway, "the bridge ends"}, 0
	select {
	case <-s.agent.done:
		goodbye, status = s.agent.goodbye(), s.agent.status()
		slog.Info("agent ended", "status", s.agent.state.String())
		s.awaitClient(ctx, opts.linger)
	case err = <-served:
		status = 1
	case <-ctx.Done():
	}
	stopAgent()
	s.agent.wait()
	s.close(goodbye)
	return status, err
}

// notStarted follows the shell: 127 for a command that is not there, 126 for one that cannot be executed.
func notStarted(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return 127
	}
	return 126
}
