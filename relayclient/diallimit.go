package relayclient

import (
	"context"
	"errors"
	"time"

	"golang.org/x/time/rate"
)

// How fast a transport dials: an alert takes MaxInFlight connections at most, and
// a relay without keep-alive one for each phone.
const (
	dialBurst      = 4 * MaxInFlight
	dialsPerSecond = 2 * MaxInFlight
)

var errHangsUp = errors.New("the relay hangs up on one connection after another")

// A dialLimit spaces dials out. A relay that sends every connection away, over
// HTTP/2, would have net/http dial again and again for as long as a POST may take.
type dialLimit struct{ limiter *rate.Limiter }

func newDialLimit() dialLimit {
	return dialLimit{rate.NewLimiter(dialsPerSecond, dialBurst)}
}

// wait returns when there may be a dial. It gives up at once where that would take
// longer than patience.
func (l dialLimit) wait(ctx context.Context, patience time.Duration) error {
	slot := l.limiter.Reserve()
	if slot.Delay() > patience {
		slot.Cancel()
		return errHangsUp
	}
	timer := time.NewTimer(slot.Delay())
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
