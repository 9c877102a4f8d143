package pairing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sealpush/sealpush/internal/clock"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

// For how long alerts are sent by a copy of the store, and for how long they wait for a newer one.
const (
	mirrorAge = 60 * time.Second // the age at which the copy is read anew
	quietTime = 5 * time.Second  // the time without a read after a failure, or after the store had nobody to page
	copyWait  = 2 * time.Second  // how long an alert waits for a newer copy when there is one already
)

// errSlow is the cause of ErrUnavailable when an alert is sent by the copy because the store has not answered yet.
var errSlow = errors.New("the store has not answered yet")

// Recipients is what an alert needs: the phones to page and the salt. It can be used whatever Err is. When Err is nil,
// an empty Devices means that nobody can be paged, and an empty Skipped too that no phone is paired.
type Recipients struct {
	Devices []Device    // one for each phone, the first paired first; the slice belongs to the caller
	Skipped []error     // why each of the other paired phones cannot be paged from here, as Device.Unusable
	Salt    secret.Text // of the collapse ids; never empty
	Err     error       // wraps ErrUnavailable when the store did not answer and Devices are the last known ones
}

// mirror is the copy of the store that alerts are sent by. Its zero value is one never read.
type mirror struct {
	mu      sync.Mutex
	ownSalt secret.Text // of this process, until the store yields one
	salt    secret.Text // of the store; once known, it stays
	devices []Device    // as last read, with this process's own writes since
	page    []Device    // those that alerts are sent to

	began  time.Time      // when the read that gave the copy began
	reads  int            // how many reads became the copy
	writes int            // of this process: a read that was under way during one may lack it
	stale  clock.Deadline // when the store must be read anew; reached when it was never read

	err     error          // why the last read failed; nil when it did not
	retryAt clock.Deadline // after a failure, when the store is asked again
	refresh *refresh       // the read in flight for alerts; nil when there is none

	told        []string // the findings that the log already has
	foreignTold []string // the devices of foreign suites that the log already has
	saltTold    bool     // the log has said that there is no salt
}

// refresh is one read of the store for all alerts that wait for it.
type refresh struct {
	since  time.Time     // when waiting for it began; with a copy in hand, all alerts together wait copyWait
	loaded chan struct{} // closed when there is a copy (the salt may come later), or the read failed
	done   chan struct{} // closed at its end
}

// Recipients returns the phones to page and the salt of their collapse ids, for the path of an alert: it never fails.
//
// It answers from a copy of the store that is at most 60 seconds old, or 5 seconds when it had nobody to page, and
// reads a new one when it is older. Whatever else this Registry reads or writes changes the copy at once. When the
// store does not answer, alerts that have somebody to page by the old copy wait for it 2 seconds together, and each at
// most a quarter of what remains until its context's deadline; the others wait 10 seconds at most. For 5 seconds after
// a failure the store is not asked; the answer is what was last known, and the log says that the registry is
// unavailable. Until the store has given a salt, the answer has a salt of this process's own, and the log says what
// that costs. When ctx ends, the answer is what is known by then.
//
// A phone that the registry holds twice is paged once, by the record that was paired last: what was sealed to an older
// key could not be opened, and the relay would take one of the two for a repetition of the other.
func (r *Registry) Recipients(ctx context.Context) Recipients {
	ctx = orBackground(ctx)
	m := &r.mirror
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.stale.Reached() {
		return m.recipients(nil)
	}
	if m.refresh == nil {
		if m.err != nil && !m.retryAt.Reached() {
			return m.recipients(m.err)
		}
		m.refresh = &refresh{time.Now(), make(chan struct{}), make(chan struct{})}
		go r.readForAlerts(context.WithoutCancel(ctx), m.refresh) // it serves all callers, so it must not end with the first one's context
	}
	inFlight := m.refresh
	slow := m.wait(ctx, inFlight)
	switch {
	case !m.stale.Reached():
		return m.recipients(nil)
	case m.refresh == inFlight && !closed(inFlight.loaded):
		return m.recipients(unavailable(slow))
	}
	return m.recipients(m.err)
}

// wait waits for the end of a refresh, or until an alert is to be sent by the copy there is. It returns why it did not
// wait longer. m.mu is held, and unlocked during the wait.
func (m *mirror) wait(ctx context.Context, inFlight *refresh) error {
	wait := func(end <-chan struct{}, patience time.Duration) error {
		m.mu.Unlock()
		defer m.mu.Lock()
		select {
		case <-end:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(patience):
			return errSlow
		}
	}
	if len(m.page) == 0 {
		if err := wait(inFlight.loaded, storeWait+time.Second); err != nil { // the refresh itself ends earlier
			return err
		}
	}
	patience := copyWait - time.Since(inFlight.since)
	if deadline, ok := ctx.Deadline(); ok {
		patience = min(patience, time.Until(deadline)/4)
	}
	return wait(inFlight.done, patience)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// Salt returns the salt of the installation's collapse ids, as [Registry.Recipients] does.
func (r *Registry) Salt(ctx context.Context) secret.Text { return r.Recipients(ctx).Salt }

// readForAlerts reads the store into the mirror, within storeWait.
func (r *Registry) readForAlerts(ctx context.Context, inFlight *refresh) {
	ctx, cancel := context.WithTimeoutCause(ctx, storeWait, errSilent)
	defer cancel()
	var err, saltErr error
	for taken := false; !taken && err == nil; {
		taken, saltErr, err = r.readOnce(ctx, inFlight)
	}
	r.logRead(ctx, err, saltErr)

	m := &r.mirror
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err, m.retryAt = err, clock.NewDeadline(time.Now(), quietTime)
	m.refresh = nil
	if !closed(inFlight.loaded) {
		close(inFlight.loaded)
	}
	close(inFlight.done)
}

// readOnce reads the store once. The result is not used when this process wrote meanwhile. The devices are used even
// without a salt, so a failure to get one is a separate error.
func (r *Registry) readOnce(ctx context.Context, inFlight *refresh) (taken bool, saltErr, err error) {
	m := &r.mirror
	reading := m.begin()
	snap, err := call(ctx, r, Store.Load)
	if err != nil {
		return false, nil, err
	}
	if !r.take(ctx, reading, snap) {
		return false, nil, nil
	}
	m.mu.Lock()
	candidate, known := m.currentSalt(), !snap.Salt.IsZero()
	if !known {
		inFlight.since = time.Now() // there is a copy now
	}
	m.mu.Unlock()
	if known {
		return true, nil, nil
	}
	close(inFlight.loaded)
	salt, saltErr := call(ctx, r, func(store Store, ctx context.Context) (secret.Text, error) {
		return store.EnsureSalt(ctx, candidate)
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	if saltErr == nil {
		m.salt = salt
	}
	if m.writes == reading.writes && m.reads == reading.reads+1 {
		m.stale = m.age(reading.began)
	}
	return true, saltErr, nil
}

// logRead says what a read that failed means for the alerts that are sent meanwhile.
func (r *Registry) logRead(ctx context.Context, err, saltErr error) {
	m := &r.mirror
	m.mu.Lock()
	devices, noSalt := len(m.page), m.salt.IsZero()
	tellSalt := noSalt && !m.saltTold
	m.saltTold = noSalt
	m.mu.Unlock()

	switch {
	case err != nil && devices == 0:
		r.log().WarnContext(ctx, "registry unavailable, no phone is known yet", "error", err)
	case err != nil:
		r.log().WarnContext(ctx, "registry unavailable, alerts go to the last-known devices", "devices", devices, "error", err)
	}
	if tellSalt {
		r.log().WarnContext(ctx, "no collapse salt from the store, using one of this process: until there is one, "+
			"the relay cannot coalesce this node's alerts with other nodes' copies, nor with those from before a restart",
			"error", cmp.Or(saltErr, err))
	}
}

// reading is where the mirror stood when a read of the store began.
type reading struct {
	began         time.Time
	reads, writes int
}

func (m *mirror) begin() reading {
	m.mu.Lock()
	defer m.mu.Unlock()
	return reading{time.Now(), m.reads, m.writes}
}

// take makes what was read the copy that alerts are sent by, and logs what is new about it. It reports false when this
// process wrote since the read began.
func (r *Registry) take(ctx context.Context, from reading, snap Snapshot) bool {
	devices := r.usableHere(snap.Devices)
	m := &r.mirror
	m.mu.Lock()
	if m.writes != from.writes {
		m.mu.Unlock()
		return false
	}
	wasDown, overlapped := m.err != nil, m.reads != from.reads
	m.err, m.stale = nil, clock.Deadline{}
	if !snap.Salt.IsZero() {
		m.salt = snap.Salt
	}
	if !overlapped || from.began.After(m.began) {
		r.setDevices(devices)
		m.began = from.began
		m.reads++
	}
	if !overlapped && !m.salt.IsZero() { // of two reads that overlapped, nobody knows which is the newer
		m.stale = m.age(from.began)
	}
	phones := len(m.page)
	m.mu.Unlock()
	if wasDown {
		r.log().InfoContext(ctx, "registry available again", "devices", phones)
	}
	r.report(ctx)
	return true
}

// usableHere returns the devices of a snapshot as they are listed. To those of a suite that was switched off on this
// node, no alert can be sealed.
func (r *Registry) usableHere(devices []Device) []Device {
	devices = slices.Clone(devices)
	for i := range devices {
		d := &devices[i]
		d.Suite = cmp.Or(d.Suite, d.PublicKey.Suite(), seal.X25519)
		switch {
		case d.Unusable != nil:
		case d.PublicKey.IsZero() || d.PushToken.IsZero():
			d.Unusable = fmt.Errorf("pairing: device with id %q: no public key or no push token", d.ID)
		case r.foreign(*d):
			d.Unusable = fmt.Errorf("pairing: device with id %q: the suite %s is switched off on this node", d.ID, d.Suite)
		}
	}
	sortDevices(devices)
	return devices
}

// foreign reports whether this node does not seal to a device's suite. Another node may.
func (r *Registry) foreign(d Device) bool { return !slices.Contains(r.Suites(), d.Suite) }

// setDevices changes the copy. mirror.mu is held.
func (r *Registry) setDevices(devices []Device) {
	r.mirror.devices = devices
	r.mirror.page, _ = r.latest(devices)
}

// latest returns the devices to page: of the records that hold one phone's push token, the one that was paired last, if
// this node can seal to it. It also names the others. A record that no node can use is ignored.
func (r *Registry) latest(devices []Device) (page []Device, replaced []string) {
	counts := func(d Device) bool { return !d.PushToken.IsZero() && (d.Unusable == nil || r.foreign(d)) }
	newest := map[string]int{}
	for i, d := range devices {
		if j, ok := newest[d.phone()]; counts(d) && (!ok || later(d, devices[j])) {
			newest[d.phone()] = i
		}
	}
	for i, d := range devices {
		j := newest[d.phone()]
		switch {
		case !counts(d):
		case i != j:
			replaced = append(replaced, fmt.Sprintf("%s by %s", printable(d.ID), printable(devices[j].ID)))
		case d.Unusable == nil:
			page = append(page, d)
		}
	}
	return page, replaced
}

// later reports whether a device was paired after another.
func later(a, b Device) bool {
	return cmp.Or(a.updated().Compare(b.updated()), a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID)) > 0
}

// report logs what is wrong with the devices of the copy, each finding once.
func (r *Registry) report(ctx context.Context) {
	var unusable, foreign []string
	m := &r.mirror
	m.mu.Lock()
	for _, d := range m.devices {
		switch {
		case d.Unusable == nil:
		case r.foreign(d):
			foreign = append(foreign, fmt.Sprintf("%s (%s, %s)", printable(d.Name), printable(d.ID), printable(string(d.Suite))))
		default:
			unusable = append(unusable, d.Unusable.Error())
		}
	}
	slices.Sort(foreign)
	_, replaced := r.latest(m.devices)
	told, foreignTold := m.told, m.foreignTold
	m.told, m.foreignTold = slices.Concat(unusable, replaced), foreign
	m.mu.Unlock()

	isTold := func(text string) bool { return slices.Contains(told, text) }
	for _, text := range slices.DeleteFunc(unusable, isTold) {
		r.log().WarnContext(ctx, "a paired device cannot be used: revoke it, or pair it again", "error", text)
	}
	if replaced = slices.DeleteFunc(replaced, isTold); len(replaced) > 0 {
		r.log().WarnContext(ctx, "a phone is paired twice and paged by the newer record: revoke the older", "replaced", replaced)
	}
	switch {
	case slices.Equal(foreign, foreignTold):
	case len(foreign) == 0:
		r.log().InfoContext(ctx, "this node can seal to the suite of every paired phone")
	default:
		r.log().WarnContext(ctx, "phones get no alert from this node, which cannot seal to their suite",
			"devices", foreign, "suites", r.Suites())
	}
}

// age returns when a copy is too old whose read began at a time. At exactly 60 s it is not.
func (m *mirror) age(began time.Time) clock.Deadline {
	if len(m.page) == 0 {
		return clock.NewDeadline(began, quietTime)
	}
	return clock.NewDeadline(began, mirrorAge+1)
}

// recipients and currentSalt are called with m.mu held.

func (m *mirror) recipients(err error) Recipients {
	recipients := Recipients{Devices: slices.Clone(m.page), Salt: m.currentSalt(), Err: err}
	for _, d := range m.devices {
		if d.Unusable != nil {
			recipients.Skipped = append(recipients.Skipped, d.Unusable)
		}
	}
	return recipients
}

func (m *mirror) currentSalt() secret.Text {
	if !m.salt.IsZero() {
		return m.salt
	}
	if m.ownSalt.IsZero() {
		m.ownSalt = newSalt()
	}
	return m.ownSalt
}

// wrote makes a change of this process in the copy. The next alert asks the store, and a read that is under way is
// repeated.
func (r *Registry) wrote(ctx context.Context, change func(devices []Device) []Device) {
	m := &r.mirror
	m.mu.Lock()
	m.writes++
	m.stale = clock.Deadline{}
	r.setDevices(r.usableHere(change(m.devices)))
	m.mu.Unlock()
	r.report(ctx)
}

// outdate makes the next alert ask the store: this process has sent it a change, and may never learn whether it was
// made.
func (m *mirror) outdate() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes++
	m.stale = clock.Deadline{}
}
