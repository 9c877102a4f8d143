package bridge

import "time"

// Sleep makes c's machine as it is after it was suspended for d.
func (c *Client) Sleep(d time.Duration) {
	g := *c.gate.Load()
	g.opens = g.opens.Slept(d)
	c.gate.Store(&g)
}
