package verify

import "time"

// Sleep makes v's machine as it is after it was suspended for d.
func (v *Verifier) Sleep(d time.Duration) {
	v.keys.mu.Lock()
	defer v.keys.mu.Unlock()
	v.keys.idle = v.keys.idle.Slept(d)
	v.keys.held.expires, v.keys.held.ends = v.keys.held.expires.Slept(d), v.keys.held.ends.Slept(d)
}
