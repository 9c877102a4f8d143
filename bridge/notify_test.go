package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sealpush/sealpush/bridge"
	"github.com/sealpush/sealpush/pushauth"
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
	service := &service{}
	service.set(say(200, `{"ok":true,"results":[
		{"platform":"ios","status":"sent"},
		{"platform":"ios","status":"removed","reason":"Unregistered"},
		{"platform":"android","status":"failed","reason":"UNAVAILABLE\u001b[31m"}]}`))
	var log strings.Builder
	client := newClient(t, service, bridge.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	result := client.Notify(t.Context(), bridge.Notification{Title: "Agent Name", Body: "New activity", Data: map[string]string{"a": "b"}})
	want := bridge.Result{Status: bridge.StatusSent, Devices: []bridge.DeviceResult{
		{Platform: "ios", Status: bridge.DeviceSent},
		{Platform: "ios", Status: bridge.DeviceRemoved, Reason: "Unregistered"},
		{Platform: "android", Status: bridge.DeviceFailed, Reason: "UNAVAILABLE [31m"},
	}}
	if diff := cmp.Diff(want, result); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`POST /push {"title":"Agent Name","body":"New activity","data":{"a":"b"}}`}, service.requests()); diff != "" {
		t.Error(diff)
	}
	if got := strings.Count(log.String(), "level=WARN"); got != 2 || !strings.Contains(log.String(), "reason=Unregistered") {
		t.Errorf("want a warning for each of the two devices not reached, got:\n%s", &log)
	}
}

// The line of the document: sent, dropped, dropped, sent.
func TestDebounceAsInTheDocument(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &service{}
		client := newClient(t, service)
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
			time.Sleep(step.at - time.Since(start))
			wantStatus(t, client, step.want)
		}
		if got := len(service.requests()); got != 2 {
			t.Errorf("the relay saw %d pushes", got)
		}
	})
}

func TestDebounceBoundary(t *testing.T) {
	for _, cooldown := range []time.Duration{bridge.DefaultCooldown, time.Second} {
		t.Run(cooldown.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newClient(t, &service{}, bridge.WithCooldown(cooldown))
				wantStatus(t, client, bridge.StatusSent)
				time.Sleep(cooldown - 1)
				wantStatus(t, client, bridge.StatusDebounced)
				time.Sleep(1)
				wantStatus(t, client, bridge.StatusSent)
				time.Sleep(cooldown + 1)
				wantStatus(t, client, bridge.StatusSent)
			})
		})
	}
}

func TestCooldownCountsFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &service{}
		service.set(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(4 * time.Second)
			say(200, `{"ok":true,"results":[{"platform":"ios","status":"sent"}]}`)(w, r)
		})
		client := newClient(t, service)
		wantStatus(t, client, bridge.StatusSent) // takes 4 s
		time.Sleep(26*time.Second - 1)
		wantStatus(t, client, bridge.StatusDebounced)
		time.Sleep(1)
		wantStatus(t, client, bridge.StatusSent)
	})
}

func TestSimultaneousCallsSendOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, release := &service{}, make(chan struct{})
		service.set(func(w http.ResponseWriter, r *http.Request) {
			<-release
			say(200, `{"ok":true,"results":[{"platform":"ios","status":"sent"}]}`)(w, r)
		})
		client := newClient(t, service, bridge.WithCooldown(0))
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
		if sent.Load() != 1 || debounced.Load() != 19 || len(service.requests()) != 1 {
			t.Errorf("%d sent, %d debounced", sent.Load(), debounced.Load())
		}
	})
}

func TestFailureBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &service{}
		client := newClient(t, service)
		for range 2 { // a success starts over
			service.set(say(502, `bad gateway`))
			wantStatus(t, client, bridge.StatusFailed)
			for _, wait := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
				time.Sleep(wait*time.Second - 1)
				wantStatus(t, client, bridge.StatusDebounced)
				time.Sleep(1)
				wantStatus(t, client, bridge.StatusFailed)
			}
			service.set(nil)
			time.Sleep(30 * time.Second)
			wantStatus(t, client, bridge.StatusSent)
			time.Sleep(30 * time.Second)
		}
		if got := len(service.requests()); got != 18 {
			t.Errorf("the relay saw %d pushes: a push was repeated", got)
		}
	})
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
	tests := []struct {
		name     string
		relay    http.HandlerFunc
		token    http.HandlerFunc
		requests int
		check    func(error) bool
		level    string
	}{
		{"every device failed", say(200, `{"ok":true,"results":[{"platform":"ios","status":"failed","reason":"BadTopic"}]}`), nil, 1, all(bridge.ErrNotDelivered), "WARN"},
		{"every device removed", say(200, `{"ok":true,"results":[{"platform":"ios","status":"removed","reason":"Unregistered"}]}`), nil, 1, all(bridge.ErrNotDelivered), "WARN"},
		{"not ok", say(200, `{"ok":false,"error":"no quota"}`), nil, 1, relayError(200, "no quota"), "WARN"},
		{"refused", say(400, `{"ok":false,"error":"missing title"}`), nil, 1, relayError(400, "missing title"), "WARN"},
		{"down", say(503, "upstream\x00 is\r\ndown"), nil, 1, relayError(503, "upstream  is  down"), "WARN"},
		{"long answer", say(500, strings.Repeat("x", 4000)), nil, 1, relayError(500, strings.Repeat("x", 512)), "WARN"},
		{"captive portal", say(200, `<html>`), nil, 1, relayError(200, "<html>"), "WARN"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "https://elsewhere.example/")
			w.WriteHeader(307)
		}, nil, 1, relayError(307, ""), "WARN"},
		{"401 twice", say(401, `{"ok":false,"error":"invalid token"}`), nil, 2, all(bridge.ErrUnauthorized), "WARN"},
		{"echoes the token", func(w http.ResponseWriter, r *http.Request) {
			say(400, "bad "+r.Header.Get("Authorization"))(w, r)
		}, nil, 1, relayError(400, "bad Bearer [redacted]"), "WARN"},
		{"wrong credentials", nil, say(401, `{"ok":false,"error":"invalid_client"}`), 0, all(pushauth.ErrInvalidClient), "ERROR"},
		{"relay hangs", hang, nil, 1, all(context.DeadlineExceeded), "WARN"},
		{"token service hangs", nil, hang, 0, all(context.DeadlineExceeded), "ERROR"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service := &service{}
				service.set(tt.relay)
				service.setToken(tt.token)
				var log strings.Builder
				client := newClient(t, service, bridge.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				start := time.Now()
				result := wantStatus(t, client, bridge.StatusFailed)
				if !tt.check(result.Err) {
					t.Errorf("error %v", result.Err)
				}
				if got := len(service.requests()); got != tt.requests {
					t.Errorf("the relay saw %d requests, want %d", got, tt.requests)
				}
				if took := time.Since(start); took > 20*time.Second {
					t.Errorf("took %v", took)
				}
				if !strings.Contains(log.String(), "level="+tt.level+` msg="push notification not sent"`) {
					t.Errorf("log: %s", &log)
				}
				text := log.String() + fmt.Sprintf("%v %+v", result.Err, result)
				for _, secret := range []string{config.ClientSecret, "tok-1"} {
					if strings.Contains(text, secret) {
						t.Errorf("shows %s:\n%s", secret, text)
					}
				}
				time.Sleep(time.Second) // the failure did not use up the cooldown
				service.set(nil)
				service.setToken(nil)
				time.Sleep(time.Minute)
				wantStatus(t, client, bridge.StatusSent)
			})
		})
	}
}

func TestNoDevicesIsASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &service{}
		service.set(say(200, `{"ok":true,"results":[],"message":"No devices registered"}`))
		client := newClient(t, service)
		if result := wantStatus(t, client, bridge.StatusSent); len(result.Devices) != 0 || result.Err != nil {
			t.Errorf("result %+v", result)
		}
		time.Sleep(30*time.Second - 1)
		wantStatus(t, client, bridge.StatusDebounced)
	})
}

func TestCallersOwnMistakesCostNobodyElse(t *testing.T) {
	service := &service{}
	client := newClient(t, service)
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
	if got := len(service.requests()); got != 1 {
		t.Errorf("the relay saw %d requests", got)
	}
}

func TestDisabledClient(t *testing.T) {
	partial := config
	partial.ClientSecret, partial.URL = "", ""
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
				if err := client.Register(t.Context(), bridge.Device{Token: "t", Platform: "ios"}); err != nil {
					t.Error(err)
				}
				if err := client.Unregister(t.Context(), "t"); err != nil {
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
		{"HTTP client", config, bridge.WithHTTPClient(nil), "HTTP client is nil"},
		{"logger", config, bridge.WithLogger(nil), "logger is nil"},
		{"cooldown", config, bridge.WithCooldown(-1), "cooldown is negative"},
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
