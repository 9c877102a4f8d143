package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
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
		text: `It shows a link, as a QR code and as text, waits for a phone, shows the phone's fingerprint and asks whether the phone shows
the same: if you type "yes", the phone is paired, and is told so. Then it sends a test alert. The link is valid for one phone,
until the command ends.

Where the relay serves mailboxes (sealpush relay -web does), the link opens the web phone. The phone and this command leave
each other one message at the relay, each sealed to the other's key, so neither has to reach the other. -page is the
URL of the web phone's server, if that is not the relay; -invitation is the relay's invitation, which a browser needs.

Otherwise, and with -addr, -url or -tls-cert, this command serves the pairing API itself, for an app that can reach this
machine. -url is the URL that the app uses, if that is not this machine's address in the local network. Here the phone is
paired as soon as it connects, and revoked unless you type "yes". Without -tls-cert the phone's push token travels in clear, so use that on a network that you trust, or
behind a tunnel or a proxy with TLS.

A phone that can reach neither the relay nor this machine shows its pairing request as text: paste it here, as one line.

Without -registry the phone is paired in devices.json beside the user's sealpush.toml, and the relay's URL is kept in that
file if it is not there yet, so that the other commands need no flags.`,
		setup: func(s *settings) runFunc {
			var o pairOptions
			s.relayURL(&o.relay)
			s.registry(&o.registry)
			s.host(&o.host)
			s.flags.StringVar(&o.page, "page", "", "`URL` of the web phone's server, if that is not the relay's")
			s.secretVar(&o.invitation, "invitation", "the relay's invitation: the `text` that a browser needs to subscribe")
			s.flags.StringVar(&o.addr, "addr", "", "serve the pairing API on this `address`; port 0 takes a free one (default, without mailboxes: :0)")
			s.flags.StringVar(&o.url, "url", "", "base `URL` by which the phone reaches that address (default: this machine's address)")
			s.flags.StringVar(&o.certFile, "tls-cert", "", "serve https with the certificate in this PEM `file`")
			s.flags.StringVar(&o.keyFile, "tls-key", "", "with -tls-cert: the `file` with its private key")
			o.timeout = 10 * time.Minute
			s.flags.Var(span{&o.timeout, false}, "timeout", "longest `time` to wait for the phone, and for each answer")
			s.flags.BoolVar(&o.light, "light", false, "draw the QR code for a terminal with a light background")
			return func(ctx context.Context, args []string) error {
				if err := noArguments(args); err != nil {
					return err
				}
				if err := o.complete(s); err != nil {
					return usageError{err}
				}
				if err := o.run(ctx); err != nil {
					return err
				}
				return s.keepRelayURL(o.relay)
			}
		},
	}
}

// keepRelayURL writes the user's sealpush.toml where there is none and the phone was paired in the user's own registry, so
// that the other commands need no flags.
func (s *settings) keepRelayURL(relay string) error {
	path, ok := userFile(configName)
	if !ok || s.origin["registry"] != "" {
		return nil
	}
	content, err := toml.Marshal(map[string]string{"relay_url": relay})
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // the URL may hold a password
	if errors.Is(err, fs.ErrExist) {
		sayOtherRelay(path, relay)
		return nil
	}
	if err == nil {
		_, err = file.Write(content)
		err = errors.Join(err, file.Close())
	}
	if err != nil {
		return fmt.Errorf("the phone is paired, and the relay's URL could not be kept for the other commands: %w", err)
	}
	fmt.Printf("The relay's URL is kept in %s, so that the other commands need no flags. Try: sealpush run -- false\n", path)
	return nil
}

// sayOtherRelay warns if the other commands, without flags, post to another relay than this one.
func sayOtherRelay(path, relay string) {
	others := newSettings(sendCommand())
	if err := others.parse(nil, os.Getenv); err != nil {
		return // this command has read the same files
	}
	switch others.flags.Lookup("relay-url").Value.String() {
	case relay:
	case "":
		fmt.Printf("The other commands do not know this relay: set relay_url in %s to its URL.\n", path)
	default:
		fmt.Printf("The other commands post to another relay, whose URL is in %s: put the URL of this one there, "+
			"and revoke the phones of the other ('sealpush devices').\n", others.origin["relay-url"])
	}
}

type pairOptions struct {
	relay, registry, host string
	page, invitation      string
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
	case o.page != "" && !isBaseURL(o.page):
		return errors.New("-page takes an http or https URL, without credentials or query")
	case o.page != "" && o.direct():
		return errors.New("-page is for a phone that comes through the relay: leave out -addr, -url and -tls-cert")
	}
	if o.host == "" {
		if o.host, err = os.Hostname(); err != nil || o.host == "" {
			return errors.New("this machine does not know its name: set host")
		}
	}
	return nil
}

// direct reports whether the phone connects to this machine.
func (o *pairOptions) direct() bool { return o.addr != "" || o.url != "" || o.certFile != "" }

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
	var box *mailbox
	if !o.direct() {
		if box, err = o.mailbox(ctx); err != nil {
			return err
		}
	}
	typed := lines(os.Stdin)
	var guest guest
	if box != nil {
		defer box.close()
		guest, err = o.receiveMail(ctx, box, typed)
	} else {
		guest, err = o.receive(ctx, registry, typed)
	}
	if err != nil {
		return err
	}
	device, err := o.confirm(ctx, registry, guest, typed)
	if err != nil {
		return err
	}
	status, err := notifier.Test(ctx, device.ID)
	if err != nil {
		return fmt.Errorf("the phone is paired, and the test alert was not delivered: %w\n%s", err, outcomeAdvice(err))
	}
	fmt.Printf("Paired as %s. The relay accepted a test alert (%d): it should be on the phone in seconds.\n", device.ID, status)
	return nil
}

// A guest is a phone that has asked to be paired.
type guest struct {
	request pairing.Request
	device  pairing.Device // what is in the registry already, by the pairing API; the zero Device otherwise

	// tell tells the phone whether it is paired, and why not. It is nil if there is no way to tell the phone.
	tell func(ctx context.Context, problem string) error
}

// receive serves the pairing API until a phone has come, or its request as a line.
func (o pairOptions) receive(ctx context.Context, registry *pairing.Registry, typed <-chan string) (guest, error) {
	addr := o.addr
	if addr == "" {
		addr = ":0"
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return guest{}, fmt.Errorf("%w: choose another address with -addr", err)
	}
	server, err := newPairingServer(registry, o.relay)
	if err != nil {
		listener.Close()
		return guest{}, err
	}
	defer server.close()
	server.serve(listener, o.certFile, o.keyFile)
	if err := o.show(server, listener.Addr().(*net.TCPAddr)); err != nil {
		return guest{}, err
	}
	deadline := time.NewTimer(o.timeout)
	defer deadline.Stop()
	for {
		select {
		case id := <-server.paired:
			device, err := registry.Device(ctx, id)
			return guest{device: device, request: pairing.Request{Name: device.Name, Platform: device.Platform, PublicKey: device.PublicKey}}, err
		case err := <-server.failed:
			return guest{}, err
		case <-ctx.Done():
			return guest{}, errInterrupted
		case <-deadline.C:
			return guest{}, o.nobodyCame()
		case line, open := <-typed:
			if !open {
				typed = nil // the phone may come all the same
				continue
			}
			if req, ok := pasted(line); ok && server.claim() { // or else a phone was faster
				return guest{request: req}, nil
			}
		}
	}
}

var errInterrupted = errors.New("interrupted: no phone was paired")

func (o pairOptions) nobodyCame() error {
	return fmt.Errorf("no phone came within %v: none was paired", o.timeout)
}

// pasted reads a pairing request that somebody typed, and says so if it is none.
func pasted(line string) (req pairing.Request, ok bool) {
	if line == "" {
		return req, false
	}
	req, err := pairing.ParseRequest(strings.NewReader(line))
	if err != nil {
		fmt.Printf("This line is no pairing request: %v\n", err)
	}
	return req, err == nil
}

// show prints the link to the pairing API.
func (o pairOptions) show(server *pairingServer, addr *net.TCPAddr) error {
	base, err := o.base(addr)
	if err != nil {
		return err
	}
	link := pairing.Link{Name: o.host, URL: base, Token: server.token}
	text, err := link.At(o.relay)
	if err != nil {
		return usageError{err}
	}
	if err := o.draw(text); err != nil {
		return err
	}
	fmt.Printf("Link         %s\nAs text      %s\n\n", text, link.JSON())
	if link.ThisMachineOnly() {
		fmt.Printf("This machine only: no real phone can reach %s. Give the address that a phone can reach with -url.\n", base)
	}
	if strings.HasPrefix(base, "http://") && !link.ThisMachineOnly() {
		fmt.Println("The phone's push token travels in clear: use this on a network that you trust, or serve https with -tls-cert or -url.")
	}
	if relay, err := url.Parse(o.relay); err == nil && isLoopback(relay.Hostname()) { // as sealpush relay, with inboxes
		fmt.Println("To simulate a phone in another terminal: sealpush phone -link 'LINK'")
	}
	_, err = fmt.Println("Scan the code with the app. Or paste the phone's pairing request here, as one line. Control-C stops it.")
	return err
}

// base returns the URL of the pairing API, as the phone reaches it. It is of this machine alone only where somebody asked
// for that, by -addr or -url.
func (o pairOptions) base(addr *net.TCPAddr) (string, error) {
	if o.url != "" {
		return o.url, nil
	}
	address := addr.String()
	if !addr.IP.IsLoopback() {
		addresses, err := pairing.PhoneAddresses(address)
		if err != nil {
			return "", fmt.Errorf("%w: give the URL at which a phone reaches it with -url, or -addr 127.0.0.1:0 for a program on this machine", err)
		}
		address = addresses[0]
	}
	if o.certFile != "" {
		return "https://" + address, nil
	}
	return "http://" + address, nil
}

// draw shows a link as a QR code, in a terminal.
func (o pairOptions) draw(link string) error {
	columns, _, err := term.GetSize(int(os.Stdout.Fd()))
	if err != nil {
		return nil
	}
	code, err := qr.Encode(link)
	if err != nil {
		return err
	}
	background := qr.DarkBackground
	if o.light {
		background = qr.LightBackground
	}
	picture, err := code.Terminal(background, columns)
	if err != nil {
		fmt.Printf("%v: use the text below, or a window of %d columns.\n\n", err, code.Width())
		return nil
	}
	fmt.Println(picture)
	return nil
}

// confirm asks a person whether the phone has the key that came here, and pairs it if they type yes. Otherwise it
// revokes what is paired. The phone is told, if that is possible.
func (o pairOptions) confirm(ctx context.Context, registry *pairing.Registry, phone guest, typed <-chan string) (pairing.Device, error) {
	fmt.Printf("\nPhone        %s (%s)\nFingerprint  %s\n\nDoes the phone show the same fingerprint? Type yes to keep it: ",
		printable(phone.request.Name), printable(phone.request.Platform), phone.request.PublicKey.Fingerprint())
	said := "nothing"
	deadline := time.NewTimer(o.timeout)
	defer deadline.Stop()
	select {
	case line, open := <-typed:
		if line == "yes" {
			return o.keep(ctx, registry, phone)
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
	if phone.device.ID == "" {
		phone.say(ctx, "the fingerprint was not confirmed on the other side")
		return pairing.Device{}, fmt.Errorf("you answered %s, so the phone is not paired: nothing is sent to it", said)
	}
	id := phone.device.ID
	if err := registry.Revoke(ctx, id); err != nil && !errors.Is(err, pairing.ErrUnknownDevice) {
		return pairing.Device{}, fmt.Errorf("you answered %s, and the phone could not be revoked: %w: type sealpush devices revoke %s", said, err, id)
	}
	return pairing.Device{}, fmt.Errorf("you answered %s, so the phone is revoked: nothing is sent to it", said)
}

// keep pairs a phone whose fingerprint is right, unless it is paired already.
func (o pairOptions) keep(ctx context.Context, registry *pairing.Registry, phone guest) (pairing.Device, error) {
	if phone.device.ID != "" {
		return phone.device, nil
	}
	device, _, err := registry.Pair(ctx, phone.request, pairedBy)
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		phone.say(ctx, "the other side could not store it, and says why")
		return pairing.Device{}, err
	}
	phone.say(ctx, "")
	return device, nil
}

// say tells the phone whether it is paired, if that is possible. A problem is why not.
func (g guest) say(ctx context.Context, problem string) {
	if g.tell == nil {
		return
	}
	if err := g.tell(ctx, problem); err != nil {
		fmt.Printf("The phone could not be told, and goes on waiting: %v\n", err)
	}
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
