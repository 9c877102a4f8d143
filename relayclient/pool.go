package relayclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/sealpush/sealpush/internal/clock"
)

// How a pool dials while the relay cannot be reached, and how long it keeps connections that are not in use.
const (
	minBackoff = 50 * time.Millisecond // before the second dial; doubled for each one after that
	maxBackoff = time.Second
	settleTime = 20 * time.Millisecond // after a POST, in which HTTP/2 has more to say of it
	slowDial   = time.Second           // after which a dial is no longer waited for: there may be another one beside it

	maxIdle     = MaxInFlight      // HTTP/1.1 connections that are kept
	idleDefault = time.Second      // for which an HTTP/1.1 connection is used again, unless the relay announces a time
	idleLongest = 60 * time.Second // whatever the relay announces; for HTTP/2 too
)

// A pool has the connections of a [Client] to its relay, all in one generation. When a POST times out, the other
// connections of its generation may be broken by the same cause: they are not used again, each is closed when its last
// POST has ended, and the next POST starts a new generation.
//
// While the relay is known to take connections, POSTs that find none dial at once, as many as are needed: one for each
// over HTTP/1.1, one for all of them over HTTP/2. Before the first connection and after a failure, one dial at a time
// finds out whether the relay can be reached, and the others wait for it; a second one beside it if it takes a second.
type pool struct {
	patience   time.Duration // bounds a dial
	backoffMax time.Duration
	ctx        context.Context // of the dials; ends when the pool is closed
	cancel     context.CancelFunc

	mu         sync.Mutex
	dialer     *dialer
	generation int
	idle       []*conn // HTTP/1.1, the one used last at the end
	shared     []*conn // HTTP/2, in use or not
	waiting    []*waiter
	dialing    int       // dials in progress that are not slow
	width      int       // how many POSTs a connection takes at once
	probing    bool      // no connection was made since the start, or since the latest failure
	failures   int       // since the latest answer
	failedAt   time.Time // the latest of them
	failure    error
	sends      int         // Sends in progress
	closed     bool        // no further Send begins
	retry      *time.Timer // ends the pause after a failure
	expiry     *time.Timer // closes idle connections; nil when there are none
}

// A sending is a Send in progress. Its fields are guarded by pool.mu.
type sending struct {
	pool     *pool
	quota    *quota
	patience time.Duration

	waiters  int // of the Send's POSTs, those without a connection
	inFlight int // and those with one

	// The patience is used up only while there are waiters and nothing is in flight.
	left  time.Duration
	since time.Time
	timer *time.Timer // nil while it is not being used up

	cause error // why the latest POST that was not sent needs another connection
	err   error // what a POST gets for which there is no connection at once; nil until the patience has ended
}

// A quota counts the open connections of a Send: those that it is dialing, and those of which it was the last user.
type quota struct{ open, limit int }

// A waiter is a POST without a connection.
type waiter struct {
	sending *sending
	paused  bool          // not yet to be served
	served  chan struct{} // closed when one of the following is set
	conn    *conn
	err     error
}

func newPool(d *dialer, patience time.Duration) *pool {
	p := &pool{dialer: d, patience: patience, width: 1, probing: true}
	p.backoffMax = max(minBackoff, min(maxBackoff, patience/10))
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// begin returns a sending with at most limit connections open. It must be ended.
func (p *pool) begin(limit int, patience time.Duration) (*sending, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	p.sends++
	p.failures = min(p.failures, 1) // what others have waited for is no reason for a long pause
	return &sending{pool: p, quota: &quota{limit: limit}, patience: patience, left: patience}, nil
}

func (s *sending) end() {
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sends--
	p.trimIdle()
	if p.sends == 0 {
		p.failures, p.failedAt = 0, time.Time{} // begin anew, without the pauses of an outage
		p.closeIfDue()
	}
}

// close closes the connections when the last Send has ended.
func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.closeIfDue()
}

func (p *pool) closeIfDue() {
	if p.closed && p.sends == 0 {
		p.cancel()
		p.retire()
	}
}

// connect returns a connection for one POST. It is the tries-th time that this POST needs one: the connection before
// was lost, for the given cause, when nothing had been sent yet.
func (s *sending) connect(ctx context.Context, tries int, cause error) (*conn, error) {
	p := s.pool
	p.mu.Lock()
	if tries > 1 {
		s.cause = cause
	} else if c := p.take(s); c != nil {
		p.mu.Unlock()
		return c, nil
	}
	if s.err != nil {
		p.mu.Unlock()
		return nil, s.err
	}
	w := &waiter{sending: s, paused: tries > 2, served: make(chan struct{})}
	if w.paused {
		pause := time.AfterFunc(p.backoff(tries-2), func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			w.paused = false
			p.dispatch()
		})
		defer pause.Stop()
	}
	p.waiting = append(p.waiting, w)
	s.waiters++
	s.setClock()
	p.dispatch()
	p.mu.Unlock()

	select {
	case <-w.served:
		return w.conn, w.err
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.conn != nil {
		s.untake(w.conn)
	} else {
		p.serve(w, nil, ctx.Err())
	}
	return nil, ctx.Err()
}

// untake releases a connection on which nothing was sent.
func (s *sending) untake(c *conn) {
	c.http.Release()
	s.pool.release(s, c, c.reusable())
}

// giveBack takes back a connection from connect on which nothing was sent.
func (s *sending) giveBack(c *conn) {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.untake(c)
}

// serve ends w's waiting. It does nothing if that has ended already.
func (p *pool) serve(w *waiter, c *conn, err error) {
	for i := range p.waiting {
		if p.waiting[i] == w {
			p.waiting = slices.Delete(p.waiting, i, i+1)
			w.conn, w.err = c, err
			close(w.served)
			w.sending.waiters--
			w.sending.setClock()
			return
		}
	}
}

// dispatch gives waiting POSTs the connections that are free, and dials for the others. It follows every change.
func (p *pool) dispatch() {
	for i := 0; i < len(p.waiting); {
		w := p.waiting[i]
		if w.paused {
			i++
		} else if c := p.take(w.sending); c != nil {
			p.serve(w, c, nil)
		} else if w.sending.quota.open < w.sending.quota.limit {
			break // nothing is free
		} else {
			i++
		}
	}
	p.dialForWaiting()
}

// take returns a connection that is free, if there is one that s may have.
func (p *pool) take(s *sending) *conn {
	for i := 0; i < len(p.shared); i++ {
		c := p.shared[i]
		switch {
		case c.inUse == 0 && c.answered && c.settled.Reached() && hasNews(c.socket.Conn):
			continue // it may be closing: let its reader find out
		case c.http.Reserve() == nil:
			c.inUse++
			s.inFlight++
			s.setClock()
			return c
		case c.inUse == 0: // it is not full, it is closed or about to be
			p.shared = slices.Delete(p.shared, i, i+1)
			p.lose(c)
			i--
		}
	}
	for i := len(p.idle) - 1; i >= 0; i-- {
		c := p.idle[i]
		closed, stale := c.isClosing(), c.idleUntil.Reached()
		if !closed && !stale && c.quota != s.quota && s.quota.open >= s.quota.limit {
			continue // its own are on their way
		}
		p.idle = slices.Delete(p.idle, i, i+1)
		switch {
		case closed:
			p.lose(c)
			continue
		case stale:
			p.discard(c)
			continue
		}
		c.quota.open--
		c.quota = s.quota
		c.quota.open++
		c.inUse++
		s.inFlight++
		s.setClock()
		return c
	}
	return nil
}

// release takes back what take returned.
func (p *pool) release(s *sending, c *conn, reusable bool) {
	c.inUse--
	s.inFlight--
	s.setClock()
	switch {
	case c.generation != p.generation:
		if c.inUse == 0 {
			p.discard(c)
		}
	case c.shared:
		p.width = c.width()
		c.settled = clock.NewDeadline(time.Now(), settleTime)
	case reusable:
		p.keep(c)
	default:
		p.discard(c)
	}
	p.dispatch()
}

// keep puts an HTTP/1.1 connection among the idle ones.
func (p *pool) keep(c *conn) {
	c.idleUntil = clock.NewDeadline(time.Now(), c.idleLimit)
	p.idle = append(p.idle, c)
	p.trimIdle()
	if p.expiry == nil {
		p.expiry = time.AfterFunc(c.idleLimit, p.expire)
	}
}

// trimIdle closes the connections that have been idle for longest, of those that are too many for the Sends in
// progress.
func (p *pool) trimIdle() {
	for len(p.idle) > maxIdle*max(1, p.sends) {
		p.discard(p.idle[0])
		p.idle = slices.Delete(p.idle, 0, 1)
	}
}

// expire closes the connections that have been idle for too long.
func (p *pool) expire() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.expiry == nil {
		return
	}
	p.expiry = nil
	next := idleLongest
	p.idle = slices.DeleteFunc(p.idle, func(c *conn) bool {
		if c.idleUntil.Reached() {
			p.discard(c)
			return true
		}
		next = min(next, c.idleUntil.Remaining())
		return false
	})
	if len(p.idle) > 0 {
		p.expiry = time.AfterFunc(next, p.expire)
	}
}

// lose discards a connection that the relay has closed. If it never answered on it, that is as good as no connection.
func (p *pool) lose(c *conn) {
	if !c.answered {
		p.fail(errHangsUp)
	}
	p.discard(c)
}

var errHangsUp = errors.New("the relay hangs up on one connection after another")

func (p *pool) discard(c *conn) {
	c.quota.open--
	go c.http.Close() // which for TLS writes, and so may block
}

// retireIfLate starts a new generation when a POST on c has timed out, unless c's is over already.
func (p *pool) retireIfLate(c *conn, post context.Context) {
	if c.generation == p.generation && errors.Is(post.Err(), context.DeadlineExceeded) {
		p.retire()
	}
}

// retire ends the generation of the connections that there are.
func (p *pool) retire() {
	for _, c := range p.idle {
		p.discard(c)
	}
	for _, c := range p.shared {
		if c.inUse == 0 {
			p.discard(c)
		}
	}
	p.generation++
	p.idle, p.shared = nil, nil
	if p.expiry != nil {
		p.expiry.Stop()
		p.expiry = nil
	}
}

// dialForWaiting starts the dials that the waiting POSTs need and that may start now.
func (p *pool) dialForWaiting() {
	if p.probing && len(p.waiting) > 0 {
		if pause := time.Until(p.failedAt.Add(p.backoff(p.failures))); pause > 0 {
			if p.retry == nil {
				p.retry = time.AfterFunc(pause, p.endPause)
			} else {
				p.retry.Reset(pause)
			}
			return
		}
	}
	places := p.dialing * p.width // on the connections to come
	for _, w := range p.waiting {
		quota := w.sending.quota
		switch {
		case p.probing && p.dialing > 0:
			return
		case w.paused:
		case places > 0:
			places--
		case quota.open < quota.limit:
			quota.open++
			p.dialing++
			places += p.width - 1
			go p.open(p.dialer, quota)
		}
	}
}

func (p *pool) endPause() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dispatch()
}

// open makes one connection.
func (p *pool) open(d *dialer, q *quota) {
	ctx, cancel := context.WithTimeout(p.ctx, p.patience)
	defer cancel()
	over := false // it counts no longer
	timer := time.AfterFunc(slowDial, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !over {
			over = true
			p.dialing--
			p.dispatch()
		}
	})
	c, err := d.connect(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if timer.Stop(); !over {
		over = true
		p.dialing--
	}
	switch {
	case err != nil:
		q.open--
		p.fail(err)
		if isFinal(err) {
			p.giveUp(err)
		}
	case p.closed && p.sends == 0:
		c.quota = q
		p.discard(c)
	default:
		p.probing, p.width = false, c.width()
		c.quota, c.generation = q, p.generation
		if c.shared {
			p.shared = append(p.shared, c)
		} else {
			p.keep(c)
		}
	}
	p.dispatch()
}

// fail notes that the relay could not be reached. Failures of dials that ran at the same time are one.
func (p *pool) fail(err error) {
	p.probing, p.failure = true, err
	if now := time.Now(); p.failures == 0 || now.Sub(p.failedAt) >= p.backoff(p.failures) {
		p.failures++
		p.failedAt = now
	}
}

// backoff returns how long to wait after so many failures.
func (p *pool) backoff(failures int) time.Duration {
	return min(p.backoffMax, minBackoff<<min(max(failures-1, 0), 10))
}

// giveUp ends the patience of all: there is no use in dialing again.
func (p *pool) giveUp(err error) {
	for _, w := range slices.Clone(p.waiting) {
		w.sending.err = err
		p.serve(w, nil, err)
	}
}

// setClock lets the patience run, or stops it.
func (s *sending) setClock() {
	running := s.waiters > 0 && s.inFlight == 0 && s.err == nil
	if running == (s.timer != nil) {
		return
	}
	if !running {
		s.timer.Stop()
		s.timer = nil
		s.left -= time.Since(s.since)
		return
	}
	s.since = time.Now()
	var timer *time.Timer
	timer = time.AfterFunc(s.left, func() {
		s.pool.mu.Lock()
		defer s.pool.mu.Unlock()
		if s.timer == timer {
			s.giveUp()
		}
	})
	s.timer = timer
}

// giveUp ends the patience of one Send.
func (s *sending) giveUp() {
	cause := s.cause
	if p := s.pool; cause == nil && p.probing {
		cause = p.failure
	}
	if cause == nil {
		cause = context.DeadlineExceeded
	}
	s.err = fmt.Errorf("no connection within %v: %w", s.patience, cause)
	for _, w := range slices.Clone(s.pool.waiting) {
		if w.sending == s {
			s.pool.serve(w, nil, s.err)
		}
	}
}

// roundTrip sends a POST on c, which connect returned, and releases c when it has failed or when the answer's body has
// been closed. The error is an unsentError if the relay has not seen the POST.
func (s *sending) roundTrip(c *conn, req *http.Request) (*http.Response, error) {
	resp, err := c.roundTrip(req)
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		_, unsent := err.(*unsentError)
		switch {
		case req.Context().Err() != nil:
			p.retireIfLate(c, req.Context())
		case unsent && !c.answered:
			p.fail(err) // as if there had been no connection
		}
		p.release(s, c, false)
		return nil, err
	}
	c.answered, c.refused, c.idleLimit = true, resp.StatusCode/100 != 2, idleLimitOf(resp.Header)
	p.failures = 0
	s.left, s.cause = s.patience, nil // the relay was there a moment ago
	resp.Body = &answerBody{resp.Body, s, c, req.Context()}
	return resp, nil
}
