package main

import (
	"context"
	"sync/atomic"
)

// backlog counts the messages that the agent sent and no client has taken. It is safe for concurrent use.
type backlog struct {
	n     atomic.Int64
	empty chan struct{} // holds a token after n became 0
}

func newBacklog() *backlog { return &backlog{empty: make(chan struct{}, 1)} }

func (b *backlog) add(delta int64) {
	if b.n.Add(delta) != 0 {
		return
	}
	select {
	case b.empty <- struct{}{}:
	default:
	}
}

func (b *backlog) len() int64 { return b.n.Load() }

// wait returns when no message is left, or ctx ends.
func (b *backlog) wait(ctx context.Context) {
	for b.len() > 0 {
		select {
		case <-b.empty:
		case <-ctx.Done():
			return
		}
	}
}
