package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
)

// What paging may add to a command's own time, besides the patience.
const (
	lookTimeout   = 2 * time.Second // before it: a registry on a network drive may hang
	pageTimeout   = 30 * time.Second
	flushPatience = 5 * time.Second // for alerts of earlier runs, which can wait for the next

	silence = 5 * time.Second // after which somebody at a terminal would think that the program hangs
)

// pagerOptions say whom to page and how.
type pagerOptions struct {
	command               string // which pages
	relay, registry, host string
	priority              priority
	patience              patience
	spool                 string // a directory, or empty
}

// pager declares the flags that say whom to page and how, but for that of the spool.
func (s *settings) pager(o *pagerOptions) {
	o.command = s.command
	s.relayURL(&o.relay)
	s.registry(&o.registry)
	s.host(&o.host)
	s.priority(&o.priority)
	s.patience(&o.patience)
}

// A pager pages the phones of a registry, or says why it cannot. It is safe for concurrent use.
type pager struct {
	pagerOptions
	client *relayclient.Client
	source *source
	phones *pairing.Registry
	err    error // why there can be no page, whatever the registry says

	begun atomic.Int64 // POSTs

	step func(name string) // that of the spool
}

func (s *settings) newPager(o pagerOptions) *pager {
	p := &pager{pagerOptions: o}
	p.err = p.open(s)
	return p
}

func (p *pager) open(s *settings) (err error) {
	switch {
	case p.relay == "":
		return s.missing("relay-url")
	case p.registry == "":
		return s.missing("registry")
	}
	if p.host == "" {
		if p.host, err = os.Hostname(); err != nil || p.host == "" {
			return errors.New("this machine does not know its name: set host")
		}
	}
	if p.client, err = relayclient.New(p.relay, relayclient.WithPatience(time.Duration(p.patience))); err != nil {
		return err
	}
	if p.source, err = openRegistry(p.registry); err != nil {
		return err
	}
	p.phones, err = pairing.NewRegistry(readOnly{p.source})
	return err
}

func (p *pager) close() {
	if p.client != nil {
		p.client.Close()
	}
	if p.source != nil {
		p.source.close()
	}
}

func (p *pager) say(format string, args ...any) { say(p.command, format, args...) }

// look returns an error if an alert could reach nobody.
func (p *pager) look(timeout time.Duration) error {
	if p.err != nil {
		return p.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	devices, err := p.phones.Devices(ctx)
	if err != nil {
		return err
	}
	if len(devices) == 0 {
		return fmt.Errorf("%w in %s", relayclient.ErrNobodyPaired, p.source.where)
	}
	for _, device := range devices {
		if device.Unusable == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: there is no other in %s: %w", relayclient.ErrUnusableDevice, p.source.where, devices[0].Unusable)
}

// page sends an alert to each phone, and then what the spool has for them. It says on standard error what went wrong.
// accepted reports whether the relay has accepted the alert for every phone that is paired.
func (p *pager) page(ctx context.Context, alert payload.Alert) (outcomes []relayclient.Outcome, accepted bool) {
	if err := p.look(pageTimeout); err != nil {
		p.say("nobody was paged: %v", err)
		return nil, false
	}
	recipients := p.phones.Recipients(ctx)
	for _, skipped := range recipients.Skipped {
		p.say("not paged: %v", skipped)
	}
	if alert.Host == "" {
		alert.Host = p.host
	}
	push := relayclient.Push{Alert: alert, Salt: recipients.Salt, Priority: relayclient.Priority(p.priority)}
	sealed, err := p.client.Seal(push, recipients.Devices)
	if err != nil {
		p.say("not paged: %v", err)
	}
	if len(sealed) == 0 {
		return nil, false
	}
	accepted = err == nil && len(recipients.Skipped) == 0
	spool := p.openSpool(ctx)
	defer spool.close()
	entries := make([]*spooled, len(sealed))
	for i, s := range sealed {
		if entries[i], err = spool.put(s); err != nil {
			p.say("the alert cannot be kept in %s if it is not delivered now: %v", p.spool, err)
		}
	}
	waiting := time.AfterFunc(silence, func() {
		p.say("the relay has not taken the alert yet: trying for up to %v (-patience)", time.Duration(p.patience))
	})
	outcomes = p.post(ctx, p.client, sealed, entries)
	waiting.Stop()
	kept, unsent := 0, 0
	for i, outcome := range outcomes {
		accepted = accepted && outcome.Err == nil
		if isUnsent(outcome.Err) {
			unsent++
			if entries[i] != nil && !errors.Is(outcome.Err, errTaken) {
				kept++
			}
		}
	}
	if kept > 0 {
		p.say("%s kept in %s, for the next run; a phone shows an alert that is older than 10 minutes as outdated", number(kept, "alert"), p.spool)
	}
	if unsent < len(outcomes) { // the relay is there
		p.flushSpool(ctx, spool, recipients)
	}
	spool.trim()
	return outcomes, accepted
}

// post posts sealed alerts, and removes or keeps their entries of the spool. An entry may be nil.
func (p *pager) post(ctx context.Context, client *relayclient.Client, sealed []relayclient.Sealed, entries []*spooled) []relayclient.Outcome {
	outcomes := client.Post(ctx, sealed, func(i int) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		p.begun.Add(1)
		return entries[i].begin()
	})
	for i, outcome := range outcomes {
		if err := entries[i].end(isUnsent(outcome.Err)); err != nil {
			p.say("the spool: %v", err)
		}
	}
	return outcomes
}

// isUnsent reports whether the relay has seen nothing of an alert.
func isUnsent(err error) bool {
	lost, ok := errors.AsType[*relayclient.TransportError](err)
	return ok && lost.Unsent || errors.Is(err, relayclient.ErrNotAttempted)
}

// flush posts what earlier runs have left in the spool, if there is anything, and does not wait long for the relay.
func (p *pager) flush(ctx context.Context) {
	if p.spool == "" || p.err != nil || !hasEntries(p.spool) {
		return
	}
	spool := p.openSpool(ctx)
	defer spool.close()
	p.flushSpool(ctx, spool, p.phones.Recipients(ctx))
}

func (p *pager) flushSpool(ctx context.Context, spool *spool, recipients pairing.Recipients) {
	if spool == nil || recipients.Err != nil { // which phones are revoked is not known
		return
	}
	paired := map[string]bool{}
	for _, device := range recipients.Devices {
		paired[device.ID] = true
	}
	sealed, entries := spool.waiting(paired)
	if len(sealed) == 0 {
		return
	}
	client, err := relayclient.New(p.relay, relayclient.WithPatience(min(time.Duration(p.patience), flushPatience)))
	if err != nil {
		return // p.client was made in the same way
	}
	defer client.Close()
	for i, outcome := range p.post(ctx, client, sealed, entries) {
		switch at := entries[i].time().Format(time.RFC3339); {
		case outcome.Err == nil:
			p.say("the alert of %s, which was kept in %s, has been sent to phone %s", at, p.spool, outcome.DeviceID)
		case !isUnsent(outcome.Err):
			p.say("the alert of %s for phone %s is lost", at, outcome.DeviceID) // the log says why
		}
	}
}

// openSpool returns nil without a spool, or when it cannot be used.
func (p *pager) openSpool(ctx context.Context) *spool {
	if p.spool == "" {
		return nil
	}
	s, err := openSpool(ctx, p.spool, p.say, p.step)
	if err != nil {
		p.say("the spool cannot be used: %v", err)
		return nil
	}
	return s
}

// endWith calls cancel after a signal: at once while everything waits for the relay, or when a POST that has begun must
// have ended.
func (p *pager) endWith(ctx context.Context, signals <-chan os.Signal, cancel func()) {
	select {
	case <-ctx.Done():
		return
	case <-signals:
	}
	if p.begun.Load() > 0 {
		select {
		case <-ctx.Done():
		case <-signals: // once more
		case <-time.After(relayclient.DefaultTimeout):
		}
	}
	cancel()
}
