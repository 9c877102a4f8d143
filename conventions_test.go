package sealpush_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sealpush/sealpush/integrations/alertmanager"
	slogpage "github.com/sealpush/sealpush/integrations/slog"
	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/pushauth"
	"github.com/sealpush/sealpush/pushauth/verify"
	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relay/apns"
	"github.com/sealpush/sealpush/relay/webpush"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

// An option is a function on an unexported configuration, and its error is that of the constructor. The constructors of
// package relaytest panic with it, as those of net/http/httptest; some of its options are for two constructors, which
// takes an interface.
func TestConventionsOptions(t *testing.T) {
	found := 0
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.TypeSpec)
			if !ok || !spec.Name.IsExported() || !strings.HasSuffix(spec.Name.Name, "Option") {
				return true
			}
			found++
			if _, ok := spec.Type.(*ast.InterfaceType); ok && file.Name.Name == "relaytest" {
				return true
			}
			if !isOption(spec.Type) {
				t.Errorf("%s: %s is no func(*config) error", files.Position(spec.Pos()), spec.Name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 10 {
		t.Errorf("found %d types of options", found)
	}
}

// isOption reports whether a type is a func(*config) error, or func(*thingConfig) error.
func isOption(t ast.Expr) bool {
	function, ok := t.(*ast.FuncType)
	if !ok || function.Params.NumFields() != 1 || function.Results.NumFields() != 1 {
		return false
	}
	pointer, ok := function.Params.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	config, ok := pointer.X.(*ast.Ident)
	result, isIdent := function.Results.List[0].Type.(*ast.Ident)
	return ok && !config.IsExported() && strings.HasSuffix(strings.ToLower(config.Name), "config") && isIdent && result.Name == "error"
}

// A comment takes at most 120 columns after the indentation and the slashes.
func TestConventionsCommentWidth(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		number := 0
		for line := range strings.Lines(string(source)) {
			number++
			text, isComment := strings.CutPrefix(strings.TrimSpace(line), "// ")
			if columns := utf8.RuneCountInString(text); isComment && columns > 120 {
				t.Errorf("%s:%d: the comment takes %d columns", path, number, columns)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestConventionsNilOption(t *testing.T) {
	credentials := pushauth.Credentials{TokenURL: "https://token.example", ClientID: "c", ClientSecret: secret.New("s")}
	config := verify.Config{JWKSURL: "https://token.example/jwks", Issuer: "i", Audience: "a", Scope: "s"}
	registry := newRegistry(t)
	relays, err := relayclient.New("https://relay.example")
	if err != nil {
		t.Fatal(err)
	}
	defer relays.Close()
	notifier, err := relayclient.NewNotifier(relays, registry, "host")
	if err != nil {
		t.Fatal(err)
	}
	for name, construct := range map[string]func() error{
		"pushauth":    func() error { _, err := pushauth.NewSource(credentials, nil); return err },
		"verify":      func() error { _, err := verify.New(config, nil); return err },
		"relayclient": func() error { _, err := relayclient.New("https://relay.example", nil); return err },
		"Notify":      func() error { _, err := notifier.Notify(t.Context(), payload.NewTest("host"), nil); return err },
		"NewNotifier": func() error { _, err := relayclient.NewNotifier(relays, registry, "host", nil); return err },
		"NewRegistry": func() error { _, err := pairing.NewRegistry(newStore(t), nil); return err },
		"Handler":     func() error { _, err := pairing.Handler(registry, nil, nil); return err },
		"bridge":      func() error { _, err := bridge.New(bridge.Config{}, nil); return err },
		"NewOutbox": func() error {
			_, err := bridge.NewOutbox(nil, bridge.Notification{Title: "t", Body: "b"}, nil)
			return err
		},
		"relay":           func() error { _, err := relay.New(nil); return err },
		"alertmanager":    func() error { _, err := alertmanager.New(notifier, nil); return err },
		"NewBridge":       func() error { _, err := relay.NewBridge(nil); return err },
		"NewTokenService": func() error { _, err := relay.NewTokenService(nil); return err },
		"webpush": func() error {
			_, err := webpush.New(webpush.GenerateKey(), "mailto:ops@example.com", webpush.NewMemoryStore(), nil)
			return err
		},
		"apns":     func() error { _, err := apns.New(&apns.Key{}, "topic", nil); return err },
		"slogpage": func() error { _, err := slogpage.New(notifier, slog.DiscardHandler, nil); return err },
	} {
		if err := construct(); err == nil || !strings.HasSuffix(err.Error(), "an option is nil") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, construct := range map[string]func(){
		"NewPhone":                func() { relaytest.NewPhone(nil) },
		"NewRelay":                func() { relaytest.NewRelay(nil) },
		"NewRelay, server option": func() { relaytest.NewRelay(relaytest.ServerOption(nil)) },
		"NewBridgeService":        func() { relaytest.NewBridgeService(nil) },
	} {
		func() {
			defer func() {
				if p := recover(); p != "relaytest: an option is nil" {
					t.Errorf("%s panics with %v", name, p)
				}
			}()
			construct()
		}()
	}
}

// A nil context is context.Background(), here only told from one that makes something panic.
func TestConventionsNilContext(t *testing.T) {
	var none context.Context
	relays := relaytest.NewRelay()
	defer relays.Close()
	service := relaytest.NewBridgeService(relaytest.WithHashRounds(1))
	defer service.Close()
	phone := relaytest.NewPhone()
	store := newStore(t)
	registry := newRegistry(t)
	client, err := relayclient.New(relays.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	notifier, err := relayclient.NewNotifier(client, registry, "host")
	if err != nil {
		t.Fatal(err)
	}
	waker, err := bridge.New(bridge.Config{URL: service.RelayURL, TokenURL: service.TokenURL, ClientID: "c", ClientSecret: service.AddClient("c")})
	if err != nil {
		t.Fatal(err)
	}
	outbox, err := bridge.NewOutbox(nil, bridge.Notification{Title: "t", Body: "b"})
	if err != nil {
		t.Fatal(err)
	}
	defer outbox.Close()
	credentials := pushauth.Credentials{TokenURL: service.TokenURL, ClientID: "d", ClientSecret: service.AddClient("d")}
	source, err := pushauth.NewSource(credentials)
	if err != nil {
		t.Fatal(err)
	}
	request := pairing.Request{Name: "phone", Platform: "ios", PushToken: secret.New(phone.PushToken()), PublicKey: phone.PublicKey()}
	device, _, err := registry.Pair(t.Context(), request, "")
	if err != nil {
		t.Fatal(err)
	}
	browsers, err := webpush.New(webpush.GenerateKey(), "mailto:ops@example.com", webpush.NewMemoryStore())
	if err != nil {
		t.Fatal(err)
	}
	defer browsers.Close()
	unregistered := func(err error) error {
		if failure, ok := errors.AsType[*relay.ForwardError](err); ok && failure.Status == http.StatusGone {
			return nil
		}
		return fmt.Errorf("%v instead of 410", err)
	}
	for _, call := range []struct {
		name string
		do   func() error
	}{
		{"Store.Load", func() error { _, err := store.Load(none); return err }},
		{"Registry.Pair", func() error { _, _, err := registry.Pair(none, request, ""); return err }},
		{"Registry.Devices", func() error { _, err := registry.Devices(none); return err }},
		{"Registry.Device", func() error { _, err := registry.Device(none, device.ID); return err }},
		{"Registry.Recipients", func() error { return registry.Recipients(none).Err }},
		{"Client.Send", func() error {
			push := relayclient.Push{Alert: payload.NewTest("host"), Salt: payload.NewSalt()}
			return client.Send(none, push, []pairing.Device{device})[0].Err
		}},
		{"Notifier.Notify", func() error { _, err := notifier.Notify(none, payload.NewFailure("host", "job")); return err }},
		{"Notifier.Close", func() error { return notifier.Close(none) }},
		{"Notifier.Test", func() error { _, err := notifier.Test(none, device.ID); return err }},
		{"Relay.WaitInbox", func() error { _, err := relays.WaitInbox(none, phone.PushToken(), 1); return err }},
		{"Relay.WaitInFlight", func() error { return relays.WaitInFlight(none, 0) }},
		{"Registry.Revoke", func() error { return registry.Revoke(none, device.ID) }},
		{"Source.Token", func() error { _, err := source.Token(none); return err }},
		{"bridge.Client.Register", func() error {
			return waker.Register(none, bridge.Device{Token: secret.New(phone.PushToken()), Platform: "ios"})
		}},
		{"bridge.Client.Notify", func() error { return waker.Notify(none, bridge.Notification{Title: "t", Body: "b"}).Err }},
		{"bridge.Client.HandleMessage", func() error { _, err := waker.HandleMessage(none, []byte(`{}`)); return err }},
		{"bridge.Client.Unregister", func() error { return waker.Unregister(none, secret.New(phone.PushToken())) }},
		{"webpush.Forwarder.Forward", func() error {
			return unregistered(browsers.Forward(none, relay.Envelope{Device: secret.New(phone.PushToken())}))
		}},
		{"webpush.Forwarder.ForwardDigest", func() error {
			return unregistered(browsers.ForwardDigest(none, secret.New(phone.PushToken())))
		}},
		{"Outbox.Send", func() error { return outbox.Send(none, []byte("{}")) }},
	} {
		func() {
			defer func() {
				if p := recover(); p != nil {
					t.Errorf("%s panics: %v", call.name, p)
				}
			}()
			if err := call.do(); err != nil {
				t.Errorf("%s: %v", call.name, err)
			}
		}()
	}
}

// A *FieldError names the field, says what is wrong with it, and has a cause or none, in whichever package.
func TestConventionsFieldError(t *testing.T) {
	want := reflect.TypeFor[payload.FieldError]()
	for _, other := range []reflect.Type{reflect.TypeFor[pairing.FieldError](), reflect.TypeFor[bridge.FieldError]()} {
		if !other.ConvertibleTo(want) {
			t.Errorf("%v is not of the shape of %v", other, want)
		}
	}
	for prefix, err := range map[string]error{
		"payload": &payload.FieldError{Field: "name", Reason: "must be text", Err: http.ErrBodyNotAllowed},
		"pairing": &pairing.FieldError{Field: "name", Reason: "must be text", Err: http.ErrBodyNotAllowed},
		"bridge":  &bridge.FieldError{Field: "name", Reason: "must be text", Err: http.ErrBodyNotAllowed},
	} {
		if err.Error() != prefix+": name must be text" || !errors.Is(err, http.ErrBodyNotAllowed) {
			t.Errorf("%v", err)
		}
	}
}

func newStore(t *testing.T) pairing.Store {
	store, err := pairing.OpenFile(filepath.Join(t.TempDir(), "devices.json"))
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func newRegistry(t *testing.T) *pairing.Registry {
	registry, err := pairing.NewRegistry(newStore(t))
	if err != nil {
		t.Fatal(err)
	}
	return registry
}
