package verify

import "time"

// Sleep makes v's machine as it is after it was suspended for d.
func (v *Verifier) Sleep(d time.Duration) {
	v.keys.mu.Lock()
	defer v.keys.mu.Unlock()
	v.keys.expires, v.keys.idle = v.keys.expires.Slept(d), v.keys.idle.Slept(d)
}
