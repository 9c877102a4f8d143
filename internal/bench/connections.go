package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/seal"
)

// connections counts what the relay accepts for a first and a second alert to 100 phones. The relay takes as long as
// one at some distance, so that all 100 POSTs are in flight at once.
func connections() ([]row, error) {
	first1, second1, err := connectionsOver(tlsHTTP1)
	if err != nil {
		return nil, err
	}
	first2, second2, err := connectionsOver(tlsHTTP2)
	if err != nil {
		return nil, err
	}
	lost1, during1, err := restartOver(tlsHTTP1)
	if err != nil {
		return nil, err
	}
	lost2, during2, err := restartOver(tlsHTTP2)
	if err != nil {
		return nil, err
	}
	return []row{{
		what:     "new connections of a second alert to the same 100 phones, over HTTP/1.1 and HTTP/2",
		goal:     "0 and 0",
		measured: fmt.Sprintf("%d and %d", second1, second2),
		met:      second1 == 0 && second2 == 0,
		detail:   fmt.Sprintf("the first alert opened %d and %d, with TLS", first1, first2),
	}, {
		what:     "pages lost of 20 alerts to 100 phones that begin after the relay has restarted under load, over HTTP/1.1 and HTTP/2",
		goal:     "0 and 0",
		measured: fmt.Sprintf("%d and %d", lost1, lost2),
		met:      lost1 == 0 && lost2 == 0,
		detail:   fmt.Sprintf("of the 20 alerts that were under way or came before, %d and %d", during1, during2),
	}}, nil
}

// restartOver returns how many pages were lost of alerts after a restart of the relay, and of those before, some of
// which it interrupted.
func restartOver(protocol string) (after, before int, err error) {
	relay, err := startRelay(protocol, 20*time.Millisecond)
	if err != nil {
		return 0, 0, err
	}
	defer relay.stop()
	client, err := relayclient.New(relay.URL, relayclient.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return 0, 0, err
	}
	defer client.Close()
	const alerts = 20
	devices := phones(100, seal.X25519)
	lost := make(chan int, alerts)
	sendSome := func(results chan<- int) {
		for range alerts {
			push := relayclient.Push{Alert: longFailure(), CollapseID: payload.NewCollapseID()}
			go func() {
				n := 0
				for _, outcome := range client.Send(context.Background(), push, devices) {
					if outcome.Err != nil {
						n++
					}
				}
				results <- n
			}()
			time.Sleep(25 * time.Millisecond)
		}
	}
	sendSome(lost) // the last ones are under way
	if err := relay.restart(); err != nil {
		return 0, 0, err
	}
	later := make(chan int, alerts)
	sendSome(later)
	for range alerts {
		before += <-lost
		after += <-later
	}
	return after, before, nil
}

func connectionsOver(protocol string) (first, second int, err error) {
	relay, err := startRelay(protocol, 50*time.Millisecond)
	if err != nil {
		return 0, 0, err
	}
	defer relay.stop()
	client, err := relayclient.New(relay.URL)
	if err != nil {
		return 0, 0, err
	}
	defer client.Close()
	push := relayclient.Push{Alert: longFailure(), Salt: payload.NewSalt()}
	devices := phones(100, seal.X25519)
	if err := sendAll(client, push, devices); err != nil {
		return 0, 0, err
	}
	if first, err = relay.connections(); err != nil {
		return 0, 0, err
	}
	if err := sendAll(client, push, devices); err != nil {
		return 0, 0, err
	}
	both, err := relay.connections()
	return first, both - first, err
}
