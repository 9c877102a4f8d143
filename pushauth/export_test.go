package pushauth

import "time"

// Sleep makes s's machine as it is after it was suspended for d.
func (s *Source) Sleep(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.retryAt, s.nextDrop = s.retryAt.Slept(d), s.nextDrop.Slept(d)
	if c := s.cached.Load(); c != nil {
		s.cached.Store(&cachedToken{token: c.token, stale: c.stale.Slept(d), dead: c.dead.Slept(d)})
	}
}
