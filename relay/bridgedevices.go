package relay

import (
	"fmt"
	"slices"
	"sync"

	"github.com/sealpush/sealpush/secret"
)

// A BridgeDevice is a phone that a bridge has registered.
type BridgeDevice struct {
	Token    secret.Text // APNs or FCM device token, at most 1024 bytes
	Platform string      // "ios" or "android"
	BundleID string      // "" if the bridge gave none; at most 256 bytes
}

// String describes the device without its token.
func (d BridgeDevice) String() string {
	return fmt.Sprintf("%q device of %q", d.Platform, d.BundleID)
}

const (
	maxDeviceToken = 1024 // bytes; Apple's have 64 characters or some more, Google's some 160
	maxBundleID    = 256  // bytes
)

// bridgeDevices are the devices of all clients, at most so many of each.
type bridgeDevices struct {
	most int

	mu       sync.Mutex
	byClient map[string]*bridgeClient       // kept without devices too, for its forwards
	clients  map[string]map[string]struct{} // ids of those that registered a token, by token
}

type bridgeClient struct {
	devices  []BridgeDevice // in the order of registration
	forwards chan struct{}  // as many as there are forwards for this client now
}

// maxForwards is how many forwards are under way for one client at a time.
const maxForwards = 16

func newBridgeDevices(most int) *bridgeDevices {
	return &bridgeDevices{most: most, byClient: map[string]*bridgeClient{}, clients: map[string]map[string]struct{}{}}
}

// add registers a device, or replaces what is known of the one with its token. It reports false if the client has as
// many devices as it may.
func (d *bridgeDevices) add(clientID string, device BridgeDevice) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	client := d.byClient[clientID]
	if client == nil {
		client = &bridgeClient{forwards: make(chan struct{}, maxForwards)}
	}
	token := device.Token.Reveal()
	if _, known := d.clients[token][clientID]; known {
		client.devices[client.index(token)] = device
		return true
	}
	if len(client.devices) >= d.most {
		return false
	}
	client.devices = append(client.devices, device)
	d.byClient[clientID] = client
	if d.clients[token] == nil {
		d.clients[token] = map[string]struct{}{}
	}
	d.clients[token][clientID] = struct{}{}
	return true
}

// remove reports whether the client had a device of that token.
func (d *bridgeDevices) remove(clientID, token string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, known := d.clients[token][clientID]; !known {
		return false
	}
	client := d.byClient[clientID]
	i := client.index(token)
	client.devices = slices.Delete(client.devices, i, i+1)
	if delete(d.clients[token], clientID); len(d.clients[token]) == 0 {
		delete(d.clients, token)
	}
	return true
}

// removeEverywhere removes a dead token from every client that registered it.
func (d *bridgeDevices) removeEverywhere(token string) {
	d.mu.Lock()
	clients := make([]string, 0, len(d.clients[token]))
	for id := range d.clients[token] {
		clients = append(clients, id)
	}
	d.mu.Unlock()
	for _, id := range clients {
		d.remove(id, token)
	}
}

// of returns a client's devices, and the channel that bounds its forwards.
func (d *bridgeDevices) of(clientID string) ([]BridgeDevice, chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	client := d.byClient[clientID]
	if client == nil {
		return nil, nil
	}
	return slices.Clone(client.devices), client.forwards
}

// index finds the device of a token that the client has.
func (c *bridgeClient) index(token string) int {
	return slices.IndexFunc(c.devices, func(d BridgeDevice) bool { return d.Token.Reveal() == token })
}
