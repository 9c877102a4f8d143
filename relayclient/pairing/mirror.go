package pairing

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sealpush/sealpush/internal/clock"
	"github.com/sealpush/sealpush/secret"
)

// How long the sending path lives on what it has.
const (
	mirrorAge = 60 * time.Second // a copy of the store that is older is read anew
	quietTime = 5 * time.Second  // after a failure, the store is left alone this long
)

// Recipients is what it takes to page: to whom, and under which salt. It is usable whatever Err says; only when Err is
// nil do no Devices mean that no phone is paired. It is a plain value.
type Recipients struct {
	Devices []Device    // the first paired first; the slice belongs to the caller
	Salt    secret.Text // of the collapse ids; never empty
	Err     error       // wraps ErrUnavailable when Devices are the last known ones, for want of an answer from the store
}

// mirror is the copy of the store that alerts are sent by. Its zero value is one never read.
type mirror struct {
	mu         sync.Mutex
	ownSalt    secret.Text    // of this process, until the store yields one
	snapshot   Snapshot       // as last read, with this process's own writes since
	stale      clock.Deadline // from when on it must be read anew; reached when it was never read
	err        error          // why the last read failed; nil when it did not
	retryAt    clock.Deadline // after a failure, from when on the store is asked again
	refreshing chan struct{}  // closed at the end of the read in flight; nil when there is none
	writes     int            // of this process: a read that one of them overlaps may lack it
	reported   []string       // the skipped devices that the log already told of
	saltTold   bool           // that the log told of the missing salt
}

// Recipients returns the phones to page and the salt of their collapse ids, for the path of an alert: it never fails.
//
// It answers from a copy of the store that is at most 60 seconds old, and reads a new one when it is older. A store that
// fails or hangs costs all callers together one wait, of 10 seconds at most, and is then left alone for 5 seconds; the
// answer is what was last known, and the log says that the registry is unavailable. Until the store yields a salt, the
// answer has one of this process, and the log says what that costs. When ctx ends, the answer is what is known by then.
func (r *Registry) Recipients(ctx context.Context) Recipients {
	ctx = orBackground(ctx)
	m := &r.mirror
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.stale.Reached() {
		return m.recipients(nil)
	}
	if m.refreshing == nil {
		if m.err != nil && !m.retryAt.Reached() {
			return m.recipients(m.err)
		}
		m.refreshing = make(chan struct{})
		go r.refresh(context.WithoutCancel(ctx), m.refreshing) // one for all callers, so not to end with the first
	}
	done := m.refreshing
	m.mu.Unlock()
	select {
	case <-done:
	case <-ctx.Done():
	}
	m.mu.Lock()
	if m.refreshing == done {
		return m.recipients(unavailable(context.Cause(ctx)))
	}
	return m.recipients(m.err)
}

// Salt returns the salt of the installation's collapse ids, as [Registry.Recipients] does.
func (r *Registry) Salt(ctx context.Context) secret.Text { return r.Recipients(ctx).Salt }

// refresh reads the store into the mirror, within storeWait, and closes done.
func (r *Registry) refresh(ctx context.Context, done chan struct{}) {
	ctx, cancel := context.WithTimeoutCause(ctx, storeWait, errSilent)
	defer cancel()
	var err, saltErr error
	for current := false; !current && err == nil; {
		current, saltErr, err = r.read(ctx)
	}
	r.logRefresh(ctx, err, saltErr)

	m := &r.mirror
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err, m.retryAt = err, clock.NewDeadline(time.Now(), quietTime)
	m.refreshing = nil
	close(done)
}

// read reads the store once. What it read is not current when this process wrote meanwhile. Devices without a salt
// are better than none: failing to get one is an error apart.
func (r *Registry) read(ctx context.Context) (current bool, saltErr, err error) {
	m := &r.mirror
	m.mu.Lock()
	began, writes, candidate := time.Now(), m.writes, m.salt()
	m.mu.Unlock()

	snap, err := call(ctx, r, Store.Load)
	if err != nil {
		return false, nil, err
	}
	r.logSkipped(ctx, snap.Skipped)
	if snap.Salt.IsZero() {
		snap.Salt, saltErr = call(ctx, r, func(store Store, ctx context.Context) (secret.Text, error) {
			return store.EnsureSalt(ctx, candidate)
		})
	}
	return m.accept(snap, began, writes), saltErr, nil
}

// logRefresh says what a read that failed means for the alerts that are sent meanwhile.
func (r *Registry) logRefresh(ctx context.Context, err, saltErr error) {
	m := &r.mirror
	m.mu.Lock()
	devices, wasDown := len(m.snapshot.Devices), m.err != nil
	noSalt := m.snapshot.Salt.IsZero()
	tellSalt := noSalt && !m.saltTold
	m.saltTold = noSalt
	m.mu.Unlock()

	switch {
	case err != nil && devices == 0:
		r.log().WarnContext(ctx, "registry unavailable, no phone is known yet", "error", err)
	case err != nil:
		r.log().WarnContext(ctx, "registry unavailable, alerts go to the last-known devices", "devices", devices, "error", err)
	case wasDown:
		r.log().InfoContext(ctx, "registry available again", "devices", devices)
	}
	if tellSalt {
		r.log().WarnContext(ctx, "no collapse salt from the store, using one of this process: until there is one, "+
			"the relay cannot coalesce this node's alerts with other nodes' copies, nor with those from before a restart",
			"error", cmp.Or(saltErr, err))
	}
}

// logSkipped tells once of each device that the store cannot use.
func (r *Registry) logSkipped(ctx context.Context, skipped []error) {
	texts := make([]string, len(skipped))
	for i, err := range skipped {
		texts[i] = err.Error()
	}
	m := &r.mirror
	m.mu.Lock()
	known := m.reported
	m.reported = texts
	m.mu.Unlock()
	for _, text := range texts {
		if !slices.Contains(known, text) {
			r.log().WarnContext(ctx, "a paired device cannot be used: revoke it, or pair it again", "error", text)
		}
	}
}

// recipients, salt and changed want m.mu held.

func (m *mirror) recipients(err error) Recipients {
	return Recipients{Devices: slices.Clone(m.snapshot.Devices), Salt: m.salt(), Err: err}
}

func (m *mirror) salt() secret.Text {
	if m.snapshot.Salt.IsZero() {
		if m.ownSalt.IsZero() {
			m.ownSalt = newSalt()
		}
		return m.ownSalt
	}
	return m.snapshot.Salt
}

// changed notes a write of this process: the store must be asked again, and a read that is under way be repeated.
func (m *mirror) changed() {
	m.writes++
	m.stale = clock.Deadline{}
}

// accept takes over what was read, unless this process wrote since the read began. A salt, once known, stays.
func (m *mirror) accept(snap Snapshot, began time.Time, writes int) bool {
	sortDevices(snap.Devices)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.writes != writes {
		return false
	}
	if snap.Salt.IsZero() {
		snap.Salt = m.snapshot.Salt
	}
	m.snapshot, m.stale = snap, clock.NewDeadline(began, mirrorAge+1) // at 60 s sharp it still serves
	return true
}

func (m *mirror) paired(d Device) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changed()
	devices := slices.DeleteFunc(m.snapshot.Devices, func(other Device) bool { return other.ID == d.ID })
	m.snapshot.Devices = append(devices, d)
	sortDevices(m.snapshot.Devices)
}

func (m *mirror) revoked(id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changed()
	m.snapshot.Devices = slices.DeleteFunc(m.snapshot.Devices, func(d Device) bool { return d.ID == id })
}
