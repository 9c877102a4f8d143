package bridge_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// aNight is how long nobody looks at the phone.
const aNight = 8 * time.Hour

// until lets time pass until d after start.
func until(start time.Time, d time.Duration) {
	advance(d - time.Since(start))
	synctest.Wait()
}

// The app came, read, and left; what the agent says last, within the cooldown, wakes the phone when the cooldown ends.
func TestLastMessageWithinTheCooldownWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, client := newClient(t)
		outbox, start := newOutbox(t, client, 0), time.Now()
		send(t, outbox, 1, 1)
		until(start, 5*time.Second)
		detach := attach(t, outbox, &phoneConn{})
		until(start, 8*time.Second)
		detach()
		until(start, 10*time.Second)
		send(t, outbox, 2, 3)
		until(start, 30*time.Second-1)
		wantPushes(t, service, 1)
		until(start, 30*time.Second)
		wantPushes(t, service, 2)
		until(start, aNight)
		wantPushes(t, service, 2) // the second was for both messages
	})
}

func TestFailedWakeUpIsSentAgain(t *testing.T) {
	tests := []struct {
		name   string
		at     relaytest.BridgeEndpoint
		answer relaytest.Answer
		times  int
		sentAt time.Duration // when a wake-up is accepted
		pushes int
	}{
		{"one 503", relaytest.EndpointPush, relaytest.Answer{Status: 503}, 1, 30 * time.Second, 2},
		{"three 503", relaytest.EndpointPush, relaytest.Answer{Status: 503}, 3, 90 * time.Second, 4},
		{"lost answer", relaytest.EndpointPush, relaytest.Answer{Drop: true}, 1, 30 * time.Second, 2},
		{"refused", relaytest.EndpointPush, relaytest.Answer{Status: 429}, 3, 7 * time.Second, 4},
		{"wrong credentials for a while", relaytest.EndpointToken, relaytest.Answer{Status: 401}, 1, 61 * time.Second, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service, client := newClient(t)
				mustRegister(t, client, phone)
				var accepted []time.Duration
				start := time.Now()
				if tt.at == relaytest.EndpointToken {
					advance(2 * time.Hour)
					start = time.Now()
				}
				service.Script(tt.at, tt.times, tt.answer)
				outbox := newOutbox(t, client, 0, bridge.WithResults(func(result bridge.Result) {
					if result.Status == bridge.StatusSent {
						accepted = append(accepted, time.Since(start))
					}
				}))
				send(t, outbox, 1, 1)
				until(start, aNight)
				if diff := cmp.Diff([]time.Duration{tt.sentAt}, accepted); diff != "" {
					t.Error(diff)
				}
				wantPushes(t, service, tt.pushes)
			})
		})
	}
}

// After an hour of failures nobody is woken until the agent says something.
func TestWakeUpIsGivenUpAfterAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		service, client := newClient(t, bridge.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		service.Script(relaytest.EndpointPush, relaytest.Always, relaytest.Answer{Status: 503})
		outbox, start := newOutbox(t, client, 0), time.Now()
		send(t, outbox, 1, 1)
		until(start, aNight)
		wantPushes(t, service, 121) // one in 30 s for an hour
		if got := strings.Count(log.String(), "no phone could be woken for an hour"); got != 1 {
			t.Errorf("said %d times:\n%.1000s", got, &log)
		}
		service.ClearScript()
		send(t, outbox, 2, 2)
		synctest.Wait()
		wantPushes(t, service, 122)
		until(start, 2*aNight)
		wantPushes(t, service, 122)
	})
}

// Each message has its hour.
func TestLaterMessageIsTriedForAnHourAsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, client := newClient(t)
		service.Script(relaytest.EndpointPush, relaytest.Always, relaytest.Answer{Status: 503})
		outbox, start := newOutbox(t, client, 0), time.Now()
		send(t, outbox, 1, 1)
		until(start, 50*time.Minute)
		send(t, outbox, 2, 2)
		until(start, 100*time.Minute)
		service.ClearScript()
		before := service.RequestCount(relaytest.EndpointPush)
		until(start, aNight)
		wantPushes(t, service, before+1)
	})
}

// A client that takes everything before the wake-up is due has been woken otherwise.
func TestNothingIsOwedForWhatAClientTook(t *testing.T) {
	for name, answer := range map[string]relaytest.Answer{"within the cooldown": {Status: 200}, "after a failure": {Status: 503}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service, client := newClient(t)
				service.Script(relaytest.EndpointPush, 1, answer)
				outbox, start := newOutbox(t, client, 0), time.Now()
				send(t, outbox, 1, 1)
				until(start, 2*time.Second)
				send(t, outbox, 2, 2)
				until(start, 10*time.Second)
				attach(t, outbox, &phoneConn{})()
				until(start, aNight)
				wantPushes(t, service, 1)
			})
		})
	}
}

// A wake-up that fails while a client takes everything leaves nothing to wake for.
func TestNothingIsOwedForWhatAClientTookDuringAWakeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, client := newClient(t)
		service.Script(relaytest.EndpointPush, 1, relaytest.Answer{Status: 503, Delay: 9 * time.Second})
		outbox, start := newOutbox(t, client, 0), time.Now()
		send(t, outbox, 1, 1)
		until(start, 2*time.Second)
		attach(t, outbox, &phoneConn{})()
		until(start, aNight)
		wantPushes(t, service, 1)
	})
}

// Messages that were paid for, and that a client did not take, wake nobody a second time: an app that connects and fails
// all night is not pushed all night.
func TestAppThatFailsAllNightIsNotPushedAllNight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, client := newClient(t)
		outbox := newOutbox(t, client, 0)
		send(t, outbox, 1, 1)
		advance(time.Minute)
		wantPushes(t, service, 1)
		for range 100 {
			broken := &phoneConn{limit: 1, got: []string{"already"}}
			if err := attach(t, outbox, broken)(); !errors.Is(err, errBroken) {
				t.Fatal(err)
			}
			advance(time.Minute)
		}
		wantPushes(t, service, 1)
	})
}

// What comes while a wake-up is on its way may have been missed by whom it woke.
func TestMessageDuringAWakeUpOwesAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, client := newClient(t)
		service.Script(relaytest.EndpointPush, 1, relaytest.Answer{Delay: 9 * time.Second})
		outbox, start := newOutbox(t, client, 0), time.Now()
		send(t, outbox, 1, 1)
		until(start, 5*time.Second)
		send(t, outbox, 2, 2)
		until(start, 30*time.Second-1)
		wantPushes(t, service, 1)
		until(start, aNight)
		wantPushes(t, service, 2)
	})
}

// Two agents share a client, and its cooldown. Each wakes the phone under its own name.
func TestTwoOutboxesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, client := newClient(t)
		start := time.Now()
		send(t, newOutbox(t, client, 0), 1, 1)
		send(t, newOutbox(t, client, 0), 1, 1)
		until(start, 30*time.Second-1)
		wantPushes(t, service, 1)
		until(start, 30*time.Second)
		wantPushes(t, service, 2)
		until(start, aNight)
		wantPushes(t, service, 2)
	})
}

func TestCloseDuringTheCooldown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a bubble fails when a goroutine is left behind
		service, client := newClient(t)
		outbox := newOutbox(t, client, 0)
		send(t, outbox, 1, 1)
		synctest.Wait()
		send(t, outbox, 2, 2)
		synctest.Wait()
		outbox.Close()
		advance(time.Hour)
		wantPushes(t, service, 1)
	})
}

// A message that was too long to be kept, and came while the app was there, is no reason to ring when the app leaves.
func TestNothingIsOwedForWhatWasDroppedWhileAClientWasThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, client := newClient(t)
		outbox := newOutbox(t, client, 0, bridge.WithMaxBytes(10))
		detach := attach(t, outbox, &phoneConn{})
		if err := outbox.Send(t.Context(), make([]byte, 11)); !errors.Is(err, bridge.ErrOutboxFull) {
			t.Error(err)
		}
		detach()
		advance(time.Minute)
		synctest.Wait()
		wantPushes(t, service, 0)
	})
}

func TestOutboxIsBoundedInBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outbox := newOutbox(t, nil, 0, bridge.WithMaxBytes(10))
		message := func(size int) []byte { return []byte(strings.Repeat("x", size)) }
		for _, step := range []struct {
			size int
			want error
		}{{11, bridge.ErrOutboxFull}, {6, nil}, {5, bridge.ErrOutboxFull}, {4, nil}, {1, bridge.ErrOutboxFull}, {0, nil}} {
			if err := outbox.Send(t.Context(), message(step.size)); !errors.Is(err, step.want) {
				t.Errorf("%d bytes: %v", step.size, err)
			}
		}
		if outbox.Len() != 3 || outbox.Dropped() != 3 {
			t.Errorf("%d kept, %d dropped", outbox.Len(), outbox.Dropped())
		}
		p := &phoneConn{}
		detach := attach(t, outbox, p)
		if err := outbox.Send(t.Context(), message(11)); !errors.Is(err, bridge.ErrOutboxFull) {
			t.Errorf("11 bytes while a client is attached: %v", err)
		}
		if err := outbox.Send(t.Context(), message(10)); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		detach()
		if got := p.received(); len(got) != 4 || len(got[3]) != 10 {
			t.Errorf("received %q", got)
		}
	})
}
