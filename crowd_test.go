package sealpush_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sealpush/sealpush/pushauth"
	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// Every method of what says that it is safe for concurrent use, from 64 goroutines at once. It is for the race detector.
func TestCrowd(t *testing.T) {
	service := relaytest.NewBridgeService(relaytest.InMemory(), relaytest.WithHashRounds(1), relaytest.WithSigningKey(signingKey()))
	defer service.Close()
	quiet := slog.New(slog.DiscardHandler)
	config := bridge.Config{URL: service.RelayURL, TokenURL: service.TokenURL, ClientID: "crowd", ClientSecret: service.AddClient("crowd")}
	client, err := bridge.New(config, bridge.WithHTTPClient(service.Client()), bridge.WithLogger(quiet))
	if err != nil {
		t.Fatal(err)
	}
	source, err := pushauth.NewSource(pushauth.Credentials{TokenURL: config.TokenURL, ClientID: config.ClientID, ClientSecret: config.ClientSecret},
		pushauth.WithHTTPClient(service.Client()), pushauth.WithLogger(quiet))
	if err != nil {
		t.Fatal(err)
	}
	store, err := pairing.OpenFile(filepath.Join(t.TempDir(), "devices.json"))
	if err != nil {
		t.Fatal(err)
	}
	registry, err := pairing.NewRegistry(store, pairing.WithLogger(quiet))
	if err != nil {
		t.Fatal(err)
	}
	handler, err := pairing.Handler(registry, nil)
	if err != nil {
		t.Fatal(err)
	}
	outbox, err := bridge.NewOutbox(client, bridge.Notification{Title: "Agent", Body: "New activity"}, bridge.WithMaxMessages(16))
	if err != nil {
		t.Fatal(err)
	}

	var crowd sync.WaitGroup
	for i := range 64 {
		crowd.Go(func() {
			ctx := t.Context()
			want := func(what string, err error, allowed ...error) {
				for _, a := range allowed {
					if errors.Is(err, a) {
						return
					}
				}
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			token, err := source.Token(ctx)
			want("Token", err)
			source.Invalidate(token)
			device := bridge.Device{Token: secret.New(fmt.Sprintf("device-%d", i)), Platform: "ios"}
			want("Register", client.Register(ctx, device))
			want("Notify", client.Notify(ctx, bridge.Notification{Title: "Agent", Body: "New activity"}).Err)
			_, err = client.HandleMessage(ctx, fmt.Appendf(nil, `{"method":"bridge/unregisterPushToken","params":{"deviceToken":%q}}`, device.Token.Reveal()))
			want("HandleMessage", err)
			want("Unregister", client.Unregister(ctx, device.Token))
			service.Devices("crowd")
			service.Pushes("crowd")

			attached, detach := context.WithCancel(ctx)
			var phone sync.WaitGroup
			phone.Go(func() {
				want("Attach", outbox.Attach(attached, func(context.Context, []byte) error { return nil }),
					context.Canceled, bridge.ErrReplaced, bridge.ErrOutboxClosed)
			})
			want("Send", outbox.Send(ctx, []byte("line")), bridge.ErrOutboxFull, bridge.ErrOutboxClosed)
			detach()
			phone.Wait()
			if i == 32 {
				outbox.Close() // during the others' Send
			}
			if i%8 == 0 { // each write reaches the disk
				paired, _, err := registry.Pair(ctx, pairing.Request{Name: "phone", Platform: "ios", PushToken: device.Token, PublicKey: seal.GenerateKey().Public()}, "")
				want("Pair", err)
				want("Revoke", registry.Revoke(ctx, paired.ID))
			}
			want("Recipients", registry.Recipients(ctx).Err)
			_, err = registry.Devices(ctx)
			want("Devices", err)
			handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/push/devices", strings.NewReader("")))
			fmt.Fprintf(io.Discard, "%v %v %v %v %v", client, source, registry, outbox, store)
		})
	}
	crowd.Wait()
	outbox.Close()
	if devices := service.Devices("crowd"); len(devices) != 0 {
		t.Errorf("%d devices are left", len(devices))
	}
	if devices, err := registry.Devices(t.Context()); err != nil || len(devices) != 0 {
		t.Errorf("%d phones are left, error %v", len(devices), err)
	}
}
