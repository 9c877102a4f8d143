package relay

import (
	"sync"
	"time"
)

// A sweeper calls sweep now and then while there is something left to sweep. It
// runs no goroutine in between.
type sweeper struct {
	every time.Duration
	sweep func(now time.Time) (left int)

	mu      sync.Mutex
	timer   *time.Timer // nil when not armed
	stopped bool
}

// arm sees to it that a sweep is due.
func (s *sweeper) arm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer == nil && !s.stopped {
		s.timer = time.AfterFunc(s.every, s.run)
	}
}

func (s *sweeper) run() {
	s.mu.Lock()
	s.timer = nil
	s.mu.Unlock()
	if s.sweep(time.Now()) > 0 {
		s.arm()
	}
}

// stop ends all sweeping.
func (s *sweeper) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.timer != nil {
		s.timer.Stop()
	}
}
