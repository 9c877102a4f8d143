package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/secret"
)

// What paging may add to the command's own time.
const (
	lookTimeout = 2 * time.Second // before it: a registry on a network drive may hang
	pageTimeout = 30 * time.Second
)

// pager pages the phones of a registry, or says why it cannot.
type pager struct {
	client   *relayclient.Client
	path     string // of the registry
	registry *pairing.Registry
	notifier *relayclient.Notifier
	err      error // why there can be no page, whatever the registry says
}

func newPager(relayURL, devices string) *pager {
	p := &pager{}
	p.err = p.open(relayURL, devices)
	return p
}

func (p *pager) open(relayURL, devices string) error {
	switch {
	case relayURL == "":
		return errors.New("-relay is missing or empty: it takes the URL that sealed alerts are posted to")
	case devices == "":
		return errors.New("-devices is missing or empty: it takes the registry file with the paired phones")
	}
	client, err := relayclient.New(relayURL)
	if err != nil {
		return err
	}
	p.client = client
	path, err := filepath.Abs(devices)
	if err != nil {
		return err
	}
	p.path = path
	store, err := pairing.OpenFile(path)
	if err != nil {
		return err
	}
	if p.registry, err = pairing.NewRegistry(readOnly{store, path}); err != nil {
		return err
	}
	p.notifier, err = relayclient.NewNotifier(client, p.registry, "")
	return err
}

// look says why a page would reach nobody, if it would, with the errors of Notify.
func (p *pager) look(patience time.Duration) error {
	if p.err != nil {
		return p.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	devices, err := p.registry.Devices(ctx)
	if err != nil {
		return err
	}
	if len(devices) == 0 {
		return fmt.Errorf("%w in %s", relayclient.ErrNobodyPaired, p.path)
	}
	for _, device := range devices {
		if device.Unusable == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: there is no other in %s: %w", relayclient.ErrUnusableDevice, p.path, devices[0].Unusable)
}

// page reports to standard error and fails nobody. What Notify returns is in the log, which is there, too.
func (p *pager) page(alert payload.Alert) {
	if err := p.look(pageTimeout); err != nil {
		fmt.Fprintln(os.Stderr, "watch: nobody was paged:", err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), pageTimeout)
	defer cancel()
	p.notifier.Notify(ctx, alert)
}

func (p *pager) close() {
	if p.client != nil {
		p.client.Close()
	}
}

// readOnly is a registry file that is looked at and never written: a path with a
// typo makes no file, and is an error where a daemon would start with no phone.
type readOnly struct {
	*pairing.FileStore
	path string
}

func (r readOnly) Load(ctx context.Context) (pairing.Snapshot, error) {
	if _, err := os.Stat(r.path); errors.Is(err, fs.ErrNotExist) {
		return pairing.Snapshot{}, fmt.Errorf("there is no registry at %s: correct -devices, or pair a phone with the daemon that keeps it", r.path)
	}
	return r.FileStore.Load(ctx)
}

// EnsureSalt keeps the candidate for this page alone where the file has no salt,
// which every daemon writes with the first phone.
func (r readOnly) EnsureSalt(ctx context.Context, candidate secret.Text) (secret.Text, error) {
	snapshot, err := r.FileStore.Load(ctx)
	if snapshot.Salt.IsZero() {
		snapshot.Salt = candidate
	}
	return snapshot.Salt, err
}
