package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/sealpush/sealpush/internal/state"
	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

const yours = `To check your own:

    sealpush doctor -relay-url URL -registry devices.json
    sealpush doctor -bridge common.toml

With -page it also sends test alerts.`

// fillIn chooses what to check when the settings name nothing: what examples/daemon and sealpush phone keep, or else a
// reference setup. It says what that is.
func (o *doctorOptions) fillIn(ctx context.Context) (what string, cleanUp func(), err error) {
	if dir, err := state.Dir(); err == nil {
		path := filepath.Join(dir, "devices.json")
		if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
			o.relay, o.registry = "http://"+state.DaemonAddr+"/relay", path
			return "This is the setup of examples/daemon and sealpush phone: the first must be running.", func() {}, nil
		}
	}
	reference, err := newReference(ctx)
	if err != nil {
		return "", nil, err
	}
	o.relay, o.registry, o.bridge = reference.relay.URL, reference.registry, reference.bridgeConfig
	return "Nothing of yours is checked: this is a reference setup inside this process, to show what a good run looks like.", reference.close, nil
}

// reference is a relay with a paired phone, and the two services of a bridge with a registered one.
type reference struct {
	dir          string
	relay        *relaytest.Relay
	bridge       *relaytest.BridgeService
	registry     string
	bridgeConfig string
}

func newReference(ctx context.Context, opts ...relaytest.BridgeOption) (*reference, error) {
	dir, err := os.MkdirTemp("", "sealpush-doctor-")
	if err != nil {
		return nil, err
	}
	r := &reference{
		dir:          dir,
		relay:        relaytest.NewRelay(),
		bridge:       relaytest.NewBridgeService(opts...),
		registry:     filepath.Join(dir, "devices.json"),
		bridgeConfig: filepath.Join(dir, "common.toml"),
	}
	if err := errors.Join(r.pair(ctx), r.register(ctx)); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *reference) close() {
	r.relay.Close()
	r.bridge.Close()
	os.RemoveAll(r.dir)
}

func (r *reference) pair(ctx context.Context) error {
	store, err := pairing.OpenFile(r.registry)
	if err != nil {
		return err
	}
	phone := relaytest.NewPhone()
	registry, err := pairing.NewRegistry(store, pairing.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	_, _, err = registry.Pair(ctx, pairing.Request{
		Name: "reference phone", Platform: "ios", PublicKey: phone.PublicKey(), PushToken: secret.New(phone.PushToken()),
	}, "doctor")
	registry.Salt(ctx) // which makes it
	return err
}

func (r *reference) register(ctx context.Context) error {
	config := bridge.Config{
		URL: r.bridge.RelayURL, TokenURL: r.bridge.TokenURL,
		ClientID: "bridge-home-office", ClientSecret: r.bridge.AddClient("bridge-home-office"),
	}
	text := fmt.Sprintf("[push_relay]\nurl = %q\ntoken_url = %q\nclient_id = %q\nclient_secret = %q\n",
		config.URL, config.TokenURL, config.ClientID, config.ClientSecret.Reveal())
	if err := os.WriteFile(r.bridgeConfig, []byte(text), 0o600); err != nil {
		return err
	}
	client, err := bridge.New(config, bridge.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return err
	}
	return client.Register(ctx, bridge.Device{Token: secret.New(relaytest.NewPhone().PushToken()), Platform: "ios"})
}
