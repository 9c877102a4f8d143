package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/sealpush/sealpush/pushauth/verify"
	"github.com/sealpush/sealpush/secret"
)

// A Bridge is the push relay that bridges talk to (bridge push, "cf-push-relay"): POST and DELETE /register, POST /push
// and GET /health. Paths, member names and the word "Bearer" are taken as they are written here, and every other method
// or path is answered 404, as by the deployed one.
//
// It keeps each client's devices in memory, by the subject of the client's token. Everything that a client can make it
// keep or do is bounded: a device token has at most 1024 bytes, a bundle id 256, a body what [WithMaxBody] says, a
// client the devices that [WithMaxDevices] says, and 16 forwards at a time.
type Bridge struct {
	config  bridgeConfig
	devices *bridgeDevices
}

// A BridgePush is a notification that a bridge has sent.
type BridgePush struct {
	ClientID    string
	Title, Body string
	Data        map[string]string // nil without [WithPushData], or if there was none
	Time        time.Time
	Results     []BridgePushResult // one a device, in the order of registration
}

// A BridgePushResult is what became of a push on one device.
type BridgePushResult struct {
	Platform string `json:"platform"`
	Status   string `json:"status"`           // "sent", "failed" or "removed"
	Reason   string `json:"reason,omitempty"` // why it was not sent, in APNs' or FCM's words
}

// A BridgeForwarder is the push service behind a [Bridge]. It is called by many goroutines at once.
type BridgeForwarder interface {
	// ForwardPush hands a notification for one device to the push service and returns nil once that has taken it. A
	// [*ForwardError] with status 410 means that the token is dead: the relay forgets it, for every client that has
	// registered it. Any other error is a failure, whose reason the bridge is told. The context ends 30 seconds after
	// the push arrived.
	ForwardPush(ctx context.Context, to BridgeDevice, push BridgePush) error
}

// An Authenticator reads the bearer token of a request. [verify.Verifier] is one.
type Authenticator interface {
	Authenticate(r *http.Request) (verify.Claims, error)
}

// NewBridge makes a push relay. It needs [WithAuthenticator] and [WithBridgeForwarder].
func NewBridge(opts ...BridgeOption) (*Bridge, error) {
	config, err := newBridgeConfig(opts)
	if err != nil {
		return nil, err
	}
	return &Bridge{config: config, devices: newBridgeDevices(config.maxDevices)}, nil
}

// ServeHTTP answers as the push relay does.
func (b *Bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var handler bridgeHandler
	switch r.Method + " " + r.URL.EscapedPath() {
	case "POST /register":
		handler = b.authenticated(b.serveRegister)
	case "DELETE /register":
		handler = b.authenticated(b.serveUnregister)
	case "POST /push":
		handler = b.authenticated(b.servePush)
	case "GET /health":
		handler = serveHealth
	}
	serveBody(w, r, b.config.maxBody, handler)
}

// Devices returns the devices of a client, in the order of registration.
func (b *Bridge) Devices(clientID string) []BridgeDevice {
	devices, _ := b.devices.of(clientID)
	return devices
}

// authenticated hands serve the client id of the bearer token.
func (b *Bridge) authenticated(serve func(w http.ResponseWriter, clientID string, body bridgeBody)) bridgeHandler {
	return func(w http.ResponseWriter, r *http.Request, body []byte) {
		claims, err := b.config.authenticator.Authenticate(r)
		status := verify.StatusCode(err)
		if errors.Is(err, verify.ErrKeysUnavailable) {
			status = b.config.outageStatus
		}
		switch status {
		case http.StatusOK:
			if members, ok := readBridgeBody(w, body); ok {
				serve(w, claims.Subject, members)
			}
		case http.StatusUnauthorized:
			refuseBearer(w, status, "invalid_token")
		case http.StatusForbidden:
			refuseBearer(w, status, "insufficient_scope")
		default:
			writeBridgeError(w, status, "token service unavailable")
		}
	}
}

func (b *Bridge) serveRegister(w http.ResponseWriter, clientID string, body bridgeBody) {
	token, platform, bundleID := body.text("device_token"), body.text("platform"), body.text("bundle_id")
	switch {
	case token == "":
		writeBridgeError(w, http.StatusBadRequest, "device_token is missing")
	case len(token) > maxDeviceToken:
		writeBridgeError(w, http.StatusBadRequest, fmt.Sprintf("device_token is longer than %d bytes", maxDeviceToken))
	case platform != "ios" && platform != "android":
		writeBridgeError(w, http.StatusBadRequest, "platform is missing, or neither ios nor android")
	case len(bundleID) > maxBundleID:
		writeBridgeError(w, http.StatusBadRequest, fmt.Sprintf("bundle_id is longer than %d bytes", maxBundleID))
	case !b.devices.add(clientID, BridgeDevice{secret.New(token), platform, bundleID}):
		writeBridgeError(w, http.StatusConflict, fmt.Sprintf("the client has %d devices already: unregister one", b.config.maxDevices))
	default:
		writeBridgeJSON(w, http.StatusOK, bridgeOK{OK: true, Message: "Device registered"})
	}
}

func (b *Bridge) serveUnregister(w http.ResponseWriter, clientID string, body bridgeBody) {
	token := body.text("device_token")
	switch {
	case token == "":
		writeBridgeError(w, http.StatusBadRequest, "device_token is missing")
	case b.devices.remove(clientID, token):
		writeBridgeJSON(w, http.StatusOK, bridgeOK{OK: true, Message: "Device removed"})
	default:
		writeBridgeJSON(w, http.StatusOK, bridgeOK{OK: true, Message: "Device not found"})
	}
}

func (b *Bridge) servePush(w http.ResponseWriter, clientID string, body bridgeBody) {
	push := BridgePush{ClientID: clientID, Title: body.text("title"), Body: body.text("body"), Time: time.Now()}
	if push.Title == "" || push.Body == "" {
		writeBridgeError(w, http.StatusBadRequest, "title or body is missing")
		return
	}
	if raw := body["data"]; b.config.pushData && raw != nil && json.Unmarshal(raw, &push.Data) != nil {
		writeBridgeError(w, http.StatusBadRequest, "data is not an object of texts")
		return
	}
	answer := struct {
		OK      bool               `json:"ok"`
		Results []BridgePushResult `json:"results"`
		Message string             `json:"message,omitempty"`
	}{OK: true, Results: b.push(push)}
	if len(answer.Results) == 0 {
		answer.Message = "No devices registered"
	}
	writeBridgeJSON(w, http.StatusOK, answer)
}

// push forwards p to each device of its client. A bridge that hangs up changes nothing: it will not push again for half
// a minute.
func (b *Bridge) push(p BridgePush) []BridgePushResult {
	ctx, cancel := context.WithTimeout(context.Background(), forwardTimeout)
	defer cancel()
	devices, slots := b.devices.of(p.ClientID)
	results := make([]BridgePushResult, len(devices))
	var forwards sync.WaitGroup
	for i, device := range devices {
		select {
		case slots <- struct{}{}:
			forwards.Go(func() {
				defer func() { <-slots }()
				results[i] = b.forward(ctx, device, p)
			})
		case <-ctx.Done():
			results[i] = b.failed(device, p, &ForwardError{Reason: "Timeout", Err: ctx.Err()})
		}
	}
	forwards.Wait()
	if b.config.onPush != nil {
		p.Results = slices.Clone(results)
		b.config.onPush(p)
	}
	return results
}

// forward forwards p to one device, and forgets the device if it is found dead.
func (b *Bridge) forward(ctx context.Context, device BridgeDevice, p BridgePush) (result BridgePushResult) {
	defer func() {
		if panicked := recover(); panicked != nil { // no server recovers what happens in this goroutine
			result = b.failed(device, p, fmt.Errorf("panic: %v\n%s", panicked, debug.Stack()))
		}
	}()
	if err := b.config.forwarder.ForwardPush(ctx, device, p); err != nil {
		return b.failed(device, p, err)
	}
	return BridgePushResult{Platform: device.Platform, Status: "sent"}
}

func (b *Bridge) failed(device BridgeDevice, p BridgePush, err error) BridgePushResult {
	result := BridgePushResult{Platform: device.Platform, Status: "failed"}
	if failure, ok := errors.AsType[*ForwardError](err); ok {
		result.Reason = failure.Reason
		if failure.Status == http.StatusGone {
			result.Status = "removed"
			b.devices.removeEverywhere(device.Token.Reveal())
			return result
		}
	}
	logger := b.config.logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.Warn("relay: push not forwarded", "client_id", p.ClientID, "platform", device.Platform, "error", err)
	return result
}
