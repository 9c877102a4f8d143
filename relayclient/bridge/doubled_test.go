package bridge_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// A relay that pages the iPhone, and then answers 503 because the Android phone could not be paged: the agent goes on
// talking, and the iPhone must not ring at each line.
func TestFailingRelayDoesNotRingThePhoneAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, client := newClient(t)
		service.Script(relaytest.EndpointPush, relaytest.Always, relaytest.Answer{Status: 503})
		for range 65 {
			client.Notify(t.Context(), notification)
			advance(time.Second)
		}
		wantPushes(t, service, 3) // at 0, 30 and 60 s
	})
}

// What may have woken a phone keeps the cooldown. What certainly did not is tried again after a second.
func TestWhatKeepsTheCooldown(t *testing.T) {
	const cooldown, backoff = bridge.DefaultCooldown, time.Second
	answers := func(answers ...relaytest.Answer) func(*relaytest.BridgeService) {
		return func(service *relaytest.BridgeService) {
			for _, a := range answers {
				service.Script(relaytest.EndpointPush, 1, a)
			}
		}
	}
	tests := []struct {
		name   string
		script func(*relaytest.BridgeService)
		wait   time.Duration // from the start of the notification to the next one
	}{
		{"500", answers(relaytest.Answer{Status: 500}), cooldown},
		{"502, late", answers(relaytest.Answer{Status: 502, Delay: 5 * time.Second}), cooldown},
		{"redirect", answers(relaytest.Answer{Status: 303}), cooldown},
		{"lost answer", answers(relaytest.Answer{Drop: true}), cooldown},
		{"no answer in time", answers(relaytest.Answer{Delay: time.Hour}), cooldown},
		{"not ok", answers(relaytest.Answer{Status: 200, Body: `{"ok":false,"error":"no quota"}`}), cooldown},
		{"401, then a lost answer", answers(relaytest.Answer{Status: 401}, relaytest.Answer{Drop: true}), cooldown},
		{"400", answers(relaytest.Answer{Status: 400}), backoff},
		{"401 twice", answers(relaytest.Answer{Status: 401}, relaytest.Answer{Status: 401}), backoff},
		{"413", answers(relaytest.Answer{Status: 413}), backoff},
		{"429", answers(relaytest.Answer{Status: 429}), backoff},
		{"no device", func(service *relaytest.BridgeService) { service.FailDevice(phone.Token.Reveal(), "Unavailable") }, backoff},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service, client := newClient(t)
				mustRegister(t, client, phone)
				advance(time.Minute) // so that another token is another one
				tt.script(service)
				start := time.Now()
				wantStatus(t, client, bridge.StatusFailed)
				service.HealDevice(phone.Token.Reveal())
				// A failure that takes longer than the wait is followed by the back-off.
				next := max(tt.wait, time.Since(start)+backoff)
				advance(next - time.Since(start) - 1)
				wantStatus(t, client, bridge.StatusDebounced)
				advance(time.Nanosecond)
				wantStatus(t, client, bridge.StatusSent)
			})
		})
	}
}

// Of a relay that cannot be reached it is known that it has woken nobody, with Go's transport and with another.
func TestNoConnectionKeepsNoCooldown(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for name, refuse := range map[string]func(service *relaytest.BridgeService, up *bool) http.RoundTripper{
		"net/http": func(service *relaytest.BridgeService, up *bool) http.RoundTripper {
			transport := service.Client().Transport.(*http.Transport).Clone()
			dial := transport.DialContext
			transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if !*up && strings.Contains(service.RelayURL, addr[:strings.LastIndex(addr, ":")]) {
					return nil, refused
				}
				return dial(ctx, network, addr)
			}
			return transport
		},
		"another": func(service *relaytest.BridgeService, up *bool) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) {
				if !*up && r.URL.Path == "/push" {
					return nil, refused
				}
				return service.Client().Transport.RoundTrip(r)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service, config := newService(t)
				var up bool
				client, err := bridge.New(config, quiet, bridge.WithHTTPClient(&http.Client{Transport: refuse(service, &up)}))
				if err != nil {
					t.Fatal(err)
				}
				wantStatus(t, client, bridge.StatusFailed)
				wantPushes(t, service, 0)
				up = true
				advance(time.Second)
				wantStatus(t, client, bridge.StatusSent)
			})
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A transport that does not say how far it came is taken to have come far.
func TestSilentTransportKeepsTheCooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, config := newService(t)
		broken := true
		client, err := bridge.New(config, quiet, bridge.WithHTTPClient(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			if broken && r.URL.Path == "/push" {
				return nil, errors.New("stream error")
			}
			return service.Client().Transport.RoundTrip(r)
		})}))
		if err != nil {
			t.Fatal(err)
		}
		wantStatus(t, client, bridge.StatusFailed)
		broken = false
		advance(29 * time.Second)
		wantStatus(t, client, bridge.StatusDebounced)
		advance(time.Second)
		wantStatus(t, client, bridge.StatusSent)
	})
}

// A relay that has accepted a push has accepted it, whatever it says and however it says it.
func TestAcceptedIsSent(t *testing.T) {
	const said = `{"ok":true,"results":[{"platform":"ios","status":"sent"}]}`
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	io.WriteString(w, said)
	w.Close()
	sent := []bridge.DeviceResult{{Platform: "ios", Status: "sent"}}
	tests := []struct {
		name    string
		answer  relaytest.Answer
		devices []bridge.DeviceResult
		warns   bool
	}{
		{"plain", relaytest.Answer{Status: 200, Body: said}, sent, false},
		{"202", relaytest.Answer{Status: 202, Body: said}, sent, false},
		{"compressed unasked", relaytest.Answer{Status: 200, Body: zipped.String(), Header: http.Header{"Content-Encoding": {"gzip"}}}, sent, false},
		{"byte order mark", relaytest.Answer{Status: 200, Body: "\uFEFF" + said}, sent, false},
		{"empty", relaytest.Answer{Status: 200}, nil, true},
		{"204", relaytest.Answer{Status: 204}, nil, false},
		{"no member that we know", relaytest.Answer{Status: 200, Body: `{"id":"7"}`}, nil, false},
		{"a word that we do not know", relaytest.Answer{Status: 200, Body: `{"ok":true,"results":[{"platform":"ios","status":"queued"}]}`},
			[]bridge.DeviceResult{{Platform: "ios", Status: "queued"}}, false},
		{"results that are none", relaytest.Answer{Status: 200, Body: `{"ok":true,"results":"2 of 2"}`}, nil, false},
		{"a list", relaytest.Answer{Status: 200, Body: `[1]`}, nil, true},
		{"a page", relaytest.Answer{Status: 200, Body: `<html>`}, nil, true},
		{"unknown compression", relaytest.Answer{Status: 200, Body: "\x1b\x02", Header: http.Header{"Content-Encoding": {"br"}}}, nil, true},
		{"wrong compression", relaytest.Answer{Status: 200, Body: said, Header: http.Header{"Content-Encoding": {"gzip"}}}, nil, true},
		{"too long", relaytest.Answer{Status: 200, Body: `{"ok":true,"results":[` + strings.Repeat(`{},`, 30_000) + `{}]}`}, nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				service, client := newClient(t, bridge.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				service.Script(relaytest.EndpointPush, relaytest.Always, tt.answer)
				result := wantStatus(t, client, bridge.StatusSent)
				if diff := cmp.Diff(tt.devices, result.Devices); diff != "" || result.Err != nil {
					t.Errorf("error %v, devices %s", result.Err, diff)
				}
				if got := strings.Contains(log.String(), "level=WARN"); got != tt.warns {
					t.Errorf("log:\n%s", &log)
				}
				for range 8 {
					client.Notify(t.Context(), notification)
					advance(time.Second)
				}
				wantPushes(t, service, 1)
			})
		})
	}
}

func TestAsksForNoCompression(t *testing.T) {
	var asked []string
	client := plainClient(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Accept-Encoding"))
		io.WriteString(w, `{"ok":true}`)
	})
	mustRegister(t, client, phone)
	wantStatus(t, client, bridge.StatusSent)
	if diff := cmp.Diff([]string{"identity", "identity"}, asked); diff != "" {
		t.Error(diff)
	}
}

// One answer cannot fill the log.
func TestOneAnswerIsAFewLines(t *testing.T) {
	for _, status := range []string{bridge.DeviceFailed, bridge.DeviceRemoved} {
		var log strings.Builder
		client := plainClient(t, func(w http.ResponseWriter, _ *http.Request) {
			device := fmt.Sprintf(`{"status":%q}`, status)
			io.WriteString(w, `{"ok":true,"results":[`+strings.Repeat(device+",", 2000)+device+`]}`)
		}, bridge.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		if result := wantStatus(t, client, bridge.StatusFailed); len(result.Devices) != 2001 {
			t.Errorf("%d devices", len(result.Devices))
		}
		if lines := strings.Count(log.String(), "\n"); lines > 20 || !strings.Contains(log.String(), "devices=1991") {
			t.Errorf("%d lines:\n%.2000s", lines, &log)
		}
	}
}

func TestSizeOfANotification(t *testing.T) {
	service, client := newClient(t, bridge.WithCooldown(0))
	for _, tt := range []struct {
		name string
		n    bridge.Notification
		ok   bool
	}{
		{"longest", bridge.Notification{Title: "t", Body: strings.Repeat("b", bridge.MaxNotificationSize-len(`{"title":"t","body":""}`))}, true},
		{"longer", bridge.Notification{Title: "t", Body: strings.Repeat("b", 1+bridge.MaxNotificationSize-len(`{"title":"t","body":""}`))}, false},
		{"bytes, not characters", bridge.Notification{Title: "t", Body: strings.Repeat("ü", bridge.MaxNotificationSize/2)}, false},
		{"markup is not escaped", bridge.Notification{Title: "t", Body: strings.Repeat("<", bridge.MaxNotificationSize-len(`{"title":"t","body":""}`))}, true},
		{"data", bridge.Notification{Title: "t", Body: "b", Data: map[string]string{"k": strings.Repeat("v", bridge.MaxNotificationSize)}}, false},
	} {
		before := service.RequestCount(relaytest.EndpointPush)
		result := client.Notify(t.Context(), tt.n)
		failed, refused := errors.AsType[*bridge.FieldError](result.Err)
		if (result.Status == bridge.StatusSent) != tt.ok || refused == tt.ok || refused && failed.Field != "notification" {
			t.Errorf("%s: %+v", tt.name, result)
		}
		if got := service.RequestCount(relaytest.EndpointPush) - before; (got == 1) != tt.ok {
			t.Errorf("%s: %d requests", tt.name, got)
		}
	}
}
