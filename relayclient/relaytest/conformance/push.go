package conformance

import (
	"context"
	"errors"
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
			Does: "Pushes before any device is registered. Wants 2xx. If the push meets a device, the client is in use: the suite makes no other push, and the checks that need one are not stated.",
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
		{
			Name: "push-devices", Part: BridgeRelay, Level: Must, Source: bridgeProtocol, Sentence: pushes,
			Does: "Registers a device of each platform that the relay serves, ios and android, and pushes. Wants 2xx: the results say that the push services do not know the devices. Each platform is pushed to by itself first. Not stated if the relay does not register one of them, or answers 5xx, which may be its push service. If it serves neither, it cannot be checked.",
			run:  pushesToDevices,
		},
		{
			Name: "push-results", Part: BridgeRelay, Level: Open, Source: hostedBridge, Sentence: results,
			Does: "Registers a device of each platform that the relay serves and pushes. Wants a result of each, of one of the three statuses.",
			run:  statesResults,
		},
		{
			Name: "push-registered-twice", Part: BridgeRelay, Level: Open, Source: bridgeProtocol,
			Sentence: "Store mapping: devices:<client_id> → [device_tokens].",
			Does:     "Registers one device twice, as an app does at every start, and pushes. Wants one result of it.",
			run:      pushesOnce,
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

// deviceCount is how many devices a push meets that are not removed by it. It is an *unknownError if the relay does not
// say.
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

// platforms are what a relay serves, and why it does not serve the others.
type platforms struct {
	served     []string
	others     []string
	registered int // how many of both
}

// tryPlatforms registers a device of each platform and pushes to it alone, once in a session. A 5xx may be the
// platform's push service, which is down or does not take made-up device tokens.
func (s *session) tryPlatforms(ctx context.Context) (*platforms, error) {
	if s.bridge.platforms != nil {
		return s.bridge.platforms, nil
	}
	tried := &platforms{}
	for _, platform := range []string{"ios", "android"} {
		r, unregister, err := s.register(ctx, newBridgeDevice(platform))
		if err == nil {
			tried.registered++
			r, err = s.push(ctx)
			unregister()
			if err != nil {
				return nil, err
			}
		}
		switch {
		case r.status == 0:
			return nil, err // no answer
		case err != nil, r.status/100 == 5:
			tried.others = append(tried.others, fmt.Sprintf("%s (answered %v)", platform, r))
		default:
			tried.served = append(tried.served, platform)
		}
	}
	s.bridge.platforms = tried
	return tried, nil
}

// pushToServed pushes to a device of each platform that the relay serves, beside the devices that were there before.
func (s *session) pushToServed(ctx context.Context) (r response, before int, tried *platforms, err error) {
	before, err = s.deviceCount(ctx)
	if _, unstated := errors.AsType[*unknownError](err); err != nil && (!unstated || s.bridge.devices == nil || s.bridge.devices.err != nil) {
		return response{}, 0, nil, err
	}
	if tried, err = s.tryPlatforms(ctx); err != nil {
		return response{}, 0, nil, err
	}
	switch {
	case tried.registered == 0:
		return response{}, 0, nil, unknown("there is no device to push to: the relay registers no %s", strings.Join(tried.others, ", no "))
	case len(tried.served) == 0:
		return response{}, 0, nil, &outageError{"it takes no push to a made-up device: its push services may be down, or refuse the device tokens: " + strings.Join(tried.others, ", ")}
	}
	for _, platform := range tried.served {
		_, unregister, err := s.register(ctx, newBridgeDevice(platform))
		if err != nil {
			return response{}, 0, nil, unknown("there is no device to push to: %v", err)
		}
		defer unregister()
	}
	r, err = s.push(ctx)
	return r, before, tried, err
}

func pushesToDevices(ctx context.Context, s *session) error {
	r, _, tried, err := s.pushToServed(ctx)
	if err == nil {
		err = r.succeeded()
	}
	if err == nil && len(tried.others) > 0 {
		err = unknown("the relay takes pushes to %s, and not to %s", strings.Join(tried.served, ", "), strings.Join(tried.others, ", "))
	}
	return err
}

func statesResults(ctx context.Context, s *session) error {
	r, before, tried, err := s.pushToServed(ctx)
	if err != nil {
		return err
	}
	body := r.decodeBridge()
	if !body.succeeded() || len(body.Results) != before+len(tried.served) {
		return fmt.Errorf("want %d results more than the %d before; answered %v", len(tried.served), before, r)
	}
	var named []string
	for _, result := range body.Results {
		named = append(named, result.Platform)
		if !slices.Contains([]string{"sent", "failed", "removed"}, result.Status) {
			return fmt.Errorf("a result with the status %q", result.Status)
		}
		if result.Status != "sent" && result.Reason == "" {
			return fmt.Errorf("a result with the status %q and no reason", result.Status)
		}
	}
	for _, platform := range tried.served {
		if !slices.Contains(named, platform) {
			return fmt.Errorf("results for %q; want one for %s", named, platform)
		}
	}
	return nil
}

func pushesOnce(ctx context.Context, s *session) error {
	before, err := s.deviceCount(ctx)
	if err != nil {
		return err
	}
	tried, err := s.tryPlatforms(ctx)
	if err != nil {
		return err
	}
	if len(tried.served) == 0 {
		return unknown("there is no device to push to: see push-devices")
	}
	device := newBridgeDevice(tried.served[0])
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
