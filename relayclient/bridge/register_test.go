package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sealpush/sealpush/pushauth"
	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

func TestRegisterRetriesTransientFailures(t *testing.T) {
	tests := []struct {
		name     string
		endpoint relaytest.BridgeEndpoint
		answer   relaytest.Answer
		times    int // how often that answer is given before the service works
		requests int
		want     error // nil for a registration
	}{
		{"down for a moment", relaytest.EndpointRegister, relaytest.Answer{Status: 503}, 2, 3, nil},
		{"connection lost", relaytest.EndpointRegister, relaytest.Answer{Drop: true}, 1, 2, nil},
		{"down for long", relaytest.EndpointRegister, relaytest.Answer{Status: 503}, 9, 4, new(bridge.RelayError)},
		{"refused", relaytest.EndpointRegister, relaytest.Answer{Status: 400}, 1, 1, new(bridge.RelayError)},
		{"not ok", relaytest.EndpointRegister, relaytest.Answer{Status: 200, Body: `{"ok":false}`}, 1, 1, new(bridge.RelayError)},
		{"slow down", relaytest.EndpointRegister, relaytest.Answer{Status: 429}, 1, 1, new(bridge.RelayError)},
		{"wrong credentials", relaytest.EndpointToken, relaytest.Answer{Status: 401}, 1, 0, new(pushauth.TokenError)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service, client := newClient(t)
				service.Script(tt.endpoint, tt.times, tt.answer)
				start := time.Now()
				err := client.Register(t.Context(), phone)
				if took := time.Since(start); tt.endpoint == relaytest.EndpointToken && took != 0 {
					t.Errorf("retried for %v what the token service had decided", took)
				}
				if got := fmt.Sprintf("%T", tt.want); tt.want == nil && err != nil || tt.want != nil && !strings.Contains(chain(err), got) {
					t.Errorf("error %v (%s), want %s", err, chain(err), got)
				}
				if got := service.RequestCount(relaytest.EndpointRegister); got != tt.requests {
					t.Errorf("the relay saw %d requests, want %d", got, tt.requests)
				}
				if got := len(service.Devices(clientID)); (got == 1) != (tt.want == nil) {
					t.Errorf("%d devices are registered", got)
				}
				if got := service.RequestCount(relaytest.EndpointToken); got != 1 {
					t.Errorf("%d token requests", got)
				}
			})
		})
	}
}

func TestRegisterSurvivesARotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, client := newClient(t)
		mustRegister(t, client, phone)
		service.RotateKey()
		mustRegister(t, client, bridge.Device{Token: secret.New("another"), Platform: "fcm"})
		if registers, tokens := service.RequestCount(relaytest.EndpointRegister), service.RequestCount(relaytest.EndpointToken); registers != 3 || tokens != 2 {
			t.Errorf("%d requests to the relay and %d for tokens", registers, tokens)
		}
	})
}

// Eight phones register at once with a relay that reads, changes and writes its list, and two of them leave: none is lost, and
// none stays.
func TestRegistrationsGoOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, config := newService(t, relaytest.WithLossyRegistrations())
		client, err := bridge.New(config, quiet, bridge.WithHTTPClient(service.Client()))
		if err != nil {
			t.Fatal(err)
		}
		mustRegister(t, client, bridge.Device{Token: secret.New("old-1"), Platform: "ios"}, bridge.Device{Token: secret.New("old-2"), Platform: "ios"})
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				if err := client.Register(t.Context(), bridge.Device{Token: secret.New(fmt.Sprint("new-", i)), Platform: "fcm"}); err != nil {
					t.Error(err)
				}
			})
		}
		for _, token := range []string{"old-1", "old-2"} {
			wg.Go(func() {
				if err := client.Unregister(t.Context(), secret.New(token)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		devices := service.Devices(clientID)
		for _, device := range devices {
			if !strings.HasPrefix(device.Token.Reveal(), "new-") {
				t.Errorf("%s is still registered", device.Token.Reveal())
			}
		}
		if len(devices) != 8 {
			t.Errorf("%d devices are registered, want 8", len(devices))
		}
	})
}

// One that waits for others gives up with its context.
func TestRegistrationDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, client := newClient(t)
		service.Script(relaytest.EndpointRegister, 1, relaytest.Answer{Delay: time.Hour})
		start := time.Now()
		var first sync.WaitGroup
		first.Go(func() { client.Register(t.Context(), phone) })
		synctest.Wait()
		if err := client.Unregister(t.Context(), phone.Token); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took != 20*time.Second {
			t.Errorf("took %v", took)
		}
		first.Wait()
	})
}

// chain names the types of the errors within err.
func chain(err error) string {
	var types []string
	for ; err != nil; err = errors.Unwrap(err) {
		types = append(types, fmt.Sprintf("%T", err))
	}
	return strings.Join(types, " ")
}

func TestRegisterRefusesBadDevices(t *testing.T) {
	tests := []struct {
		field  string
		device bridge.Device
	}{
		{"deviceToken", bridge.Device{Platform: "ios"}},
		{"deviceToken", bridge.Device{Token: secret.New("hunter2\n"), Platform: "ios"}},
		{"deviceToken", bridge.Device{Token: secret.New("hunter2\xff"), Platform: "ios"}},
		{"platform", bridge.Device{Token: secret.New("hunter2")}},
		{"platform", bridge.Device{Token: secret.New("hunter2"), Platform: "windows"}},
		{"bundleId", bridge.Device{Token: secret.New("hunter2"), Platform: "ios", BundleID: "com example"}},
	}
	service, client := newClient(t)
	for _, tt := range tests {
		err := client.Register(t.Context(), tt.device)
		if failed, ok := errors.AsType[*bridge.FieldError](err); !ok || failed.Field != tt.field || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v: error %v", tt.device, err)
		}
	}
	if failed, ok := errors.AsType[*bridge.FieldError](client.Unregister(t.Context(), secret.New(""))); !ok || failed.Field != "deviceToken" {
		t.Errorf("Unregister: %v", failed)
	}
	if service.RequestCount(relaytest.EndpointToken) != 0 {
		t.Error("a service was asked")
	}
}

func TestTwoBridgesDoNotSeeEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, alice := newClient(t)
		bob, err := bridge.New(bridge.Config{
			URL: service.RelayURL, TokenURL: service.TokenURL, ClientID: "bridge-bob", ClientSecret: service.AddClient("bridge-bob"),
		}, quiet, bridge.WithHTTPClient(service.Client()))
		if err != nil {
			t.Fatal(err)
		}
		mustRegister(t, alice, phone)
		if err := bob.Unregister(t.Context(), phone.Token); err != nil {
			t.Error(err)
		}
		if got := len(service.Devices(clientID)); got != 1 {
			t.Errorf("%d devices are left", got)
		}
		if result := wantStatus(t, bob, bridge.StatusSent); len(result.Devices) != 0 {
			t.Errorf("bob reached %v", result.Devices)
		}
		advance(time.Second)
		if result := wantStatus(t, alice, bridge.StatusSent); len(result.Devices) != 1 { // each has a debounce of its own
			t.Errorf("alice reached %v", result.Devices)
		}
	})
}

// What goes over the wire, to the byte.
func TestRequests(t *testing.T) {
	var seen []string
	client := plainClient(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Authorization") != "Bearer tok" {
			t.Errorf("headers %v, error %v", r.Header, err)
		}
		seen = append(seen, fmt.Sprintf("%s %s %s", r.Method, r.URL, body))
		io.WriteString(w, `{"ok":true,"message":"done"}`)
	})
	mustRegister(t, client, phone, bridge.Device{Token: secret.New("t"), Platform: "fcm", BundleID: "com.aptove.android"})
	if err := client.Unregister(t.Context(), secret.New("t")); err != nil {
		t.Error(err)
	}
	wantStatus(t, client, bridge.StatusSent)
	want := []string{
		`POST https://push.example/register {"device_token":"hunter2-device-token","platform":"ios"}`,
		`POST https://push.example/register {"device_token":"t","platform":"android","bundle_id":"com.aptove.android"}`,
		`DELETE https://push.example/register {"device_token":"t"}`,
		`POST https://push.example/push {"title":"Agent Name","body":"New activity"}`,
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

func TestErrorsHideWhatTheRelayEchoes(t *testing.T) {
	client := plainClient(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, "cannot read %s: ", r.Header.Get("Authorization"))
		io.Copy(w, r.Body)
	})
	err := client.Register(t.Context(), phone)
	if text := fmt.Sprintf("%v %#v", err, err); strings.Contains(text, "hunter2") || strings.Contains(text, "Bearer tok") {
		t.Errorf("shows a secret: %s", text)
	}
	if !strings.Contains(err.Error(), "cannot read") {
		t.Errorf("error lost what the relay said: %v", err)
	}
}

// plainClient has a handler for a relay, and the token "tok".
func plainClient(t *testing.T, relay http.HandlerFunc, opts ...bridge.Option) *bridge.Client {
	t.Helper()
	opts = append([]bridge.Option{quiet, bridge.WithHTTPClient(&http.Client{Transport: handlerTransport(
		func(w http.ResponseWriter, r *http.Request) {
			if r.URL.String() == "https://token.example/token" {
				io.WriteString(w, `{"access_token":"tok","token_type":"Bearer","expires_in":3600}`)
				return
			}
			relay(w, r)
		})})}, opts...)
	client, err := bridge.New(config, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

type handlerTransport http.HandlerFunc

func (h handlerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	h(w, req)
	req.Body.Close()
	resp := w.Result()
	resp.Request = req
	return resp, nil
}

func TestResultsHideWhatTheRelayEchoes(t *testing.T) {
	client := plainClient(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"ok":true,"results":[{"platform":"ios","status":"failed","reason":"cannot use tok"}]}`)
	})
	result := client.Notify(t.Context(), notification)
	if len(result.Devices) != 1 || result.Devices[0].Reason != "cannot use [redacted]" {
		t.Errorf("got %+v", result)
	}
}

func TestRegistrationsThatAreAnswered(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		body   string
		ok     bool
	}{
		"204":              {204, "", true},
		"200":              {200, `{"ok":true}`, true},
		"byte order mark":  {200, "\uFEFF" + `{"ok":true}`, true},
		"without ok":       {201, `{"message":"Device registered"}`, true},
		"other types":      {200, `{"ok":true,"results":7,"error":null}`, true},
		"not ok":           {200, `{"ok":false}`, false},
		"nothing":          {200, "", false},
		"a page":           {200, "<html>", false},
		"not an object":    {200, "null", false},
		"an answer of 3xx": {302, `{"ok":true}`, false},
	} {
		client := plainClient(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.status)
			io.WriteString(w, tt.body)
		})
		if err := client.Register(t.Context(), phone); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
