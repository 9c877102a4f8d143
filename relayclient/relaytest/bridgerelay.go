package relaytest

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/sealpush/sealpush/pushauth/verify"
)

// BridgePush is a notification that a bridge has sent. It is a plain value.
type BridgePush struct {
	Title, Body string
	Data        map[string]string // nil if there was none
	Time        time.Time
	Results     []BridgePushResult // one a device, in the order of registration
}

// BridgePushResult is what became of a push on one device. It is a plain value.
type BridgePushResult struct {
	Platform string `json:"platform"`
	Status   string `json:"status"`           // "sent", "failed" or "removed"
	Reason   string `json:"reason,omitempty"` // why it was not sent, in APNs' or FCM's words
}

// bridgeRelay keeps devices and pushes by the subject of the verified token.
type bridgeRelay struct {
	newVerifier func() *verify.Verifier

	mu       sync.Mutex
	verifier *verify.Verifier
	devices  map[string][]BridgeDevice
	pushes   map[string][]BridgePush
	failing  map[string]string // by device token: the reason
	dead     map[string]bool   // by device token
}

func newBridgeRelay() *bridgeRelay {
	return &bridgeRelay{
		devices: map[string][]BridgeDevice{},
		pushes:  map[string][]BridgePush{},
		failing: map[string]string{},
		dead:    map[string]bool{},
	}
}

// trust makes the relay accept the tokens of a token service.
func (b *bridgeRelay) trust(issuer, audience string, client *http.Client) {
	b.newVerifier = func() *verify.Verifier {
		verifier, err := verify.New(verify.Config{
			JWKSURL:  issuer + "/.well-known/jwks.json",
			Issuer:   issuer,
			Audience: audience,
			Scope:    scopePush,
		}, verify.WithHTTPClient(client), verify.WithLeeway(0)) // both halves read one clock
		if err != nil {
			panic(err) // the URLs have been looked at
		}
		return verifier
	}
	b.forgetKeys()
}

// forgetKeys makes the relay fetch the token service's keys anew.
func (b *bridgeRelay) forgetKeys() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.verifier = b.newVerifier()
}

// authenticated hands serve the client id of the bearer token.
func (b *bridgeRelay) authenticated(serve func(w http.ResponseWriter, r *http.Request, clientID string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		verifier := b.verifier
		b.mu.Unlock()
		claims, err := verifier.Authenticate(r)
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

func (b *bridgeRelay) serveRegister(w http.ResponseWriter, r *http.Request, clientID string) {
	var body struct {
		DeviceToken string `json:"device_token"`
		Platform    string `json:"platform"`
		BundleID    string `json:"bundle_id"`
	}
	if !readBridgeJSON(w, r, &body) {
		return
	}
	if body.DeviceToken == "" {
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
func (b *bridgeRelay) register(clientID string, device BridgeDevice) {
	b.mu.Lock()
	defer b.mu.Unlock()
	devices := b.devices[clientID]
	if i := slices.IndexFunc(devices, device.sameToken); i >= 0 {
		devices[i] = device
		return
	}
	b.devices[clientID] = append(devices, device)
}

func (b *bridgeRelay) serveUnregister(w http.ResponseWriter, r *http.Request, clientID string) {
	var body struct {
		DeviceToken string `json:"device_token"`
	}
	if !readBridgeJSON(w, r, &body) {
		return
	}
	if body.DeviceToken == "" {
		writeBridgeError(w, http.StatusBadRequest, "device_token is missing")
		return
	}
	b.mu.Lock()
	b.devices[clientID] = slices.DeleteFunc(b.devices[clientID], BridgeDevice{Token: body.DeviceToken}.sameToken)
	b.mu.Unlock()
	writeBridgeJSON(w, http.StatusOK, bridgeOK{OK: true, Message: "Device unregistered"})
}

func (b *bridgeRelay) servePush(w http.ResponseWriter, r *http.Request, clientID string) {
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
	answer.Results = b.push(clientID, BridgePush{Title: body.Title, Body: body.Body, Data: body.Data, Time: time.Now()})
	if len(answer.Results) == 0 {
		answer.Message = "No devices registered"
	}
	writeBridgeJSON(w, http.StatusOK, answer)
}

// push records p with what becomes of it on each device, and drops the devices
// that are found dead.
func (b *bridgeRelay) push(clientID string, p BridgePush) []BridgePushResult {
	b.mu.Lock()
	defer b.mu.Unlock()
	p.Results = []BridgePushResult{}
	var alive []BridgeDevice
	for _, device := range b.devices[clientID] {
		result := b.deliver(device)
		p.Results = append(p.Results, result)
		if result.Status != "removed" {
			alive = append(alive, device)
		}
	}
	b.devices[clientID] = alive
	pushes := append(b.pushes[clientID], p)
	b.pushes[clientID] = pushes[max(0, len(pushes)-DefaultHistory):]
	return slices.Clone(p.Results)
}

// deliver plays APNs and FCM.
func (b *bridgeRelay) deliver(device BridgeDevice) BridgePushResult {
	result := BridgePushResult{Platform: device.Platform, Status: "sent"}
	if b.dead[device.Token] {
		delete(b.dead, device.Token) // registered again, it is a token like any other
		result.Status, result.Reason = "removed", "Unregistered"
		if device.Platform == "android" {
			result.Reason = "UNREGISTERED"
		}
	} else if reason, failing := b.failing[device.Token]; failing {
		result.Status, result.Reason = "failed", reason
	}
	return result
}

// Devices returns the devices of a client, in the order of registration.
func (s *BridgeService) Devices(clientID string) []BridgeDevice {
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	return slices.Clone(s.relay.devices[clientID])
}

// Pushes returns the notifications that a client has sent, those included that
// met no device, but not those that had a scripted answer or were refused. It
// keeps the latest [DefaultHistory].
func (s *BridgeService) Pushes(clientID string) []BridgePush {
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	pushes := slices.Clone(s.relay.pushes[clientID])
	for i := range pushes {
		pushes[i].Data = maps.Clone(pushes[i].Data)
		pushes[i].Results = slices.Clone(pushes[i].Results)
	}
	return pushes
}

// FailDevice makes every push to a device fail for this reason, such as APNs'
// "TooManyRequests", until [BridgeService.HealDevice].
func (s *BridgeService) FailDevice(deviceToken, reason string) {
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	s.relay.failing[deviceToken] = reason
}

// KillDevice makes a device token dead, as after the app is deleted: the next
// push to it says "removed", and the relay forgets the device. Registered
// anew, the token works again.
func (s *BridgeService) KillDevice(deviceToken string) {
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	s.relay.dead[deviceToken] = true
}

// HealDevice takes back FailDevice and KillDevice.
func (s *BridgeService) HealDevice(deviceToken string) {
	s.relay.mu.Lock()
	defer s.relay.mu.Unlock()
	delete(s.relay.failing, deviceToken)
	delete(s.relay.dead, deviceToken)
}
