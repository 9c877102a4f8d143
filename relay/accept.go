package relay

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"net/http"
	"time"
)

// stateTimeout bounds a call of the state, so that a database that does not answer holds up no page.
const stateTimeout = 2 * time.Second

// pollInterval is how often the state is asked how another process's forward ended.
const pollInterval = 250 * time.Millisecond

// A forwarding is a forward of this process that others wait for.
type forwarding struct {
	done    chan struct{}
	failure *failedForward // once done; nil if the push service took the page
}

// accept holds an envelope against the policy and forwards it if it passes. It does not end with the request: the
// daemon will not post the page again.
func (r *Relay) accept(e Envelope, device string) *reply {
	if r.config.policy == nil {
		return answerTo(r.forward(e))
	}
	if failure := r.find(device); failure != nil {
		return answerTo(failure)
	}
	page := newPage(device, e.CollapseID)
	for {
		now := time.Now()
		d, err := r.admit(now, page)
		switch {
		case errors.Is(err, ErrStateFull):
			return refuse(http.StatusServiceUnavailable, "the relay serves as many devices as it can")
		case err != nil:
			r.config.log().Warn("relay: state not reached, forwarding without limits", "collapse_id", e.CollapseID, "error", err)
			return answerTo(r.forward(e))
		}
		switch d.outcome {
		case coalesced, suppressed:
			return took(d.outcome)
		case limited:
			refusal := refuse(http.StatusTooManyRequests, "device is paged too often")
			refusal.retryAfter = max(d.wait, time.Second)
			return refusal
		case digested:
			return r.digest(e, d.digestDue)
		case forwarded:
			return answerTo(r.forwardUnderLease(e, page, now, d.lease))
		}
		failure, known, err := r.await(page, d.lease)
		switch {
		case err != nil:
			return refuse(http.StatusServiceUnavailable, "the relay is closed")
		case !known: // The process that forwarded it is gone: so try again.
		case failure != nil:
			return answerTo(failure)
		default:
			return took(coalesced)
		}
	}
}

// find asks a forwarder that knows which devices there are.
func (r *Relay) find(device string) *failedForward {
	finder, ok := r.config.forwarder.(Finder)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(r.life, stateTimeout)
	defer cancel()
	return failedBy(finder.Find(ctx, device))
}

// A page is what the state is asked about: one collapse id on one device.
type page struct {
	key string
	id  [16]byte
}

func newPage(device, collapseID string) page {
	p := page{key: stateKey(device)}
	hex.Decode(p.id[:], []byte(collapseID)) // 32 hex digits, as was checked
	return p
}

// admit asks the state what becomes of a post. What it allows to be forwarded is entered among the forwards of this
// process before anybody can wait for it.
func (r *Relay) admit(now time.Time, p page) (d decision, err error) {
	lease := newLease()
	r.mu.Lock()
	r.underway[lease] = &forwarding{done: make(chan struct{})}
	r.mu.Unlock()
	err = r.update(now, p.key, func(h *deviceHistory) (changed bool) {
		d, changed = h.admit(now.UnixNano(), p.id, lease, r.config.policy)
		return changed
	})
	if err != nil || d.outcome != forwarded {
		r.mu.Lock()
		delete(r.underway, lease)
		r.mu.Unlock()
	}
	return d, err
}

func newLease() uint64 {
	var raw [8]byte
	for {
		rand.Read(raw[:])
		if lease := binary.LittleEndian.Uint64(raw[:]); lease != 0 {
			return lease
		}
	}
}

// update changes the history of a device.
func (r *Relay) update(now time.Time, key string, change func(h *deviceHistory) (changed bool)) error {
	ctx, cancel := context.WithTimeout(context.Background(), stateTimeout)
	defer cancel()
	var broken error
	err := r.config.state.Update(ctx, now, key, func(record []byte) ([]byte, time.Time) {
		var h deviceHistory
		if h, broken = decodeHistory(record); broken != nil {
			return record, now.Add(leaseTime) // as it was
		}
		changed := change(&h)
		until := h.forget(now.UnixNano(), r.config.policy)
		switch {
		case until <= now.UnixNano():
			return nil, now
		case !changed:
			return record, time.Unix(0, until)
		}
		return h.encode(), time.Unix(0, until)
	})
	return errors.Join(broken, err)
}

// forwardUnderLease forwards and says in the state how it ended.
func (r *Relay) forwardUnderLease(e Envelope, p page, admitted time.Time, lease uint64) (failure *failedForward) {
	settled := false
	settle := func() {
		now := time.Now()
		err := r.update(now, p.key, func(h *deviceHistory) bool {
			h.settle(now.UnixNano(), admitted.UnixNano(), p.id, lease, failure, r.config.policy)
			return true
		})
		if err != nil {
			r.config.log().Warn("relay: state not reached, the forward is not recorded", "collapse_id", e.CollapseID, "error", err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		mine := r.underway[lease]
		delete(r.underway, lease)
		mine.failure = failure
		close(mine.done)
	}
	defer func() {
		if !settled { // the forwarder panics
			failure = &failedForward{status: http.StatusBadGateway}
			settle()
		}
	}()
	failure = r.forward(e)
	settle()
	settled = true
	return failure
}

// await waits until a forward has ended and returns its failure, nil if the push service took the page. Known is false
// when nobody says how it ended. The error means that the relay was closed.
func (r *Relay) await(p page, lease uint64) (failure *failedForward, known bool, err error) {
	r.mu.Lock()
	local := r.underway[lease]
	r.mu.Unlock()
	if local != nil {
		select {
		case <-local.done:
			return local.failure, true, nil
		case <-r.life.Done():
			return nil, false, r.life.Err()
		}
	}
	timer := time.NewTimer(pollInterval)
	defer timer.Stop()
	for {
		var ended bool
		now := time.Now()
		err := r.update(now, p.key, func(h *deviceHistory) bool {
			found := h.page(p.id)
			ended = found == nil || found.lease != lease || now.UnixNano() >= found.leaseUntil
			if ended && found != nil && found.failed.lease == lease {
				failed := found.failed
				failure = &failed
			}
			return false
		})
		if err != nil || ended {
			return failure, failure != nil, nil // without a failure, admit says how it is
		}
		select {
		case <-timer.C:
			timer.Reset(pollInterval)
		case <-r.life.Done():
			return nil, false, r.life.Err()
		}
	}
}

// forward hands a page to the push service.
func (r *Relay) forward(e Envelope) *failedForward {
	ctx, cancel := context.WithTimeout(r.life, leaseTime)
	defer cancel()
	start := r.config.observedNow()
	err := r.config.forwarder.Forward(ctx, e)
	r.config.observeForward("forward", err, start)
	if err != nil {
		r.config.log().Warn("relay: page not forwarded", "collapse_id", e.CollapseID, "error", err)
	}
	return failedBy(err)
}

// failedBy says what an error of a forwarder means for the daemon.
func failedBy(err error) *failedForward {
	if err == nil {
		return nil
	}
	failure, ok := errors.AsType[*ForwardError](err)
	if !ok {
		failure = &ForwardError{}
	}
	return &failedForward{status: failure.status(), reason: failure.Reason, retryAfter: failure.RetryAfter}
}

// digest answers a post over the quota. A digest that is due was marked as sent before, so that trouble with it uses up
// its interval.
func (r *Relay) digest(e Envelope, due bool) *reply {
	if !due {
		return took(digested)
	}
	ctx, cancel := context.WithTimeout(r.life, leaseTime)
	defer cancel()
	start := r.config.observedNow()
	err := r.config.forwarder.(Digester).ForwardDigest(ctx, e.Device) // as New has checked
	r.config.observeForward("digest", err, start)
	if err != nil {
		r.config.log().Warn("relay: digest not forwarded", "collapse_id", e.CollapseID, "error", err)
	}
	if failure, ok := errors.AsType[*ForwardError](err); ok && failure.Status == http.StatusGone {
		return answerTo(&failedForward{status: failure.Status, reason: failure.Reason})
	}
	return took(digested)
}

// answerTo says how a forward ended.
func answerTo(failure *failedForward) *reply {
	if failure == nil {
		return took(forwarded)
	}
	refusal := refuse(failure.status, "the push service did not take the message")
	refusal.Reason = failure.reason
	refusal.retryAfter = failure.retryAfter
	return refusal
}
