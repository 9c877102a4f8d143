package relaytest

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"

	"github.com/sealpush/sealpush/relay"
)

// bridgePhones stand in for APNs and FCM behind the push relay of bridges, and remember what it sent.
type bridgePhones struct {
	mu      sync.Mutex
	pushes  map[string]*history[relay.BridgePush] // by client id
	failing map[string]string                     // by device token: the reason
	dead    map[string]bool                       // by device token

	failingPlatform map[string]string // by platform: the reason
}

func newBridgePhones() *bridgePhones {
	return &bridgePhones{
		pushes:  map[string]*history[relay.BridgePush]{},
		failing: map[string]string{},
		dead:    map[string]bool{},

		failingPlatform: map[string]string{},
	}
}

// ForwardPush plays APNs and FCM.
func (p *bridgePhones) ForwardPush(_ context.Context, to relay.BridgeDevice, _ relay.BridgePush) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	token := to.Token.Reveal()
	if p.dead[token] {
		delete(p.dead, token) // registered again, it is a token like any other
		reason := "Unregistered"
		if to.Platform == "android" {
			reason = "UNREGISTERED"
		}
		return &relay.ForwardError{Status: http.StatusGone, Reason: reason}
	}
	if reason, failing := p.failingPlatform[to.Platform]; failing {
		return &relay.ForwardError{Reason: reason}
	}
	if reason, failing := p.failing[token]; failing {
		return &relay.ForwardError{Reason: reason}
	}
	return nil
}

// maxPushes is how many pushes of a client are kept: at most 8 MiB.
const maxPushes = 1000

func (p *bridgePhones) record(push relay.BridgePush) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.pushes[push.ClientID]
	if kept == nil {
		kept = &history[relay.BridgePush]{limit: maxPushes}
		p.pushes[push.ClientID] = kept
	}
	kept.add(push)
}

// Pushes returns the notifications that a client has sent, those included that met no device, but not those that had a
// scripted answer or were refused. It keeps the latest 1000.
func (s *BridgeService) Pushes(clientID string) []relay.BridgePush {
	s.phones.mu.Lock()
	defer s.phones.mu.Unlock()
	kept := s.phones.pushes[clientID]
	if kept == nil {
		return nil
	}
	pushes := slices.Clone(kept.latest())
	for i := range pushes {
		pushes[i].Data = maps.Clone(pushes[i].Data)
		pushes[i].Results = slices.Clone(pushes[i].Results)
	}
	return pushes
}

// FailDevice makes every push to a device fail for this reason, such as APNs' "TooManyRequests", until
// [BridgeService.HealDevice].
func (s *BridgeService) FailDevice(deviceToken, reason string) {
	s.phones.mu.Lock()
	defer s.phones.mu.Unlock()
	s.phones.failing[deviceToken] = reason
}

// KillDevice makes a device token dead, as after the app is deleted: the next push to it says "removed", and the relay
// forgets the device. When it is registered again, the token works again.
func (s *BridgeService) KillDevice(deviceToken string) {
	s.phones.mu.Lock()
	defer s.phones.mu.Unlock()
	s.phones.dead[deviceToken] = true
}

// HealDevice takes back FailDevice and KillDevice.
func (s *BridgeService) HealDevice(deviceToken string) {
	s.phones.mu.Lock()
	defer s.phones.mu.Unlock()
	delete(s.phones.failing, deviceToken)
	delete(s.phones.dead, deviceToken)
}
