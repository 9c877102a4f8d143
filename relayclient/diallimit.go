package relayclient

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// How a transport dials while nobody answers. An alert takes MaxInFlight
// connections at most, so that several can start at once.
const (
	dialBurst      = 4 * MaxInFlight // without an answer in between
	dialsPerSecond = 2 * MaxInFlight // from then on
)

var errHangsUp = errors.New("the relay hangs up on one connection after another")

// A dialLimit spaces out dials that lead to no answer. A relay that sends every
// connection away, over HTTP/2, would have net/http dial again and again for as
// long as a POST may take.
type dialLimit struct {
	fruitless atomic.Int64 // dials since the last answer
	limiter   *rate.Limiter
}

func newDialLimit() *dialLimit {
	return &dialLimit{limiter: rate.NewLimiter(dialsPerSecond, 1)}
}

// answered notes that a POST has its answer, whatever it says.
func (l *dialLimit) answered() { l.fruitless.Store(0) }

// wait returns when there may be a dial. It gives up at once where that would take
// longer than patience.
func (l *dialLimit) wait(ctx context.Context, patience time.Duration) error {
	if l.fruitless.Add(1) <= dialBurst {
		return nil
	}
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
