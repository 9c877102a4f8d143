package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/secret"
)

// server stands between one agent and its client.
type server struct {
	opts    options
	client  *bridge.Client // of the push relay
	outbox  *bridge.Outbox // from the agent to the WebSocket client
	agent   *agent
	token   secret.Text // that the WebSocket client shows
	unread  *backlog
	noisy   bool        // the agent has printed a line that is not JSON-RPC; only say uses it
	toRelay chan []byte // push messages on their way to the relay

	http     *http.Server
	ctx      context.Context // of all sessions; its cause is what they tell their clients
	end      context.CancelCauseFunc
	sessions sync.WaitGroup
	attached atomic.Int32
}

func newServer(opts options, client *bridge.Client) (*server, error) {
	outbox, err := bridge.NewOutbox(client, bridge.Notification{Title: opts.name, Body: "New activity"},
		bridge.WithMaxMessages(opts.buffer), bridge.WithMaxBytes(max(bridge.DefaultOutboxBytes, opts.maxMessage)))
	if err != nil {
		return nil, err
	}
	s := &server{
		opts:    opts,
		client:  client,
		outbox:  outbox,
		token:   secret.New(rand.Text()),
		unread:  newBacklog(),
		toRelay: make(chan []byte, 16),
	}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	s.sessions.Go(s.register)
	s.http = &http.Server{ // for requests: a WebSocket, once attached, has its own limits
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	return s, nil
}

// serve prints the pairing URL and serves until close.
func (s *server) serve(a *address, config bridge.Config) error {
	pairing := newPairing(bridge.PairingResponse{
		URL:             "ws" + strings.TrimPrefix(a.base, "http"),
		Protocol:        "acp",
		Version:         "1.0.0",
		AuthToken:       s.token,
		CertFingerprint: a.fingerprint,
	}.WithPushRelay(config))
	mux := http.NewServeMux()
	mux.Handle("/pair", pairing)
	mux.HandleFunc("GET /{$}", s.attach)
	s.http.Handler = mux
	_, err := fmt.Fprintf(os.Stdout, "Pair a phone, once and within %.0f minutes:\n\n    %s\n\nReady. Control-C stops it.\n", pairFor.Minutes(), pairing.url(a))
	if err != nil {
		return err
	}
	return s.http.Serve(a)
}

// say hands a line of the agent to the client, now or later. It blocks while the agent is faster than the client. A
// line that is not JSON-RPC is not passed on.
func (s *server) say(line []byte) {
	message, ok := jsonRPC(line)
	if !ok {
		level := slog.LevelDebug
		if !s.noisy {
			level = slog.LevelWarn
		}
		s.noisy = true
		slog.Log(s.ctx, level, "the agent printed a line that is not JSON-RPC, the app does not get it", "bytes", len(line))
		return
	}
	s.unread.add(1)
	if err := s.outbox.Send(s.ctx, message); err != nil {
		s.unread.add(-1) // the outbox logs what it drops
	}
}

// register passes the phone's push messages on, one after the other, so that the last one decides.
func (s *server) register() {
	for {
		select {
		case message := <-s.toRelay:
			if _, err := s.client.HandleMessage(s.ctx, message); err != nil {
				slog.Warn("push message not handled", "error", err)
			}
		case <-s.ctx.Done():
			return
		}
	}
}

func (s *server) authorized(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && s.token.Equal(secret.New(token))
}

// awaitClient gives a client time to fetch what the agent said last.
func (s *server) awaitClient(ctx context.Context, linger time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, linger)
	defer cancel()
	if n := s.unread.len(); n > 0 {
		slog.Info("waiting for a client to fetch the last messages", "messages", n, "at_most", linger)
	}
	s.unread.wait(ctx)
}

// close ends everything but the agent, which is gone.
func (s *server) close(goodbye closing) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if s.attached.Load() > 0 {
		s.unread.wait(ctx)
	}
	if err := s.http.Shutdown(ctx); err != nil {
		s.http.Close()
	}
	s.end(goodbye)
	s.sessions.Wait()
	if n, dropped := s.unread.len(), s.outbox.Dropped(); n > 0 || dropped > 0 {
		slog.Warn("messages of the agent are lost, for no client fetched them", "messages", n, "dropped", dropped)
	}
}
