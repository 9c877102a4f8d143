package relaytest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"time"

	"github.com/sealpush/sealpush/internal/requestbody"
	"github.com/sealpush/sealpush/relay"
)

// WithLossyRegistrations makes the push relay take 50 ms to change a client's list of devices, and lose changes that
// are made at the same time, as the deployed one does, which reads, changes and writes the list. A bridge must register
// and unregister its devices one after the other.
func WithLossyRegistrations() BridgeOption {
	return bridgeOption(func(c *bridgeConfig) error {
		c.lossy = true
		return nil
	})
}

// FailPlatform makes every push to the devices of a platform, "ios" or "android", fail for this reason, until
// [BridgeService.HealPlatform]. As at the deployed relay, the whole push is then answered 500, although the devices of
// the other platform have been paged.
func (s *BridgeService) FailPlatform(platform, reason string) {
	s.phones.mu.Lock()
	defer s.phones.mu.Unlock()
	s.phones.failingPlatform[platform] = reason
}

// HealPlatform takes back FailPlatform.
func (s *BridgeService) HealPlatform(platform string) {
	s.phones.mu.Lock()
	defer s.phones.mu.Unlock()
	delete(s.phones.failingPlatform, platform)
}

// servePush answers as FailPlatform says.
func (s *BridgeService) servePush(w http.ResponseWriter, r *http.Request) {
	answer := httptest.NewRecorder()
	s.bridge.ServeHTTP(answer, r)
	var pushed struct{ Results []relay.BridgePushResult }
	json.Unmarshal(answer.Body.Bytes(), &pushed) // an answer without results fails no platform
	s.phones.mu.Lock()
	failed := slices.IndexFunc(pushed.Results, func(result relay.BridgePushResult) bool {
		_, failing := s.phones.failingPlatform[result.Platform]
		return failing
	})
	s.phones.mu.Unlock()
	if failed >= 0 {
		answer = httptest.NewRecorder()
		answer.Header().Set("Content-Type", "application/json")
		answer.WriteHeader(http.StatusInternalServerError)
		fmt.Fprintf(answer, `{"ok":false,"error":%q}`, pushed.Results[failed].Reason)
	}
	send(w, answer)
}

func send(w http.ResponseWriter, answer *httptest.ResponseRecorder) {
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	w.Write(answer.Body.Bytes())
}

// lossyWindow is the time between reading a list of devices and writing it.
const lossyWindow = 50 * time.Millisecond

// serveLossy changes a client's list of devices to what it was when the request came, with the request's own change.
func (s *BridgeService) serveLossy(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	r.Body = &requestbody.Replay{Body: body, Err: err}
	claims, err := s.keys.Authenticate(r)
	if err != nil {
		s.bridge.ServeHTTP(w, r)
		return
	}
	read := s.bridge.Devices(claims.Subject)
	Answer{Delay: lossyWindow}.wait(s.endpoints.closing, r.Context().Done())

	s.writing.Lock()
	defer s.writing.Unlock()
	now := s.bridge.Devices(claims.Subject)
	for _, device := range now { // what others have registered meanwhile
		if !slices.ContainsFunc(read, sameToken(device)) {
			s.change(http.MethodDelete, r.Header, device)
		}
	}
	for _, device := range read { // what others have unregistered meanwhile
		if !slices.ContainsFunc(now, sameToken(device)) {
			s.change(http.MethodPost, r.Header, device)
		}
	}
	s.bridge.ServeHTTP(w, r)
}

func sameToken(device relay.BridgeDevice) func(relay.BridgeDevice) bool {
	return func(other relay.BridgeDevice) bool { return device.Token.Equal(other.Token) }
}

// change registers or unregisters a device as its client would.
func (s *BridgeService) change(method string, authorized http.Header, device relay.BridgeDevice) {
	body, err := json.Marshal(map[string]string{
		"device_token": device.Token.Reveal(), "platform": device.Platform, "bundle_id": device.BundleID,
	})
	if err != nil {
		panic(err) // unreachable: texts are JSON
	}
	r := httptest.NewRequest(method, "/register", bytes.NewReader(body))
	r.Header = authorized
	s.bridge.ServeHTTP(httptest.NewRecorder(), r)
}
