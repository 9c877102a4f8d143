package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/pairing/qr"
)

// pairedBy is the label of this tool in a registry.
const pairedBy = "sealpush pair"

func pairCommand() command {
	return command{
		name:    "pair",
		summary: "pair a phone: show a link, wait for the phone, compare fingerprints, send a test alert",
		usage:   "[flags]",
		text: `It serves the pairing API until one phone has paired, and shows the link to it as a QR code and as text. The link is good
for one phone and ends with the command. Then it shows the phone's fingerprint and asks whether the phone shows the same:
anything but "yes" revokes the phone. At last it sends a test alert.

The phone must reach this machine: -url says how, where that is not at its address in the local network. Without -tls-cert
the phone's push token travels in clear, so use that on a network that you trust, or behind a tunnel or a proxy with TLS. A
phone that cannot reach this machine shows its pairing request as text: paste it here, as one line.`,
		setup: func(s *settings) runFunc {
			var o pairOptions
			s.relayURL(&o.relay)
			s.registry(&o.registry)
			s.host(&o.host)
			s.flags.StringVar(&o.addr, "addr", ":0", "`address` to listen on; port 0 takes a free one")
			s.flags.StringVar(&o.url, "url", "", "base `URL` by which the phone reaches that address (default: this machine's address)")
			s.flags.StringVar(&o.certFile, "tls-cert", "", "serve https with the certificate in this PEM `file`")
			s.flags.StringVar(&o.keyFile, "tls-key", "", "with -tls-cert: the `file` with its private key")
			s.flags.DurationVar(&o.timeout, "timeout", 10*time.Minute, "how `long` to wait for the phone, and for each answer")
			s.flags.BoolVar(&o.light, "light", false, "draw the QR code for a terminal with a light background")
			return func(ctx context.Context, args []string) error {
				if err := noArguments(args); err != nil {
					return err
				}
				if err := o.complete(s); err != nil {
					return usageError{err}
				}
				return o.run(ctx)
			}
		},
	}
}

type pairOptions struct {
	relay, registry, host string
	addr, url             string
	certFile, keyFile     string
	timeout               time.Duration
	light                 bool
}

// complete fills in what was not given, or says what is missing.
func (o *pairOptions) complete(s *settings) (err error) {
	switch {
	case o.relay == "":
		return s.missing("relay-url")
	case o.registry == "":
		return s.missing("registry")
	case (o.certFile == "") != (o.keyFile == ""):
		return errors.New("-tls-cert and -tls-key go together")
	case o.url != "" && !isBaseURL(o.url):
		return errors.New("-url takes an http or https URL, without credentials or query")
	}
	if o.host == "" {
		if o.host, err = os.Hostname(); err != nil || o.host == "" {
			return errors.New("this machine does not know its name: set host")
		}
	}
	return nil
}

// run pairs one phone.
func (o pairOptions) run(ctx context.Context) error {
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})) // the rest is said here
	client, err := relayclient.New(o.relay, relayclient.WithLogger(logger))
	if err != nil {
		return usageError{err}
	}
	defer client.Close()
	from, err := openRegistry(o.registry)
	if err != nil {
		return usageError{err}
	}
	defer from.close()
	if err := from.create(); err != nil {
		return err
	}
	registry, err := pairing.NewRegistry(from.store, pairing.WithLogger(logger))
	if err != nil {
		return err
	}
	notifier, err := relayclient.NewNotifier(client, registry, o.host)
	if err != nil {
		return err
	}
	typed := lines(os.Stdin)
	device, err := o.receive(ctx, registry, typed)
	if err != nil {
		return err
	}
	if err := o.confirm(ctx, registry, device, typed); err != nil {
		return err
	}
	status, err := notifier.Test(ctx, device.ID)
	if err != nil {
		return fmt.Errorf("the phone is paired, and the test alert was not delivered: %w\n%s", err, outcomeAdvice(err))
	}
	fmt.Printf("Paired as %s. The relay accepted a test alert (%d): it should be on the phone in seconds.\n", device.ID, status)
	return nil
}

// receive waits for a phone, or for its request as a line, and returns the phone as it is in the registry from then on.
func (o pairOptions) receive(ctx context.Context, registry *pairing.Registry, typed <-chan string) (pairing.Device, error) {
	var none pairing.Device
	listener, err := net.Listen("tcp", o.addr)
	if err != nil {
		return none, err
	}
	server, err := newPairingServer(registry)
	if err != nil {
		listener.Close()
		return none, err
	}
	defer server.close()
	server.serve(listener, o.certFile, o.keyFile)
	if err := o.show(server, listener.Addr().(*net.TCPAddr)); err != nil {
		return none, err
	}
	deadline := time.NewTimer(o.timeout)
	defer deadline.Stop()
	for {
		select {
		case id := <-server.paired:
			return registry.Device(ctx, id)
		case err := <-server.failed:
			return none, err
		case <-ctx.Done():
			return none, errors.New("interrupted: no phone was paired")
		case <-deadline.C:
			return none, fmt.Errorf("no phone came within %v: none was paired", o.timeout)
		case line, open := <-typed:
			if !open {
				typed = nil // the phone may come all the same
				continue
			}
			if line == "" {
				continue
			}
			req, err := pairing.ParseRequest(strings.NewReader(line))
			if err != nil {
				fmt.Printf("This line is no pairing request: %v\n", err)
				continue
			}
			if !server.claim() {
				continue // a phone was faster
			}
			device, _, err := registry.Pair(ctx, req, pairedBy)
			return device, err
		}
	}
}

// show prints the link.
func (o pairOptions) show(server *pairingServer, addr *net.TCPAddr) error {
	base := o.url
	if base == "" {
		scheme := "http://"
		if o.certFile != "" {
			scheme = "https://"
		}
		base = scheme + net.JoinHostPort(lanAddress(addr.IP), strconv.Itoa(addr.Port))
	}
	link := pairing.Link{Name: o.host, URL: base, Token: server.token}
	text, err := link.At(o.relay)
	if err != nil {
		return usageError{err}
	}
	if columns, _, err := term.GetSize(int(os.Stdout.Fd())); err == nil {
		code, err := qr.Encode(text)
		if err != nil {
			return err
		}
		background := qr.DarkBackground
		if o.light {
			background = qr.LightBackground
		}
		if picture, err := code.Terminal(background, columns); err == nil {
			fmt.Println(picture)
		} else {
			fmt.Printf("%v: use the text below, or a window of %d columns.\n\n", err, code.Width())
		}
	}
	fmt.Printf("Link         %s\nAs text      %s\n\n", text, link.JSON())
	if link.ThisMachineOnly() {
		fmt.Printf("No phone can reach %s: it names this machine alone. Give the address that a phone can reach with -url.\n", base)
	}
	if strings.HasPrefix(base, "http://") && !link.ThisMachineOnly() {
		fmt.Println("The phone's push token travels in clear: use this on a network that you trust, or serve https with -tls-cert or -url.")
	}
	_, err = fmt.Println("Scan the code with the app. Or paste the phone's pairing request here, as one line. Control-C stops it.")
	return err
}

// confirm asks a person whether the phone has the key that was paired, and revokes it unless they type yes.
func (o pairOptions) confirm(ctx context.Context, registry *pairing.Registry, device pairing.Device, typed <-chan string) error {
	fmt.Printf("\nPhone        %s (%s)\nFingerprint  %s\n\nDoes the phone show the same fingerprint? Type yes to keep it: ",
		printable(device.Name), printable(device.Platform), device.PublicKey.Fingerprint())
	said := "nothing"
	deadline := time.NewTimer(o.timeout)
	defer deadline.Stop()
	select {
	case line, open := <-typed:
		if line == "yes" {
			return nil
		}
		if open {
			said = "something else"
		}
	case <-ctx.Done():
	case <-deadline.C:
	}
	fmt.Println()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := registry.Revoke(ctx, device.ID); err != nil && !errors.Is(err, pairing.ErrUnknownDevice) {
		return fmt.Errorf("you answered %s, and the phone could not be revoked: %w: type sealpush devices revoke %s", said, err, device.ID)
	}
	return fmt.Errorf("you answered %s, so the phone is revoked: nothing is sent to it", said)
}

// lines are those of r, without space around them. The channel is closed at its end.
func lines(r io.Reader) <-chan string {
	read := make(chan string)
	go func() {
		defer close(read)
		scanner := bufio.NewScanner(r)
		scanner.Buffer(nil, pairing.MaxRequest)
		for scanner.Scan() {
			read <- strings.TrimSpace(scanner.Text())
		}
	}()
	return read
}

// lanAddress is where others in the local network reach a listener at ip.
func lanAddress(ip net.IP) string {
	if !ip.IsUnspecified() {
		return ip.String()
	}
	addresses, _ := net.InterfaceAddrs()
	other := ""
	for _, address := range addresses {
		network, ok := address.(*net.IPNet)
		if !ok || network.IP.IsLoopback() || network.IP.IsLinkLocalUnicast() {
			continue
		}
		if network.IP.To4() != nil && network.IP.IsPrivate() {
			return network.IP.String()
		}
		if other == "" {
			other = network.IP.String()
		}
	}
	if other == "" {
		return "localhost"
	}
	return other
}
