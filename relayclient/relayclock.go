package relayclient

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/sealpush/sealpush/internal/clock"
)

const (
	maxSkew       = 5 * time.Minute // half of payload.FreshFor, for an alert is some time on its way, too
	skewToldAgain = time.Hour
)

// A relayClock compares this machine's clock with the relay's. Phones show an alert by the time within it, and theirs
// is rarely wrong.
type relayClock struct {
	mu    sync.Mutex
	quiet clock.Deadline // until then the log has it already
}

// check says at most once an hour that the clock of the relay, which has just answered with header, is far from ours.
func (r *relayClock) check(ctx context.Context, c *Client, header http.Header) {
	theirs, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return // not every server says
	}
	now := time.Now()
	ahead := now.Sub(theirs).Round(time.Second)
	if ahead.Abs() <= maxSkew || !r.speak(now) {
		return
	}
	c.logLine(ctx, slog.LevelWarn, "this machine's clock is far from the relay's, and phones show alerts as outdated or for too long",
		slog.String("relay", c.relay.display), slog.Duration("ahead", ahead))
}

func (r *relayClock) speak(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.quiet.Reached() {
		return false
	}
	r.quiet = clock.NewDeadline(now, skewToldAgain)
	return true
}
