package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// phoneConn is a phone's connection: it takes messages until it breaks.
type phoneConn struct {
	mu    sync.Mutex
	got   []string
	limit int // messages until it breaks; 0 for never
}

var errBroken = errors.New("connection reset")

func (p *phoneConn) write(_ context.Context, message []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.limit > 0 && len(p.got) == p.limit {
		return errBroken
	}
	p.got = append(p.got, string(message))
	return nil
}

func (p *phoneConn) received() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.got...)
}

// numbers are the messages from first to last.
func numbers(first, last int) []string {
	var all []string
	for i := first; i <= last; i++ {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

func send(t *testing.T, outbox *bridge.Outbox, first, last int) {
	t.Helper()
	buffer := make([]byte, 0, 16)
	for i := first; i <= last; i++ {
		buffer = strconv.AppendInt(buffer[:0], int64(i), 10) // used again, as a bufio.Scanner does
		if err := outbox.Send(t.Context(), buffer); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
	}
}

// attach attaches the phone in the background; detach ends that and waits for it.
func attach(t *testing.T, outbox *bridge.Outbox, p *phoneConn) (detach func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- outbox.Attach(ctx, p.write) }()
	synctest.Wait()
	return func() error {
		cancel()
		return <-result
	}
}

// newOutbox returns an outbox for so many messages, or the usual number.
func newOutbox(t *testing.T, client *bridge.Client, messages int, opts ...bridge.OutboxOption) *bridge.Outbox {
	t.Helper()
	if messages > 0 {
		opts = append(opts, bridge.WithMaxMessages(messages))
	}
	outbox, err := bridge.NewOutbox(client, notification, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(outbox.Close)
	return outbox
}

func TestOutboxReplaysBeforeAnythingNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, client := newClient(t)
		outbox := newOutbox(t, client, 0)
		send(t, outbox, 1, 100)
		synctest.Wait()
		wantPushes(t, service, 1) // for a hundred messages

		p := &phoneConn{}
		detach := attach(t, outbox, p)
		send(t, outbox, 101, 200)
		synctest.Wait()
		if diff := cmp.Diff(numbers(1, 200), p.received()); diff != "" {
			t.Error(diff)
		}
		if err := detach(); !errors.Is(err, context.Canceled) {
			t.Errorf("Attach returned %v", err)
		}
		advance(time.Minute)
		wantPushes(t, service, 1) // nothing was kept
		send(t, outbox, 201, 201)
		synctest.Wait()
		wantPushes(t, service, 2)
	})
}

func TestOutboxSurvivesDropsInTheReplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := newClient(t)
		outbox := newOutbox(t, client, 0)
		send(t, outbox, 1, 50)
		var got []string
		for limit := 1; len(got) < 50; limit += 3 {
			p := &phoneConn{limit: limit}
			err := attach(t, outbox, p)()
			if len(p.received()) == limit && !errors.Is(err, errBroken) {
				t.Errorf("Attach returned %v", err)
			}
			got = append(got, p.received()...)
		}
		if diff := cmp.Diff(numbers(1, 50), got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestOutboxDropsTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		_, client := newClient(t, bridge.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		outbox := newOutbox(t, client, 0)
		send(t, outbox, 1, bridge.DefaultOutboxMessages)
		for range 3 {
			if err := outbox.Send(t.Context(), []byte("too much")); !errors.Is(err, bridge.ErrOutboxFull) {
				t.Errorf("Send returned %v", err)
			}
		}
		if outbox.Len() != bridge.DefaultOutboxMessages || outbox.Dropped() != 3 {
			t.Errorf("%d kept, %d dropped", outbox.Len(), outbox.Dropped())
		}
		synctest.Wait() // the notification on its way logs too
		if strings.Count(log.String(), "level=WARN") != 1 {
			t.Errorf("want one warning for all that were dropped:\n%s", &log)
		}
		p := &phoneConn{}
		detach := attach(t, outbox, p)
		send(t, outbox, 10_001, 10_001)
		synctest.Wait()
		detach()
		if diff := cmp.Diff(numbers(1, 10_001), p.received()); diff != "" {
			t.Error(diff)
		}
	})
}

// A phone that missed the first notification gets another, though nothing more is kept.
func TestOutboxGoesOnWakingWhenItIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, client := newClient(t)
		outbox := newOutbox(t, client, 1)
		send(t, outbox, 1, 1)
		synctest.Wait()
		wantPushes(t, service, 1)
		for _, step := range []struct{ after, pushes int }{{30, 2}, {10, 2}, {20, 3}} {
			advance(time.Duration(step.after) * time.Second)
			if err := outbox.Send(t.Context(), []byte("too much")); !errors.Is(err, bridge.ErrOutboxFull) {
				t.Errorf("Send returned %v", err)
			}
			synctest.Wait()
			wantPushes(t, service, step.pushes)
		}
	})
}

func TestOutboxSlowsTheAgentDownForASlowPhone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := newClient(t)
		outbox := newOutbox(t, client, 2)
		var got []string
		ctx, cancel := context.WithCancel(t.Context())
		attached := make(chan error)
		go func() {
			attached <- outbox.Attach(ctx, func(_ context.Context, message []byte) error {
				advance(time.Second)
				got = append(got, string(message))
				return nil
			})
		}()
		synctest.Wait()
		start := time.Now()
		send(t, outbox, 1, 10)
		if took := time.Since(start); took != 8*time.Second {
			t.Errorf("Send of ten with room for two took %v", took)
		}

		hurried, stop := context.WithTimeout(t.Context(), time.Millisecond)
		defer stop()
		if err := outbox.Send(hurried, []byte("x")); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Send returned %v", err)
		}
		advance(10 * time.Second)
		cancel()
		<-attached
		if diff := cmp.Diff(numbers(1, 10), got); diff != "" || outbox.Dropped() != 0 {
			t.Errorf("%d dropped: %s", outbox.Dropped(), diff)
		}
	})
}

// A Send that waits for room must not wait for a phone that has gone.
func TestOutboxSendWaitsInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := newClient(t)
		outbox := newOutbox(t, client, 1)
		ctx, cancel := context.WithCancel(t.Context())
		attached := make(chan error, 1)
		go func() {
			attached <- outbox.Attach(ctx, func(ctx context.Context, _ []byte) error { <-ctx.Done(); return ctx.Err() })
		}()
		synctest.Wait()
		send(t, outbox, 1, 1)
		result := make(chan error, 1)
		go func() { result <- outbox.Send(t.Context(), []byte("2")) }()
		synctest.Wait()
		cancel()
		if err := <-result; !errors.Is(err, bridge.ErrOutboxFull) {
			t.Errorf("Send returned %v", err)
		}
	})
}

func TestOutboxWakesThePhonesForWhatItCouldNotWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, client := newClient(t)
		outbox := newOutbox(t, client, 0)
		p := &phoneConn{limit: 1}
		detach := attach(t, outbox, p)
		send(t, outbox, 1, 2) // the second one finds the connection broken
		synctest.Wait()
		if err := detach(); !errors.Is(err, errBroken) {
			t.Errorf("Attach returned %v", err)
		}
		synctest.Wait()
		wantPushes(t, service, 1)
		if outbox.Len() != 1 {
			t.Errorf("%d kept, want 1", outbox.Len())
		}
	})
}

func TestOutboxNewClientReplacesTheOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, client := newClient(t)
		outbox := newOutbox(t, client, 0)
		old := make(chan error, 1)
		go func() { // hangs in its first write, as a connection to a phone in a tunnel does
			old <- outbox.Attach(t.Context(), func(ctx context.Context, _ []byte) error {
				<-ctx.Done()
				return ctx.Err()
			})
		}()
		synctest.Wait()
		send(t, outbox, 1, 3)
		p := &phoneConn{}
		detach := attach(t, outbox, p)
		if err := <-old; !errors.Is(err, bridge.ErrReplaced) {
			t.Errorf("the old Attach returned %v", err)
		}
		send(t, outbox, 4, 5)
		synctest.Wait()
		detach()
		if diff := cmp.Diff(numbers(1, 5), p.received()); diff != "" {
			t.Error(diff)
		}
		wantPushes(t, service, 0)
	})
}

func TestOutboxClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a bubble fails when a goroutine is left behind
		service, client := newClient(t)
		service.Script(relaytest.EndpointPush, relaytest.Always, relaytest.Answer{Delay: time.Hour})
		outbox := newOutbox(t, client, 1)
		send(t, outbox, 1, 1) // and a notification hangs
		outbox.Close()
		outbox.Close()
		if err := outbox.Send(t.Context(), []byte("2")); !errors.Is(err, bridge.ErrOutboxClosed) {
			t.Errorf("Send returned %v", err)
		}
		if err := outbox.Attach(t.Context(), (&phoneConn{}).write); !errors.Is(err, bridge.ErrOutboxClosed) {
			t.Errorf("Attach returned %v", err)
		}

		other := newOutbox(t, client, 1)
		attached := make(chan error, 1)
		go func() { attached <- other.Attach(t.Context(), (&phoneConn{}).write) }()
		synctest.Wait()
		other.Close()
		if err := <-attached; !errors.Is(err, bridge.ErrOutboxClosed) {
			t.Errorf("Attach returned %v", err)
		}
	})
}

// Many senders, phones that come and go: each sender's messages arrive once and in its order.
func TestOutboxConcurrency(t *testing.T) {
	const senders, each = 4, 500
	_, client := newClient(t)
	outbox := newOutbox(t, client, 64)
	sendUntilKept := func(message string) {
		for errors.Is(outbox.Send(t.Context(), []byte(message)), bridge.ErrOutboxFull) {
		}
	}
	var got []string
	ctx, cancel := context.WithCancel(t.Context())
	var phones, agents sync.WaitGroup
	phones.Go(func() {
		for ctx.Err() == nil {
			left := 7
			outbox.Attach(ctx, func(_ context.Context, message []byte) error {
				if left--; left < 0 {
					return errBroken
				}
				if string(message) == "end" {
					cancel()
					return nil
				}
				got = append(got, string(message))
				return nil
			})
		}
	})
	for sender := range senders {
		agents.Go(func() {
			for i := range each {
				sendUntilKept(fmt.Sprintf("%d %d", sender, i))
			}
		})
	}
	agents.Wait()
	sendUntilKept("end")
	phones.Wait()
	next := make([]int, senders)
	for _, message := range got {
		var sender, i int
		if _, err := fmt.Sscan(message, &sender, &i); err != nil {
			t.Fatal(err)
		}
		if i != next[sender] {
			t.Fatalf("message %d of sender %d came when %d was due", i, sender, next[sender])
		}
		next[sender]++
	}
	if diff := cmp.Diff([]int{each, each, each, each}, next); diff != "" {
		t.Error(diff)
	}
}
