package relay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"
)

// A State keeps what a relay has to know of each device from one post to the next: what was forwarded, which alerts are
// suppressed, and what is left of its rate and its quota. It is called by many goroutines at once, and by the relays of
// several processes if they share it.
//
// [NewMemoryState] is the default: it forgets everything when the process ends, which costs a repeated page at worst.
// [NewSQLState] is for relays that must survive a restart, or be more than one process.
type State interface {
	// Update replaces the record under key by what change makes of it, as one step: no other Update of that key comes
	// in between. Record is nil where none is kept, and change returns nil where none is needed any more; until is when
	// the record may be forgotten. The state may call change more than once; change has no side effects and does not
	// block. A record that stays as it was need not be written.
	//
	// A key is 32 hex digits, made from a device token that it does not reveal. Now is the relay's clock. An error
	// means that nothing was changed, or that nobody knows whether it was; [ErrStateFull] means that there is no room
	// for another device.
	Update(ctx context.Context, now time.Time, key string, change ChangeFunc) error
}

// A ChangeFunc makes a new record of one that a [State] keeps.
type ChangeFunc func(record []byte) (changed []byte, until time.Time)

// ErrStateFull is returned by [State.Update] when the state has no room for another device. The relay then answers 503,
// because a post that cannot be counted would pass without limits.
var ErrStateFull = errors.New("relay: the state has no room for another device")

// stateKey is what a state knows a device by.
func stateKey(device string) string {
	sum := sha256.Sum256([]byte(device))
	return hex.EncodeToString(sum[:16])
}

// DefaultMaxDevices is how many devices a relay's own [MemoryState] keeps.
const DefaultMaxDevices = 100_000

// A MemoryState keeps devices in memory, each for as long as it matters: half an hour after the last page, usually. A
// device takes some 250 bytes.
type MemoryState struct {
	maxDevices int64
	seed       maphash.Seed
	devices    atomic.Int64
	shards     [64]memoryShard

	mu    sync.Mutex
	swept time.Time   // when all shards last were
	timer *time.Timer // of the next sweep; nil while there is nothing to sweep
}

type memoryShard struct {
	mu      sync.Mutex
	records map[string]memoryRecord
}

type memoryRecord struct {
	record []byte
	until  int64 // Unix time in nanoseconds
	stored int64
}

// sweepInterval is how often devices are forgotten that no longer matter.
const sweepInterval = 5 * time.Minute

// NewMemoryState makes an empty state for at most so many devices at once, at least one.
func NewMemoryState(maxDevices int) (*MemoryState, error) {
	if maxDevices < 1 {
		return nil, fmt.Errorf("relay: NewMemoryState: cannot keep %d devices, it takes at least one", maxDevices)
	}
	return &MemoryState{maxDevices: int64(maxDevices), seed: maphash.MakeSeed()}, nil
}

// Devices is how many devices the state keeps now.
func (s *MemoryState) Devices() int { return int(s.devices.Load()) }

// Update is [State.Update].
func (s *MemoryState) Update(_ context.Context, now time.Time, key string, change ChangeFunc) error {
	shard := &s.shards[maphash.String(s.seed, key)%uint64(len(s.shards))]
	if full := s.update(shard, now, key, change); !full {
		return nil
	}
	// A flood of new devices must not make each post go through all of them.
	s.mu.Lock()
	sweep := now.Sub(s.swept).Abs() >= time.Second
	if sweep {
		s.swept = now
	}
	s.mu.Unlock()
	if sweep {
		s.sweep(now)
		if full := s.update(shard, now, key, change); !full {
			return nil
		}
	}
	return ErrStateFull
}

func (s *MemoryState) update(shard *memoryShard, now time.Time, key string, change ChangeFunc) (full bool) {
	shard.mu.Lock()
	defer shard.mu.Unlock()
	kept, known := shard.records[key]
	if known && kept.forgotten(now) {
		delete(shard.records, key)
		s.devices.Add(-1)
		kept, known = memoryRecord{}, false
	}
	if !known && s.devices.Add(1) > s.maxDevices {
		s.devices.Add(-1)
		return true
	}
	changed, until := change(kept.record)
	if changed == nil {
		delete(shard.records, key)
		s.devices.Add(-1)
		return false
	}
	if !bytes.Equal(changed, kept.record) {
		changed = bytes.Clone(changed) // without the room that it grew in
	}
	if shard.records == nil {
		shard.records = make(map[string]memoryRecord)
	}
	shard.records[key] = memoryRecord{changed, until.UnixNano(), now.UnixNano()}
	if !known {
		s.arm()
	}
	return false
}

// forgotten reports whether a record is past its time. When the clock was set back, what was left of that time begins
// anew.
func (r *memoryRecord) forgotten(now time.Time) bool {
	at := now.UnixNano()
	if back := r.stored - at; back > 0 {
		r.stored, r.until = at, r.until-back
	}
	return at >= r.until
}

// arm sees to it that a sweep is due.
func (s *MemoryState) arm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil {
		s.timer = time.AfterFunc(sweepInterval, func() {
			s.mu.Lock()
			s.timer = nil
			s.mu.Unlock()
			if s.sweep(time.Now()) > 0 {
				s.arm()
			}
		})
	}
}

// sweep forgets what no longer matters and returns how many devices are left.
func (s *MemoryState) sweep(now time.Time) (left int64) {
	for i := range s.shards {
		shard := &s.shards[i]
		shard.mu.Lock()
		before := len(shard.records)
		for key, record := range shard.records {
			if record.forgotten(now) {
				delete(shard.records, key)
			} else {
				shard.records[key] = record
			}
		}
		after := len(shard.records)
		if after < before/2 { // a map never shrinks
			kept := make(map[string]memoryRecord, after)
			for key, record := range shard.records {
				kept[key] = record
			}
			shard.records = kept
		}
		s.devices.Add(int64(after - before))
		shard.mu.Unlock()
	}
	return s.devices.Load()
}
