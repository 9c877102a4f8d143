package webpush

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/sealpush/sealpush/secret"
)

// A Store keeps subscriptions, each under a key that is made from its device token ([DeviceKey]). It is called by many
// goroutines at once, and by the relays of several processes if they share it.
type Store interface {
	// Add keeps a new subscription, or returns [ErrStoreFull] if limit subscriptions are kept. To make room, it deletes
	// subscriptions that ended more than 30 days ago.
	Add(ctx context.Context, s Stored, limit int) error
	// Get returns what is kept under a key, or [ErrNotFound].
	Get(ctx context.Context, device string) (Stored, error)
	// Replace replaces the subscription under an existing key, also one that has ended, or returns [ErrNotFound].
	Replace(ctx context.Context, device string, s Subscription, now time.Time) error
	// End empties the subscription under a key if it still has that endpoint. The key stays, so that the browser can
	// come back with another subscription.
	End(ctx context.Context, device string, endpoint secret.Text, now time.Time) error
	// Delete forgets a key, or returns [ErrNotFound].
	Delete(ctx context.Context, device string) error
}

// Stored is what a [Store] keeps of one device token.
type Stored struct {
	Device       string       // [DeviceKey] of the device token
	SecretHash   string       // SHA-256 of the secret, 64 hex digits
	Subscription Subscription // the zero value once it has ended
	Updated      time.Time    // when the subscription came, or ended; to the second
}

// Ended reports whether the push service has said that the subscription has ended.
func (s Stored) Ended() bool { return s.Subscription.Endpoint.IsZero() }

// Errors of a [Store].
var (
	ErrNotFound  = errors.New("webpush: no such subscription")
	ErrStoreFull = errors.New("webpush: the store has no room for another subscription")
)

// endedLife is how long a subscription that has ended is kept for its browser.
const endedLife = 30 * 24 * time.Hour

// DeviceKey returns the key of a device token in lower case: its SHA-256, in 64 hex digits. So a copy of a store does
// not allow anybody to page its phones through the relay.
func DeviceKey(token string) string { return hashOf(token) }

func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// A MemoryStore keeps subscriptions in memory, some 700 bytes each: when the process ends, every phone has to be paired
// anew. It is for tests.
type MemoryStore struct {
	mu   sync.Mutex
	kept map[string]Stored
}

// NewMemoryStore makes an empty store.
func NewMemoryStore() *MemoryStore { return &MemoryStore{kept: map[string]Stored{}} }

// Add is [Store.Add].
func (m *MemoryStore) Add(_ context.Context, s Stored, limit int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.kept) >= limit {
		for device, old := range m.kept {
			if old.Ended() && s.Updated.Sub(old.Updated) > endedLife {
				delete(m.kept, device)
			}
		}
	}
	if len(m.kept) >= limit {
		return ErrStoreFull
	}
	m.kept[s.Device] = s
	return nil
}

// Get is [Store.Get].
func (m *MemoryStore) Get(_ context.Context, device string) (Stored, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, known := m.kept[device]
	if !known {
		return Stored{}, ErrNotFound
	}
	return s, nil
}

// Replace is [Store.Replace].
func (m *MemoryStore) Replace(_ context.Context, device string, s Subscription, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept, known := m.kept[device]
	if !known {
		return ErrNotFound
	}
	kept.Subscription, kept.Updated = s, now
	m.kept[device] = kept
	return nil
}

// End is [Store.End].
func (m *MemoryStore) End(_ context.Context, device string, endpoint secret.Text, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if kept, known := m.kept[device]; known && kept.Subscription.Endpoint.Equal(endpoint) {
		kept.Subscription, kept.Updated = Subscription{}, now
		m.kept[device] = kept
	}
	return nil
}

// Delete is [Store.Delete].
func (m *MemoryStore) Delete(_ context.Context, device string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.kept[device]; !known {
		return ErrNotFound
	}
	delete(m.kept, device)
	return nil
}
