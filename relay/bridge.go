package relay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/sealpush/sealpush/pushauth/verify"
	"github.com/sealpush/sealpush/secret"
)

// A Bridge is the push relay that bridges talk to (bridge push, "cf-push-relay"):
// POST and DELETE /register, POST /push and GET /health. It keeps each client's
// devices in memory, by the subject of the client's token.
type Bridge struct {
	config bridgeConfig
	mux    http.Handler

	mu      sync.Mutex
	devices map[string][]BridgeDevice // by client id
}

// A BridgeDevice is a phone that a bridge has registered.
type BridgeDevice struct {
	Token    secret.Text // APNs or FCM device token
	Platform string      // "ios" or "android"
	BundleID string      // "" if the bridge gave none
}

// String describes the device without its token.
func (d BridgeDevice) String() string {
	return fmt.Sprintf("%q device of %q", d.Platform, d.BundleID)
}

func (d BridgeDevice) sameToken(other BridgeDevice) bool { return d.Token.Equal(other.Token) }

// A BridgePush is a notification that a bridge has sent.
type BridgePush struct {
	ClientID    string
	Title, Body string
	Data        map[string]string // nil if there was none
	Time        time.Time
	Results     []BridgePushResult // one a device, in the order of registration
}

// A BridgePushResult is what became of a push on one device.
type BridgePushResult struct {
	Platform string `json:"platform"`
	Status   string `json:"status"`           // "sent", "failed" or "removed"
	Reason   string `json:"reason,omitempty"` // why it was not sent, in APNs' or FCM's words
}

// A BridgeForwarder is the push service behind a [Bridge]. It is called by many
// goroutines at once.
type BridgeForwarder interface {
	// ForwardPush hands a notification for one device to the push service and
	// returns nil once that has taken it. A [*ForwardError] with status 410 means
	// that the token is dead, and the relay forgets the device. Any other error
	// is a failure, whose reason the bridge is told.
	ForwardPush(ctx context.Context, to BridgeDevice, push BridgePush) error
}

// An Authenticator reads the bearer token of a request. [verify.Verifier] is one.
type Authenticator interface {
	Authenticate(r *http.Request) (verify.Claims, error)
}

// A BridgeOption sets up a [Bridge]. [NewBridge] returns its error.
type BridgeOption func(*bridgeConfig) error

type bridgeConfig struct {
	forwarder     BridgeForwarder
	authenticator Authenticator
	onPush        func(BridgePush)
	pause         func() // between reading a list of devices and writing it; nil for no such moment
}

// WithBridgeForwarder says which push service to forward to. There is no default.
func WithBridgeForwarder(f BridgeForwarder) BridgeOption {
	return func(c *bridgeConfig) error {
		if f == nil {
			return errors.New("relay: WithBridgeForwarder: the forwarder is nil")
		}
		c.forwarder = f
		return nil
	}
}

// WithAuthenticator says whose tokens the relay takes, usually by a
// [verify.Verifier] for the scope "push:write". There is no default.
func WithAuthenticator(a Authenticator) BridgeOption {
	return func(c *bridgeConfig) error {
		if a == nil {
			return errors.New("relay: WithAuthenticator: the authenticator is nil")
		}
		c.authenticator = a
		return nil
	}
}

// OnPush calls f with each push and its results, once they are known, those
// included that met no device.
func OnPush(f func(BridgePush)) BridgeOption {
	return func(c *bridgeConfig) error {
		c.onPush = f
		return nil
	}
}

// WithLossyDevices makes the relay read a client's list of devices, call pause, and write the changed list, without a lock
// over the three. The deployed relay does so with its key-value store, and of registrations at the same moment it keeps
// one. It is for tests of bridges.
func WithLossyDevices(pause func()) BridgeOption {
	return func(c *bridgeConfig) error {
		if pause == nil {
			return errors.New("relay: WithLossyDevices: pause is nil")
		}
		c.pause = pause
		return nil
	}
}

// NewBridge makes a push relay. It needs [WithAuthenticator] and
// [WithBridgeForwarder].
func NewBridge(opts ...BridgeOption) (*Bridge, error) {
	b := &Bridge{devices: map[string][]BridgeDevice{}}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("relay: an option is nil")
		}
		if err := opt(&b.config); err != nil {
			return nil, err
		}
	}
	switch {
	case b.config.authenticator == nil:
		return nil, errors.New("relay: WithAuthenticator is missing: say whose tokens the relay takes")
	case b.config.forwarder == nil:
		return nil, errors.New("relay: WithBridgeForwarder is missing: say which push service to forward to")
	}
	b.mux = bridgeRoutes([]bridgeRoute{
		{"POST", "/register", b.authenticated(b.serveRegister)},
		{"DELETE", "/register", b.authenticated(b.serveUnregister)},
		{"POST", "/push", b.authenticated(b.servePush)},
		{"GET", "/health", serveHealth},
	})
	return b, nil
}

// ServeHTTP answers as the push relay does.
func (b *Bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) { b.mux.ServeHTTP(w, r) }

// Devices returns the devices of a client, in the order of registration.
func (b *Bridge) Devices(clientID string) []BridgeDevice {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.devices[clientID])
}

// authenticated hands serve the client id of the bearer token.
func (b *Bridge) authenticated(serve func(w http.ResponseWriter, r *http.Request, clientID string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		claims, err := b.config.authenticator.Authenticate(r)
		switch status := verify.StatusCode(err); status {
		case http.StatusOK:
			serve(w, r, claims.Subject)
		case http.StatusUnauthorized:
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			writeBridgeError(w, status, "invalid_token")
		case http.StatusForbidden:
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope"`)
			writeBridgeError(w, status, "insufficient_scope")
		default:
			writeBridgeError(w, status, "token service unavailable")
		}
	}
}

func (b *Bridge) serveRegister(w http.ResponseWriter, r *http.Request, clientID string) {
	var body struct {
		DeviceToken secret.Text `json:"device_token"`
		Platform    string      `json:"platform"`
		BundleID    string      `json:"bundle_id"`
	}
	if !readBridgeJSON(w, r, &body) {
		return
	}
	if body.DeviceToken.IsZero() {
		writeBridgeError(w, http.StatusBadRequest, "device_token is missing")
		return
	}
	if body.Platform != "ios" && body.Platform != "android" {
		writeBridgeError(w, http.StatusBadRequest, "platform is missing, or neither ios nor android")
		return
	}
	b.register(clientID, BridgeDevice{body.DeviceToken, body.Platform, body.BundleID})
	writeBridgeJSON(w, http.StatusOK, bridgeOK{OK: true, Message: "Device registered"})
}

// register adds a device, or replaces what is known of the one with its token.
func (b *Bridge) register(clientID string, device BridgeDevice) {
	b.change(clientID, func(devices []BridgeDevice) []BridgeDevice {
		if i := slices.IndexFunc(devices, device.sameToken); i >= 0 {
			devices[i] = device
			return devices
		}
		return append(devices, device)
	})
}

// change reads, changes and writes a client's list of devices.
func (b *Bridge) change(clientID string, change func([]BridgeDevice) []BridgeDevice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	devices := b.devices[clientID]
	if b.config.pause != nil {
		devices = slices.Clone(devices)
		b.mu.Unlock()
		b.config.pause()
		b.mu.Lock()
	}
	b.devices[clientID] = change(devices)
}

func (b *Bridge) serveUnregister(w http.ResponseWriter, r *http.Request, clientID string) {
	var body struct {
		DeviceToken secret.Text `json:"device_token"`
	}
	if !readBridgeJSON(w, r, &body) {
		return
	}
	if body.DeviceToken.IsZero() {
		writeBridgeError(w, http.StatusBadRequest, "device_token is missing")
		return
	}
	b.forget(clientID, BridgeDevice{Token: body.DeviceToken})
	writeBridgeJSON(w, http.StatusOK, bridgeOK{OK: true, Message: "Device unregistered"})
}

func (b *Bridge) forget(clientID string, device BridgeDevice) {
	b.change(clientID, func(devices []BridgeDevice) []BridgeDevice {
		return slices.DeleteFunc(devices, device.sameToken)
	})
}

func (b *Bridge) servePush(w http.ResponseWriter, r *http.Request, clientID string) {
	var body struct {
		Title string            `json:"title"`
		Body  string            `json:"body"`
		Data  map[string]string `json:"data"`
	}
	if !readBridgeJSON(w, r, &body) {
		return
	}
	if body.Title == "" || body.Body == "" {
		writeBridgeError(w, http.StatusBadRequest, "title or body is missing")
		return
	}
	answer := struct {
		OK      bool               `json:"ok"`
		Results []BridgePushResult `json:"results"`
		Message string             `json:"message,omitempty"`
	}{OK: true}
	push := BridgePush{ClientID: clientID, Title: body.Title, Body: body.Body, Data: body.Data, Time: time.Now()}
	answer.Results = b.push(context.WithoutCancel(r.Context()), push)
	if len(answer.Results) == 0 {
		answer.Message = "No devices registered"
	}
	writeBridgeJSON(w, http.StatusOK, answer)
}

// push forwards p to each device of its client, and forgets the devices that are
// found dead.
func (b *Bridge) push(ctx context.Context, p BridgePush) []BridgePushResult {
	ctx, cancel := context.WithTimeout(ctx, leaseTime)
	defer cancel()
	results := []BridgePushResult{}
	for _, device := range b.Devices(p.ClientID) {
		result := BridgePushResult{Platform: device.Platform, Status: "sent"}
		if err := b.config.forwarder.ForwardPush(ctx, device, p); err != nil {
			result.Status = "failed"
			if failure, ok := errors.AsType[*ForwardError](err); ok {
				result.Reason = failure.Reason
				if failure.Status == http.StatusGone {
					result.Status = "removed"
					b.forget(p.ClientID, device)
				}
			}
		}
		results = append(results, result)
	}
	if b.config.onPush != nil {
		p.Results = slices.Clone(results)
		b.config.onPush(p)
	}
	return results
}
