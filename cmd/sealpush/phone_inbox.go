package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/sealpush/sealpush/relay/apns"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

// An inbox is the phone's at the reference relay. It stands in for the push service, which would wake a real phone.
type inbox struct {
	client *http.Client
	url    string
	phone  *relaytest.Phone
	next   string // where to go on, as the last answer had it
}

// fetch waits for messages and returns them, or none after a while.
func (b *inbox) fetch(ctx context.Context) ([]apns.Message, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+"?after="+url.QueryEscape(b.next), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+b.phone.PushToken())
	var answer struct {
		Messages []apns.Message `json:"messages"`
		Next     string         `json:"next"`
	}
	if err := call(b.client, req, &answer); err != nil {
		return nil, err
	}
	for i := range answer.Messages {
		answer.Messages[i].Device = secret.New(b.phone.PushToken())
	}
	b.next = answer.Next
	return answer.Messages, nil
}

// Pauses between attempts while the relay cannot be reached.
const (
	firstPause   = time.Second
	longestPause = 30 * time.Second
)

// receive hands each message to show, until show says that it has enough, ctx ends or the inbox cannot work. A relay
// that is away is waited for.
func (b *inbox) receive(ctx context.Context, show func(apns.Message) (enough bool)) error {
	pause := firstPause
	for {
		messages, err := b.fetch(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if refused, ok := errors.AsType[*statusError](err); ok && refused.status/100 == 4 {
			return fmt.Errorf("the inbox cannot be read: %w: pass the relay's with -inbox", err)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "sealpush phone: %v: trying again in %v\n", err, pause)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return nil
			}
			pause = min(2*pause, longestPause)
			continue
		}
		pause = firstPause
		for _, m := range messages {
			if show(m) {
				return nil
			}
		}
	}
}
