package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
)

func devicesCommand() command {
	return command{
		name:    "devices",
		summary: "list the paired phones; test, revoke or rename one",
		usage:   "[flags] [test ID | revoke ID | rename ID NAME]",
		text: `Without an argument it lists the phones. test sends one a test alert, revoke removes one, so that no alert is sealed to it
from then on, and rename changes what it is called.`,
		setup: func(s *settings) runFunc {
			var relay, registry, host string
			s.relayURL(&relay)
			s.registry(&registry)
			s.host(&host)
			return func(ctx context.Context, args []string) error {
				verb := strings.Join(args[:min(1, len(args))], "")
				wanted := map[string]int{"": 0, "test": 2, "revoke": 2, "rename": 3}
				if n, known := wanted[verb]; !known || len(args) != n {
					return usagef("it takes nothing, test ID, revoke ID or rename ID NAME, after its flags")
				}
				if registry == "" {
					return usageError{s.missing("registry")}
				}
				if verb == "test" && relay == "" {
					return usageError{s.missing("relay-url")}
				}
				p, err := openPhones(registry)
				if err != nil {
					return usageError{err}
				}
				defer p.from.close()
				switch verb {
				case "test":
					return p.test(ctx, args[1], relay, host)
				case "revoke":
					return p.revoke(ctx, args[1])
				case "rename":
					return p.rename(ctx, args[1], args[2])
				}
				return p.list(ctx)
			}
		},
	}
}

// phones returns the phones of a registry, which must exist.
type phones struct {
	from     *source
	readOnly *pairing.Registry
	registry *pairing.Registry
}

func openPhones(registry string) (*phones, error) {
	from, err := openRegistry(registry)
	if err != nil {
		return nil, err
	}
	p := &phones{from: from}
	quiet := pairing.WithLogger(slog.New(slog.DiscardHandler)) // what is done is said here
	if p.readOnly, err = pairing.NewRegistry(readOnly{from}, quiet); err == nil {
		p.registry, err = pairing.NewRegistry(from.store, quiet)
	}
	if err != nil {
		from.close()
	}
	return p, err
}

func (p *phones) list(ctx context.Context) error {
	devices, err := p.readOnly.Devices(ctx)
	if err != nil {
		return err
	}
	if len(devices) == 0 {
		_, err := fmt.Printf("No phone is paired in %s. To pair one: sealpush pair\n", p.from.where)
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tNAME\tPLATFORM\tFINGERPRINT\tPAIRED")
	for _, d := range devices {
		fingerprint, paired := "-", "-"
		if d.Unusable == nil {
			fingerprint = d.PublicKey.Fingerprint()
		}
		if !d.CreatedAt.IsZero() {
			paired = d.CreatedAt.Local().Format(time.DateTime)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", printable(d.ID), printable(d.Name), printable(d.Platform), fingerprint, paired)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, d := range devices {
		if d.Unusable != nil {
			fmt.Printf("\n%s gets no alert: %s\nTo remove it: sealpush devices revoke %[1]s\n", printable(d.ID), printable(d.Unusable.Error()))
		}
	}
	return nil
}

func (p *phones) test(ctx context.Context, id, relay, host string) error {
	if host == "" {
		var err error
		if host, err = os.Hostname(); err != nil || host == "" {
			return usagef("this machine does not know its name: set host")
		}
	}
	client, err := relayclient.New(relay, relayclient.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return usageError{err}
	}
	defer client.Close()
	notifier, err := relayclient.NewNotifier(client, p.readOnly, host)
	if err != nil {
		return err
	}
	status, err := notifier.Test(ctx, id)
	switch {
	case errors.Is(err, pairing.ErrUnknownDevice), errors.Is(err, pairing.ErrUnavailable):
		return withList(err)
	case err != nil:
		return fmt.Errorf("the test alert was not delivered: %w\n%s", err, outcomeAdvice(err))
	}
	_, err = fmt.Printf("The relay accepted a test alert (%d): it should be on the phone in seconds.\n", status)
	return err
}

func (p *phones) revoke(ctx context.Context, id string) error {
	if _, err := p.readOnly.Devices(ctx); err != nil { // a path with a typo is no registry without phones
		return err
	}
	if err := p.registry.Revoke(ctx, id); err != nil {
		return withList(err)
	}
	_, err := fmt.Printf("Revoked %s.\n", printable(id))
	return err
}

// rename pairs the phone again with all that it has but its name.
func (p *phones) rename(ctx context.Context, id, name string) error {
	device, err := p.readOnly.Device(ctx, id)
	if err != nil {
		return withList(err)
	}
	if device.Unusable != nil {
		return fmt.Errorf("this phone cannot be used, so pair it again under the new name: %w", device.Unusable)
	}
	renamed, created, err := p.registry.Pair(ctx, pairing.Request{
		Name: name, Platform: device.Platform, PushToken: device.PushToken, PublicKey: device.PublicKey,
	}, pairedBy)
	if field, ok := errors.AsType[*pairing.FieldError](err); ok && field.Field == "name" {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	if created { // somebody revoked it meanwhile, which counts
		return errors.Join(pairing.ErrUnknownDevice, p.registry.Revoke(ctx, renamed.ID))
	}
	_, err = fmt.Printf("%s is now %s.\n", renamed.ID, printable(renamed.Name))
	return err
}

// withList adds to an error how to list the ids.
func withList(err error) error {
	if errors.Is(err, pairing.ErrUnknownDevice) {
		return fmt.Errorf("%w: 'sealpush devices' lists the ids", err)
	}
	return err
}
