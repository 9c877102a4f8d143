package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// bridgeState is what a session knows of the bridge half.
type bridgeState struct {
	token     *bridgeToken   // nil until it was fetched
	devices   *deviceProblem // nil until the first push
	platforms *platforms     // nil until they were tried
}

// A deviceProblem is why the suite must not push, if err is not nil.
type deviceProblem struct{ err error }

// A bridgeDevice has a made-up device token.
type bridgeDevice struct{ token, platform string }

func newBridgeDevice(platform string) bridgeDevice { return bridgeDevice{randomHex(64), platform} }

func (d bridgeDevice) registration() map[string]any {
	return map[string]any{"device_token": d.token, "platform": d.platform, "bundle_id": "com.example.conformance"}
}

func (d bridgeDevice) unregistration() map[string]any {
	return map[string]any{"device_token": d.token}
}

// call makes a request to the push relay with the session's token. Body is encoded as JSON unless it is a []byte.
func (s *session) call(ctx context.Context, method, path string, body any) (response, error) {
	token, err := s.fetchToken(ctx)
	if err != nil {
		return response{}, err
	}
	encoded, raw := body.([]byte)
	if !raw {
		encoded = encodeJSON(body)
	}
	return s.send(ctx, request{
		method: method, url: s.target.Bridge.RelayURL + path, bearer: token.answer.AccessToken, body: encoded,
	})
}

func (r response) succeeded() error {
	if r.status/100 == 2 {
		return nil
	}
	return fmt.Errorf("want 2xx; answered %v", r)
}

// register registers a device, to be unregistered by the function it returns.
func (s *session) register(ctx context.Context, d bridgeDevice) (r response, unregister func(), err error) {
	r, err = s.call(ctx, http.MethodPost, "/register", d.registration())
	if err == nil {
		err = r.succeeded()
	}
	if err != nil {
		return r, func() {}, err
	}
	return r, func() {
		s.call(context.WithoutCancel(ctx), http.MethodDelete, "/register", d.unregistration())
	}, nil
}

// registerAny registers a device of a platform that the relay serves.
func (s *session) registerAny(ctx context.Context) (r response, d bridgeDevice, unregister func(), err error) {
	for _, platform := range []string{"ios", "android"} {
		d = newBridgeDevice(platform)
		if r, unregister, err = s.register(ctx, d); err == nil {
			break
		}
	}
	return r, d, unregister, err
}

// A bridgeAnswer is what the hosted bridge relay answers with.
type bridgeAnswer struct {
	OK      *bool        `json:"ok"`
	Message string       `json:"message"`
	Error   string       `json:"error"`
	Results []pushResult `json:"results"` // nil if there are none
}

type pushResult struct {
	Platform string `json:"platform"`
	Status   string `json:"status"`
	Reason   string `json:"reason"`
}

// decodeBridge is zero for a body of another shape.
func (r response) decodeBridge() bridgeAnswer {
	var body bridgeAnswer
	if json.Unmarshal(r.body, &body) != nil {
		return bridgeAnswer{}
	}
	return body
}

// succeeded reports whether the body says that all is well.
func (b bridgeAnswer) succeeded() bool { return b.OK != nil && *b.OK }

// failed is the error that the body states, if it is one of failure.
func (b bridgeAnswer) failed() string {
	if b.OK == nil || *b.OK {
		return ""
	}
	return b.Error
}

func registerChecks() []Check {
	const registers = `Bridge → cf-push-relay: POST /register, Authorization: Bearer <jwt>, {"device_token","platform","bundle_id"}.`
	const unregisters = `Bridge → cf-push-relay: DELETE /register, Authorization: Bearer <jwt>, {"device_token"}.`
	const platforms = "Platform must be ios or android; missing field 400."
	return []Check{
		{
			Name: "register-ios", Part: BridgeRelay, Level: Must, Source: bridgeProtocol, Sentence: registers,
			Does: "Registers an ios device, with its bundle id. Wants 2xx. Not stated if the relay refuses it with a 4xx and registers android devices: it does not serve ios.",
			run:  registersDevice("ios", "android"),
		},
		{
			Name: "register-android", Part: BridgeRelay, Level: Must, Source: hostedBridge, Sentence: platforms,
			Does: "Registers an android device. Wants 2xx. Not stated if the relay refuses it with a 4xx and registers ios devices: it does not serve android.",
			run:  registersDevice("android", "ios"),
		},
		{
			Name: "register-no-token", Part: BridgeRelay, Level: Must, Source: hostedBridge, Sentence: platforms,
			Does: "Registers without a device_token, and with an empty one. Wants a 4xx.",
			run: refusesCalls(http.MethodPost, "/register", func() []any {
				return []any{map[string]any{"platform": "ios"}, map[string]any{"platform": "ios", "device_token": ""}}
			}),
		},
		{
			Name: "register-platform", Part: BridgeRelay, Level: Must, Source: hostedBridge, Sentence: platforms,
			Does: "Registers without a platform, and for apns and windows. Wants a 4xx: apns is what an app says to its bridge, and the bridge says ios.",
			run: refusesCalls(http.MethodPost, "/register", func() []any {
				d := newBridgeDevice("apns")
				return []any{d.unregistration(), d.registration(), newBridgeDevice("windows").registration()}
			}),
		},
		{
			Name: "register-answer", Part: BridgeRelay, Level: Open, Source: hostedBridge,
			Sentence: `Bodies answer {"ok":true,"message":…} or {"ok":false,"error":…}.`,
			Does:     "Registers a device, and registers nothing. Wants the two answers.",
			run:      answersRegistration,
		},
		{
			Name: "register-status-400", Part: BridgeRelay, Level: Open, Source: hostedBridge, Sentence: platforms,
			Does: "Registers with an object without members. Wants 400. That it is refused is a MUST, with which 4xx is not.",
			run: func(ctx context.Context, s *session) error {
				r, err := s.call(ctx, http.MethodPost, "/register", map[string]any{})
				if err != nil {
					return err
				}
				return wantStatus(http.StatusBadRequest)(r)
			},
		},
		{
			Name: "unregister", Part: BridgeRelay, Level: Must, Source: bridgeProtocol, Sentence: unregisters,
			Does: "Registers a device and unregisters it. Wants 2xx, and no more results of a push than before, if the relay states results.",
			run:  unregistersDevice,
		},
		{
			Name: "unregister-no-token", Part: BridgeRelay, Level: Must, Source: hostedBridge,
			Sentence: "Missing field 400.",
			Does:     "Unregisters without a device_token. Wants a 4xx.",
			run: refusesCalls(http.MethodDelete, "/register", func() []any {
				return []any{map[string]any{"platform": "ios"}}
			}),
		},
		{
			Name: "bridge-not-json", Part: BridgeRelay, Level: Must, Source: bridgeProtocol,
			Sentence: "Content-Type: application/json",
			Does:     "Registers, unregisters and pushes with a body that is not JSON. Wants a 4xx each time.",
			run: func(ctx context.Context, s *session) error {
				for _, call := range [][2]string{{http.MethodPost, "/register"}, {http.MethodDelete, "/register"}, {http.MethodPost, "/push"}} {
					if err := s.refusesCall(ctx, call[0], call[1], []byte("device_token=1")); err != nil {
						return err
					}
				}
				return nil
			},
		},
	}
}

// registersDevice makes a check of registering a device. A relay that registers another platform alone does not serve
// this one.
func registersDevice(platform, other string) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		r, unregister, err := s.register(ctx, newBridgeDevice(platform))
		defer unregister()
		if err == nil || r.refused() != nil {
			return err
		}
		_, unregisterOther, otherErr := s.register(ctx, newBridgeDevice(other))
		defer unregisterOther()
		if otherErr != nil {
			return err
		}
		return unknown("the relay registers %s devices and not %s: answered %v", other, platform, r)
	}
}

func answersRegistration(ctx context.Context, s *session) error {
	r, _, unregister, err := s.registerAny(ctx)
	if err != nil {
		return err
	}
	defer unregister()
	if body := r.decodeBridge(); !body.succeeded() || body.Message == "" {
		return fmt.Errorf("a registration was answered %v", r)
	}
	if r, err = s.call(ctx, http.MethodPost, "/register", map[string]any{}); err != nil {
		return err
	}
	if r.decodeBridge().failed() == "" {
		return fmt.Errorf("the registration of nothing was answered %v", r)
	}
	return nil
}

func unregistersDevice(ctx context.Context, s *session) error {
	before, stated := s.deviceCount(ctx)
	_, device, _, err := s.registerAny(ctx)
	if err != nil {
		return unknown("there is no device to unregister: %v", err)
	}
	r, err := s.call(ctx, http.MethodDelete, "/register", device.unregistration())
	if err == nil {
		err = r.succeeded()
	}
	if err != nil || stated != nil {
		return err // what can be seen without a push
	}
	after, err := s.deviceCount(ctx)
	if err != nil {
		return err
	}
	if after > before {
		return fmt.Errorf("a push met %d devices before and %d after", before, after)
	}
	return nil
}

func refusesCalls(method, path string, bodies func() []any) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		for _, body := range bodies() {
			if err := s.refusesCall(ctx, method, path, body); err != nil {
				return err
			}
		}
		return nil
	}
}

func (s *session) refusesCall(ctx context.Context, method, path string, body any) error {
	r, err := s.call(ctx, method, path, body)
	if err == nil {
		err = r.refused()
	}
	if err != nil {
		return fmt.Errorf("%s %s with the members %v: %w", method, path, membersOf(body), err)
	}
	return nil
}

// membersOf names what a refused body has, without its values.
func membersOf(body any) (names []string) {
	members, _ := body.(map[string]any)
	for _, name := range []string{"device_token", "platform", "bundle_id", "title", "body"} {
		if _, has := members[name]; has {
			names = append(names, name)
		}
	}
	return names
}
