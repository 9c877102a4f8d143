package bridge_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/sealpush/sealpush/bridge"
	"github.com/sealpush/sealpush/pushauth"
)

var phone = bridge.Device{Token: "hunter2-device-token", Platform: "apns"}

func TestRegisterRetriesTransientFailures(t *testing.T) {
	tests := []struct {
		name     string
		relay    http.HandlerFunc // until the third request
		token    http.HandlerFunc
		requests int
		want     error // nil for a registration
	}{
		{"down for a moment", say(503, ``), nil, 3, nil},
		{"refused", say(400, `{"ok":false,"error":"missing platform for hunter2-device-token"}`), nil, 1, new(bridge.RelayError)},
		{"not ok", say(200, `{"ok":false}`), nil, 1, new(bridge.RelayError)},
		{"slow down", say(429, ``), nil, 1, new(bridge.RelayError)},
		{"wrong credentials", nil, say(401, ``), 0, new(pushauth.TokenError)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service, requests := &service{token: tt.token}, 0
				service.set(func(w http.ResponseWriter, r *http.Request) {
					if requests++; requests < 3 {
						tt.relay(w, r)
						return
					}
					say(200, `{"ok":true,"message":"Registered"}`)(w, r)
				})
				err := newClient(t, service).Register(t.Context(), phone)
				switch tt.want.(type) {
				case nil:
					if err != nil {
						t.Error(err)
					}
				case *bridge.RelayError:
					if _, ok := errors.AsType[*bridge.RelayError](err); !ok {
						t.Errorf("error %v", err)
					}
				case *pushauth.TokenError:
					if _, ok := errors.AsType[*pushauth.TokenError](err); !ok || service.tokens != 1 {
						t.Errorf("error %v after %d token requests", err, service.tokens)
					}
				}
				if err != nil && strings.Contains(err.Error(), "hunter2") {
					t.Errorf("error shows the device token: %v", err)
				}
				if requests != tt.requests {
					t.Errorf("the relay saw %d requests, want %d", requests, tt.requests)
				}
			})
		})
	}
}

func TestRegisterAndUnregisterUseOneToken(t *testing.T) {
	service := &service{}
	service.set(say(200, `{"ok":true,"message":"done"}`))
	client := newClient(t, service)
	if err := client.Register(t.Context(), phone); err != nil {
		t.Error(err)
	}
	if err := client.Unregister(t.Context(), phone.Token); err != nil {
		t.Error(err)
	}
	want := []string{
		`POST /register {"device_token":"hunter2-device-token","platform":"ios"}`,
		`DELETE /register {"device_token":"hunter2-device-token"}`,
	}
	if diff := cmp.Diff(want, service.requests()); diff != "" {
		t.Error(diff)
	}
	if service.tokens != 1 {
		t.Errorf("%d token requests", service.tokens)
	}
}
