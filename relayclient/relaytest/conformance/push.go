package conformance

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// emptyChecks come before all that may register a device.
func emptyChecks() []Check {
	const noDevices = "No devices registered: relay returns success, no-op."
	return []Check{
		{
			Name: "push-no-devices", Part: BridgeRelay, Level: Must, Source: bridgeProtocol, Sentence: noDevices,
			Does: "Pushes before any device is registered. Wants 2xx. If the push meets a device all the same, the suite sends no other, and all that takes a push is not stated: give it a client of its own.",
			run:  aboutPush(func(_ context.Context, _ *session, r response) error { return r.succeeded() }),
		},
		{
			Name: "push-no-devices-answer", Part: BridgeRelay, Level: Open, Source: hostedBridge,
			Sentence: `{"ok":true,"results":[],"message":"No devices registered"}.`,
			Does:     "Pushes without a device. Wants that answer.",
			run: aboutPush(func(_ context.Context, _ *session, r response) error {
				if b := r.decodeBridge(); !b.succeeded() || b.Results == nil || b.Message != "No devices registered" {
					return fmt.Errorf("answered %v", r)
				}
				return nil
			}),
		},
	}
}

func pushChecks() []Check {
	const pushes = `POST /push, Authorization: Bearer <jwt>, {"title":"Agent Name","body":"New activity"}.`
	const results = `Push answers {"ok":true,"results":[{"platform","status":"sent"|"failed"|"removed","reason"}]}.`
	return []Check{
		{
			Name: "push-devices", Part: BridgeRelay, Level: Must, Source: bridgeProtocol, Sentence: pushes,
			Does: "Registers an ios and an android device and pushes. Wants 2xx: what the push services make of devices that nobody has is in the results.",
			run: aboutPushToTwo(func(r response, _ int) error {
				return r.succeeded()
			}),
		},
		{
			Name: "push-results", Part: BridgeRelay, Level: Open, Source: hostedBridge, Sentence: results,
			Does: "Registers an ios and an android device and pushes. Wants a result of each, of one of the three statuses.",
			run:  aboutPushToTwo(statesResults),
		},
		{
			Name: "push-registered-twice", Part: BridgeRelay, Level: Open, Source: bridgeProtocol,
			Sentence: "Store mapping: devices:<client_id> → [device_tokens].",
			Does:     "Registers one device twice, as an app does at every start, and pushes. Wants one result of it.",
			run:      pushesOnce,
		},
		{
			Name: "push-data", Part: BridgeRelay, Level: Must, Source: hostedBridge,
			Sentence: `The push body may carry "data", a string map, beside title and body.`,
			Does:     "Pushes with data. Wants 2xx.",
			run: aboutPush(func(ctx context.Context, s *session, _ response) error {
				body := notification()
				body["data"] = map[string]string{"agent": "conformance", "thread": "1"}
				r, err := s.call(ctx, http.MethodPost, "/push", body)
				if err != nil {
					return err
				}
				return r.succeeded()
			}),
		},
		{
			Name: "push-missing-field", Part: BridgeRelay, Level: Must, Source: hostedBridge, Sentence: "Missing field 400.",
			Does: "Pushes without a title, and without a body. Wants a 4xx.",
			run: refusesCalls(http.MethodPost, "/push", func() []any {
				return []any{map[string]any{"body": "No device should show this."}, map[string]any{"title": "Conformance"}}
			}),
		},
		{
			Name: "bridge-health", Part: BridgeRelay, Level: Open, Source: hostedBridge, Sentence: "GET /health.",
			Does: "Asks both services for /health. Wants 2xx.",
			run: func(ctx context.Context, s *session) error {
				for _, base := range []string{s.target.Bridge.TokenURL, s.target.Bridge.RelayURL} {
					r, err := s.send(ctx, request{method: http.MethodGet, url: base + "/health"})
					if err == nil {
						err = r.succeeded()
					}
					if err != nil {
						return err
					}
				}
				return nil
			},
		},
	}
}

func notification() map[string]any {
	return map[string]any{"title": "Conformance", "body": "A check of the push relay."}
}

// push pushes, unless the first push of the session met devices.
func (s *session) push(ctx context.Context) (response, error) {
	if s.bridge.devices != nil && s.bridge.devices.err != nil {
		return response{}, s.bridge.devices.err
	}
	r, err := s.call(ctx, http.MethodPost, "/push", notification())
	if err != nil || s.bridge.devices != nil {
		return r, err
	}
	s.bridge.devices = &deviceProblem{}
	if n := len(r.decodeBridge().Results); n > 0 {
		s.bridge.devices.err = unknown("a first push met %d devices that the suite has not registered: give it a client of its own", n)
	}
	return r, s.bridge.devices.err
}

// aboutPush makes a check of the answer to a push.
func aboutPush(expect func(context.Context, *session, response) error) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		r, err := s.push(ctx)
		if err != nil {
			return err
		}
		return expect(ctx, s, r)
	}
}

// deviceCount is how many devices a push meets that are not removed by it. It
// is an *unknownError if the relay does not say.
func (s *session) deviceCount(ctx context.Context) (int, error) {
	r, err := s.push(ctx)
	if err != nil {
		return 0, err
	}
	results := r.decodeBridge().Results
	if results == nil {
		return 0, unknown("the relay does not state the results of a push: answered %v", r)
	}
	results = slices.DeleteFunc(results, func(r pushResult) bool { return r.Status == "removed" })
	return len(results), nil
}

// aboutPushToTwo makes a check of the answer to a push that meets an ios and an
// android device, beside those that were there before.
func aboutPushToTwo(expect func(r response, before int) error) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		before, err := s.deviceCount(ctx) // not stating it does not matter here
		if s.bridge.devices == nil || s.bridge.devices.err != nil {
			return err
		}
		for _, platform := range []string{"ios", "android"} {
			_, unregister, err := s.register(ctx, newBridgeDevice(platform))
			if err != nil {
				return unknown("there is no device to push to: %v", err)
			}
			defer unregister()
		}
		r, err := s.push(ctx)
		if err != nil {
			return err
		}
		return expect(r, before)
	}
}

func statesResults(r response, before int) error {
	body := r.decodeBridge()
	if !body.succeeded() || len(body.Results) != before+2 {
		return fmt.Errorf("want the results of two devices more than the %d before; answered %v", before, r)
	}
	var platforms []string
	for _, result := range body.Results {
		platforms = append(platforms, result.Platform)
		if !slices.Contains([]string{"sent", "failed", "removed"}, result.Status) {
			return fmt.Errorf("a result with the status %q", result.Status)
		}
		if result.Status != "sent" && result.Reason == "" {
			return fmt.Errorf("a result with the status %q and no reason", result.Status)
		}
	}
	if !slices.Contains(platforms, "ios") || !slices.Contains(platforms, "android") {
		return fmt.Errorf("results for %s; want ios and android", strings.Join(platforms, ", "))
	}
	return nil
}

func pushesOnce(ctx context.Context, s *session) error {
	before, err := s.deviceCount(ctx)
	if err != nil {
		return err
	}
	device := newBridgeDevice("ios")
	for range 2 {
		_, unregister, err := s.register(ctx, device)
		if err != nil {
			return unknown("there is no device to push to: %v", err)
		}
		defer unregister()
	}
	r, err := s.push(ctx)
	if err != nil {
		return err
	}
	if n := len(r.decodeBridge().Results) - before; n != 1 {
		return fmt.Errorf("a device that was registered twice has %d results", n)
	}
	return nil
}
