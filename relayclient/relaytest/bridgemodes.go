package relaytest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"github.com/sealpush/sealpush/internal/requestbody"
	"github.com/sealpush/sealpush/relay"
)

// WithLostRegistrations makes the push relay keep its devices as the deployed one
// does: a registration reads the client's list, changes it, and writes it after
// window. What others have registered meanwhile is lost. A bridge sends one
// registration after the other, and loses none.
func WithLostRegistrations(window time.Duration) BridgeOption {
	return bridgeOption(func(c *bridgeConfig) { c.lostWithin = window })
}

// FailPlatform makes every push to the devices of a platform, "ios" or "android",
// fail for this reason, until [BridgeService.HealPlatform]. As at the deployed
// relay, the whole push is then answered 500, although the devices of the other
// platform have been paged.
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

// registrations are those between reading a list and writing it.
type registrations struct {
	mu       sync.Mutex
	underWay map[*registration]struct{}
}

type registration struct {
	clientID string
	others   []string // the device tokens that were written since this one read
}

// serveLosing is a registration that undoes what others wrote since it began.
func (s *BridgeService) serveLosing(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	r.Body = &requestbody.Replay{Body: body, Err: err}
	var device struct {
		Token string `json:"device_token"`
	}
	claims, refused := s.keys.Authenticate(r)
	if err != nil || refused != nil || json.Unmarshal(body, &device) != nil {
		s.bridge.ServeHTTP(w, r)
		return
	}
	own := &registration{clientID: claims.Subject}
	all := &s.registrations
	all.mu.Lock()
	all.underWay[own] = struct{}{}
	all.mu.Unlock()

	Answer{Delay: s.lostWithin}.wait(s.endpoints.closing, r.Context().Done())

	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.underWay, own)
	s.bridge.ServeHTTP(w, r)
	for _, token := range own.others {
		if token != device.Token {
			s.unregister(r.Header, token)
		}
	}
	for other := range all.underWay {
		if other.clientID == own.clientID {
			other.others = append(other.others, device.Token)
		}
	}
}

// unregister removes a device as its client would.
func (s *BridgeService) unregister(authorized http.Header, token string) {
	body, err := json.Marshal(map[string]string{"device_token": token})
	if err != nil {
		panic(err) // unreachable: texts are JSON
	}
	r := httptest.NewRequest(http.MethodDelete, "/register", nil)
	r.Header, r.Body = authorized, &requestbody.Replay{Body: body}
	s.bridge.ServeHTTP(httptest.NewRecorder(), r)
}
