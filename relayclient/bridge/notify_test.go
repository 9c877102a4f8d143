package bridge_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sealpush/sealpush/pushauth"
	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

func wantStatus(t *testing.T, client *bridge.Client, want bridge.Status) bridge.Result {
	t.Helper()
	result := client.Notify(t.Context(), notification)
	if result.Status != want {
		t.Fatalf("at %v: status %s, want %s (error %v)", time.Now(), result.Status, want, result.Err)
	}
	return result
}

func TestNotifySends(t *testing.T) {
	var log strings.Builder
	service, config := newService(t, relaytest.WithBridge(relay.WithPushData()))
	client, err := bridge.New(config, bridge.WithHTTPClient(service.Client()), bridge.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if err != nil {
		t.Fatal(err)
	}
	mustRegister(t, client, phone, bridge.Device{Token: secret.New("dead"), Platform: "ios"}, bridge.Device{Token: secret.New("failing"), Platform: "android"})
	service.KillDevice("dead")
	service.FailDevice("failing", "UNAVAILABLE\x1b[31m "+strings.Repeat("0a", 32))
	result := client.Notify(t.Context(), bridge.Notification{Title: "Agent Name", Body: "New activity", Data: map[string]string{"a": "b"}})
	want := bridge.Result{Status: bridge.StatusSent, Devices: []bridge.DeviceResult{
		{Platform: "ios", Status: bridge.DeviceSent},
		{Platform: "ios", Status: bridge.DeviceRemoved, Reason: "Unregistered"},
		{Platform: "android", Status: bridge.DeviceFailed, Reason: "UNAVAILABLE [31m [redacted]"},
	}}
	if diff := cmp.Diff(want, result); diff != "" {
		t.Error(diff)
	}
	pushes := service.Pushes(clientID)
	if len(pushes) != 1 || pushes[0].Title != "Agent Name" || pushes[0].Body != "New activity" || pushes[0].Data["a"] != "b" {
		t.Errorf("arrived: %+v", pushes)
	}
	if got := strings.Count(log.String(), "level=WARN"); got != 2 || !strings.Contains(log.String(), "reason=Unregistered") {
		t.Errorf("want a warning for each of the two devices not reached, got:\n%s", &log)
	}
}

// The line of the document: sent, dropped, dropped, sent.
func TestDebounceAsInTheDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, client := newClient(t)
		start := time.Now()
		for _, step := range []struct {
			at   time.Duration
			want bridge.Status
		}{
			{0, bridge.StatusSent},
			{10 * time.Second, bridge.StatusDebounced},
			{20 * time.Second, bridge.StatusDebounced},
			{35 * time.Second, bridge.StatusSent},
		} {
			advance(step.at - time.Since(start))
			wantStatus(t, client, step.want)
		}
		wantPushes(t, service, 2)
	})
}

func TestDebounceBoundary(t *testing.T) {
	for _, cooldown := range []time.Duration{bridge.DefaultCooldown, time.Second} {
		t.Run(cooldown.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, client := newClient(t, bridge.WithCooldown(cooldown))
				wantStatus(t, client, bridge.StatusSent)
				advance(cooldown - 1)
				wantStatus(t, client, bridge.StatusDebounced)
				advance(time.Nanosecond)
				wantStatus(t, client, bridge.StatusSent)
				advance(cooldown + 1)
				wantStatus(t, client, bridge.StatusSent)
			})
		})
	}
}

func TestCooldownCountsFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, client := newClient(t)
		service.Script(relaytest.EndpointPush, 1, relaytest.Answer{Delay: 4 * time.Second})
		wantStatus(t, client, bridge.StatusSent) // takes 4 s
		advance(26*time.Second - 1)
		wantStatus(t, client, bridge.StatusDebounced)
		advance(time.Nanosecond)
		wantStatus(t, client, bridge.StatusSent)
	})
}

func TestSimultaneousCallsSendOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, client := newClient(t, bridge.WithCooldown(0))
		release := make(chan struct{})
		service.Script(relaytest.EndpointPush, 1, relaytest.Answer{Hold: release})
		var sent, debounced atomic.Int64
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				switch client.Notify(t.Context(), notification).Status {
				case bridge.StatusSent:
					sent.Add(1)
				case bridge.StatusDebounced:
					debounced.Add(1)
				}
			})
		}
		synctest.Wait()
		close(release)
		wg.Wait()
		if sent.Load() != 1 || debounced.Load() != 19 {
			t.Errorf("%d sent, %d debounced", sent.Load(), debounced.Load())
		}
		wantPushes(t, service, 1)
	})
}

func TestFailureBacksOff(t *testing.T) {
	for _, late := range []time.Duration{0, 1} { // at the boundary, and a nanosecond after it
		t.Run(late.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service, client := newClient(t)
				for range 2 { // a success starts over
					service.Script(relaytest.EndpointPush, relaytest.Always, relaytest.Answer{Status: 400})
					wantStatus(t, client, bridge.StatusFailed)
					for _, wait := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
						advance(wait*time.Second - 1)
						wantStatus(t, client, bridge.StatusDebounced)
						advance(1 + late)
						wantStatus(t, client, bridge.StatusFailed)
					}
					service.ClearScript()
					advance(30 * time.Second)
					wantStatus(t, client, bridge.StatusSent)
					advance(30 * time.Second)
				}
				wantPushes(t, service, 18) // none was repeated by itself
			})
		})
	}
}

func TestFailures(t *testing.T) {
	all := func(targets ...error) func(error) bool {
		return func(err error) bool {
			for _, target := range targets {
				if !errors.Is(err, target) {
					return false
				}
			}
			return true
		}
	}
	relayError := func(status int, message string) func(error) bool {
		return func(err error) bool {
			failed, ok := errors.AsType[*bridge.RelayError](err)
			return ok && failed.StatusCode == status && failed.Message == message
		}
	}
	redirect := relaytest.Answer{Status: 307, Header: http.Header{"Location": {"https://bob:hunter2@new.example/v2?key=topsecret"}}}
	leadsTo := func(url string) func(error) bool {
		return func(err error) bool {
			return relayError(307, "")(err) && strings.Contains(err.Error(), "(redirects are not followed; this one leads to "+url+"; ")
		}
	}
	tests := []struct {
		name     string
		endpoint relaytest.BridgeEndpoint
		answer   relaytest.Answer
		pushes   int
		check    func(error) bool
		level    string
	}{
		{"not ok", relaytest.EndpointPush, relaytest.Answer{Status: 200, Body: `{"ok":false,"error":"no quota"}`}, 1, relayError(200, "no quota"), "WARN"},
		{"refused", relaytest.EndpointPush, relaytest.Answer{Status: 400, Body: `{"ok":false,"error":"missing title"}`}, 1, relayError(400, "missing title"), "WARN"},
		{"down", relaytest.EndpointPush, relaytest.Answer{Status: 503, Body: "upstream\x00 is\r\ndown"}, 1, relayError(503, "upstream  is  down"), "WARN"},
		{"long answer", relaytest.EndpointPush, relaytest.Answer{Status: 500, Body: strings.Repeat("x.", 2000)}, 1, relayError(500, strings.Repeat("x.", 256)), "WARN"},
		{"redirect", relaytest.EndpointPush, redirect, 1, leadsTo("https://new.example/v2"), "WARN"},
		{"no answer", relaytest.EndpointPush, relaytest.Answer{Drop: true}, 1, all(io.EOF), "WARN"},
		{"401", relaytest.EndpointPush, relaytest.Answer{Status: 401, Body: `{"ok":false,"error":"invalid token"}`}, 1, all(bridge.ErrUnauthorized), "WARN"},
		{"wrong credentials", relaytest.EndpointToken, relaytest.Answer{Status: 401, Body: `{"ok":false,"error":"invalid_client"}`}, 0, all(pushauth.ErrInvalidClient), "ERROR"},
		{"relay hangs", relaytest.EndpointPush, relaytest.Answer{Delay: time.Hour}, 1, all(context.DeadlineExceeded), "WARN"},
		{"token service hangs", relaytest.EndpointToken, relaytest.Answer{Delay: time.Hour}, 0, all(context.DeadlineExceeded), "ERROR"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				service, client := newClient(t, bridge.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				service.Script(tt.endpoint, relaytest.Always, tt.answer)
				start := time.Now()
				result := wantStatus(t, client, bridge.StatusFailed)
				if !tt.check(result.Err) {
					t.Errorf("error %v", result.Err)
				}
				wantPushes(t, service, tt.pushes)
				if took := time.Since(start); took > 20*time.Second {
					t.Errorf("took %v", took)
				}
				if !strings.Contains(log.String(), "level="+tt.level+` msg="push notification not sent"`) {
					t.Errorf("log: %s", &log)
				}
				service.ClearScript()
				advance(time.Minute) // even wrong credentials are tried again
				wantStatus(t, client, bridge.StatusSent)
			})
		})
	}
}

// The failure of every device does not use up the cooldown, and is told apart from a relay that does not work.
func TestNoDeviceReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, client := newClient(t)
		mustRegister(t, client, phone)
		service.FailDevice(phone.Token.Reveal(), "TooManyRequests")
		result := wantStatus(t, client, bridge.StatusFailed)
		if !errors.Is(result.Err, bridge.ErrNotDelivered) || len(result.Devices) != 1 || result.Devices[0].Reason != "TooManyRequests" {
			t.Errorf("result %+v", result)
		}
		service.KillDevice(phone.Token.Reveal())
		advance(time.Second)
		result = wantStatus(t, client, bridge.StatusFailed)
		if !errors.Is(result.Err, bridge.ErrNotDelivered) || len(result.Devices) != 1 || result.Devices[0].Status != bridge.DeviceRemoved {
			t.Errorf("result %+v", result)
		}
		advance(2 * time.Second)
		wantStatus(t, client, bridge.StatusSent) // the relay has forgotten the device
	})
}

func TestRotationIsSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, client := newClient(t)
		mustRegister(t, client, phone)
		service.RotateKey()
		if result := wantStatus(t, client, bridge.StatusSent); len(result.Devices) != 1 {
			t.Errorf("result %+v", result)
		}
		if tokens, pushes := service.RequestCount(relaytest.EndpointToken), len(service.Pushes(clientID)); tokens != 2 || pushes != 1 {
			t.Errorf("%d tokens, %d pushes", tokens, pushes)
		}
	})
}

func TestNoDevicesIsASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := newClient(t)
		if result := wantStatus(t, client, bridge.StatusSent); len(result.Devices) != 0 || result.Err != nil {
			t.Errorf("result %+v", result)
		}
		advance(30*time.Second - 1)
		wantStatus(t, client, bridge.StatusDebounced)
	})
}

func TestCallersOwnMistakesCostNobodyElse(t *testing.T) {
	service, client := newClient(t)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for name, result := range map[string]bridge.Result{
		"title": client.Notify(t.Context(), bridge.Notification{Body: "b"}),
		"body":  client.Notify(t.Context(), bridge.Notification{Title: "t"}),
	} {
		if failed, ok := errors.AsType[*bridge.FieldError](result.Err); !ok || failed.Field != name || result.Status != bridge.StatusFailed {
			t.Errorf("%s: result %+v", name, result)
		}
	}
	if result := client.Notify(cancelled, notification); !errors.Is(result.Err, context.Canceled) {
		t.Errorf("cancelled: result %+v", result)
	}
	wantStatus(t, client, bridge.StatusSent) // at once
	wantPushes(t, service, 1)
}

func TestDisabledClient(t *testing.T) {
	partial := config
	partial.ClientSecret, partial.URL = secret.Text{}, ""
	tests := []struct {
		name   string
		config bridge.Config
		log    string
	}{
		{"no table", bridge.Config{}, `level=INFO msg="push notifications disabled" missing="[url token_url client_id client_secret]"`},
		{"half a table", partial, `level=WARN msg="push notifications disabled" missing="[url client_secret]"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var log strings.Builder
			client, err := bridge.New(tt.config, bridge.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if result := client.Notify(t.Context(), notification); result.Status != bridge.StatusDisabled || result.Err != nil {
					t.Errorf("result %+v", result)
				}
				if err := client.Register(t.Context(), bridge.Device{Token: secret.New("t"), Platform: "ios"}); err != nil {
					t.Error(err)
				}
				if err := client.Unregister(t.Context(), secret.New("t")); err != nil {
					t.Error(err)
				}
			}
			if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, tt.log) {
				t.Errorf("log, which should be one line:\n%s", got)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	badURL, badTokenURL := config, config
	badURL.URL = "push.example/hunter2"
	badTokenURL.TokenURL = "https://hunter2@token.example"
	tests := []struct {
		name    string
		config  bridge.Config
		opt     bridge.Option
		problem string
	}{
		{"URL", badURL, quiet, "bridge: url must start with"},
		{"token URL", badTokenURL, quiet, "bridge: token_url must carry no user name"},
		{"HTTP client", config, bridge.WithHTTPClient(nil), "WithHTTPClient"},
		{"nil option", config, nil, "an option is nil"},
		{"cooldown", config, bridge.WithCooldown(-1), "WithCooldown"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := bridge.New(tt.config, tt.opt)
			if err == nil || !strings.Contains(err.Error(), tt.problem) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error %v, want one that says %q", err, tt.problem)
			}
		})
	}
}

// The lines by which a bridge is watched, as the protocol's section "Monitoring" has them.
func TestLogLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		service, config := newService(t)
		client, err := bridge.New(config, bridge.WithHTTPClient(service.Client()), bridge.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{
			Level: slog.LevelDebug,
			ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return a
			},
		}))))
		if err != nil {
			t.Fatal(err)
		}
		mustRegister(t, client, phone)
		wantStatus(t, client, bridge.StatusSent)
		advance(15 * time.Second)
		wantStatus(t, client, bridge.StatusDebounced)
		outbox := newOutbox(t, client, 0)
		send(t, outbox, 1, 1)
		synctest.Wait()
		if err := client.Unregister(t.Context(), phone.Token); err != nil {
			t.Error(err)
		}
		want := strings.Join([]string{
			`level=INFO msg="push notifications enabled" client_id=bridge-home-office relay=` + config.URL,
			`level=INFO msg="fetched push token" client_id=bridge-home-office expires_in=1h0m0s`,
			`level=INFO msg="device registered with the push relay" platform=ios`,
			`level=INFO msg="push notification sent" devices=1`,
			`level=DEBUG msg="push notification debounced" remaining=15s`,
			`level=INFO msg="device unregistered from the push relay"`,
		}, "\n") + "\n"
		if diff := cmp.Diff(want, log.String()); diff != "" {
			t.Error(diff)
		}
	})
}

// A notification that is on its way, and how long the next one must wait, are told apart.
func TestDebounceIsLoggedWhileOneIsOnItsWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		service, client := newClient(t, bridge.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
		service.Script(relaytest.EndpointPush, 1, relaytest.Answer{Delay: time.Second})
		var first sync.WaitGroup
		first.Go(func() { client.Notify(t.Context(), notification) })
		synctest.Wait()
		wantStatus(t, client, bridge.StatusDebounced)
		first.Wait()
		if !strings.Contains(log.String(), `msg="push notification debounced" remaining=0s`) {
			t.Errorf("log: %s", &log)
		}
	})
}

// However long the relay took to fail, it is left alone for a second after that.
func TestBackoffCountsFromTheFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, client := newClient(t)
		service.Script(relaytest.EndpointPush, 1, relaytest.Answer{Status: 400, Delay: 4 * time.Second})
		wantStatus(t, client, bridge.StatusFailed)
		advance(time.Second - 1)
		wantStatus(t, client, bridge.StatusDebounced)
		advance(time.Nanosecond)
		wantStatus(t, client, bridge.StatusSent)
	})
}

// While the token service is left alone it is still what is wrong.
func TestTokenTroubleIsAnErrorWhileItIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		service, client := newClient(t, bridge.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		service.Script(relaytest.EndpointToken, relaytest.Always, relaytest.Answer{Status: 401})
		wantStatus(t, client, bridge.StatusFailed)
		advance(time.Second)
		result := wantStatus(t, client, bridge.StatusFailed)
		if held, ok := errors.AsType[*pushauth.BackoffError](result.Err); !ok || !errors.Is(held, pushauth.ErrInvalidClient) {
			t.Errorf("error %v", result.Err)
		}
		if got := service.RequestCount(relaytest.EndpointToken); got != 1 {
			t.Errorf("%d token requests", got)
		}
		if got := strings.Count(log.String(), `level=ERROR msg="push notification not sent"`); got != 2 {
			t.Errorf("want two errors:\n%s", &log)
		}
	})
}

func TestSuspendedMachineDebouncesNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := newClient(t)
		wantStatus(t, client, bridge.StatusSent)
		wantStatus(t, client, bridge.StatusDebounced)
		client.Sleep(10 * time.Minute)
		wantStatus(t, client, bridge.StatusSent)
	})
}
