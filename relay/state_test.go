package relay_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relay/statetest"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

func TestMemoryState(t *testing.T) {
	statetest.Run(t, func(*testing.T) statetest.Opener {
		var state relay.State
		return func(t *testing.T) relay.State {
			t.Helper()
			if state == nil { // of the bubble
				memory, err := relay.NewMemoryState(relay.DefaultMaxDevices)
				if err != nil {
					t.Fatal(err)
				}
				state = memory
			}
			return state
		}
	})
}

type brokenState struct{ err error }

func (s brokenState) Update(context.Context, time.Time, string, relay.ChangeFunc) error { return s.err }

// While the state cannot be reached, pages are forwarded without limits, and the log says so.
func TestStateThatCannotBeReached(t *testing.T) {
	var log bytes.Buffer
	relay := start(t, relaytest.WithRelay(
		relay.WithState(brokenState{errors.New("no route to the database")}),
		relay.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))
	for range 3 {
		if got := outcomeOf(t, relay); got != "forwarded" {
			t.Error(got)
		}
	}
	if got := len(relay.Inbox(device)); got != 3 {
		t.Errorf("%d messages", got)
	}
	if text := log.String(); strings.Count(text, "level=WARN") != 3 || !strings.Contains(text, "collapse_id="+collapseID) ||
		!strings.Contains(text, "no route to the database") || strings.Contains(text, device) {
		t.Errorf("logged\n%s", text)
	}
}

// A database that does not answer holds a page up for two seconds.
type hangingState struct{}

func (hangingState) Update(ctx context.Context, _ time.Time, _ string, _ relay.ChangeFunc) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestStateThatHangs(t *testing.T) {
	quiet := relay.WithLogger(slog.New(slog.DiscardHandler))
	inBubble(t, func(t *testing.T, relay *relaytest.Relay) {
		begin := time.Now()
		if got := outcomeOf(t, relay); got != "forwarded" || time.Since(begin) != 2*time.Second {
			t.Errorf("%s after %v", got, time.Since(begin))
		}
	}, relaytest.WithRelay(relay.WithState(hangingState{}), quiet))
}
