package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/sealpush/sealpush/relayclient/bridge"
)

// statusReplaced is one of the codes that RFC 6455 leaves to applications.
const statusReplaced websocket.StatusCode = 4001

// handover is how long a client that is replaced may keep the next one waiting.
const handover = time.Second

// closing is why the bridge closes a connection, as the client gets to know it.
type closing struct {
	code   websocket.StatusCode
	reason string // at most 123 bytes
}

func (c closing) Error() string { return fmt.Sprintf("%s (%d)", c.reason, c.code) }

// session is the connection of one client. Three goroutines share it: one reads, one pings, and one, the outbox's,
// writes messages.
type session struct {
	*server
	conn  *websocket.Conn
	heard counter // bytes of messages
}

// counter counts the bytes written to it.
type counter struct{ atomic.Int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.Add(int64(len(p)))
	return len(p), nil
}

// attach turns an authorized request into a session.
func (s *server) attach(w http.ResponseWriter, r *http.Request) {
	if !s.authorized(r) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "the authToken of the pairing response is needed as a bearer token", http.StatusUnauthorized)
		return
	}
	s.sessions.Add(1) // before the request becomes a connection, for until then Shutdown waits for it
	defer s.sessions.Done()
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		slog.Warn("WebSocket handshake failed", "client", r.RemoteAddr, "error", err)
		return
	}
	conn.SetReadLimit(int64(s.opts.maxMessage))
	s.attached.Add(1)
	defer s.attached.Add(-1)
	slog.Info("client connected", "client", r.RemoteAddr)
	reason := (&session{server: s, conn: conn}).run(s.ctx)
	slog.Info("client disconnected", "client", r.RemoteAddr, "reason", reason)
}

// run returns when the connection has ended, with the reason.
func (s *session) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { cancel(s.read(ctx)) })
	wg.Go(func() { cancel(s.ping(ctx)) })
	cancel(s.outbox.Attach(ctx, s.write))

	reason := context.Cause(ctx)
	if errors.Is(reason, bridge.ErrReplaced) {
		reason = closing{statusReplaced, "another client has connected"}
	}
	if c, ok := errors.AsType[closing](reason); ok {
		s.conn.Close(c.code, c.reason)
	} else {
		s.conn.CloseNow() // the client closed it, or does not answer
	}
	wg.Wait()
	return reason
}

// read passes the client's messages on until the connection is closed. Its reads have no context: when the context of a
// read ends, the connection closes without a close frame.
func (s *session) read(ctx context.Context) error {
	for {
		kind, message, err := s.receive()
		if errors.Is(err, websocket.ErrMessageTooBig) {
			return closing{websocket.StatusMessageTooBig, "message too big"}
		}
		if err != nil {
			return err
		}
		if kind != websocket.MessageText {
			return closing{websocket.StatusUnsupportedData, "messages must be text"}
		}
		if err := s.pass(ctx, message); err != nil {
			return err
		}
	}
}

func (s *session) receive() (websocket.MessageType, []byte, error) {
	kind, r, err := s.conn.Reader(context.Background())
	if err != nil {
		return 0, nil, err
	}
	message, err := io.ReadAll(io.TeeReader(r, &s.heard))
	return kind, message, err
}

// pass gives a message to the relay's client or to the agent. Waiting ends before a ping takes the client for dead,
// whose answer is not read meanwhile.
func (s *session) pass(ctx context.Context, message []byte) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.timeout/2)
	defer cancel()
	if bridge.IsPushMessage(message) { // handled in another goroutine, because it takes time
		select {
		case s.toRelay <- message:
			return nil
		case <-ctx.Done():
			return closing{websocket.StatusTryAgainLater, "too many push messages"}
		}
	}
	switch err := s.agent.tell(ctx, message); {
	case errors.Is(err, errAgentEnded):
		slog.Warn("a message did not reach the agent", "error", err)
		return nil // messages of the agent may be left for the client
	case err != nil:
		return closing{websocket.StatusTryAgainLater, "the agent does not read"}
	}
	return nil
}

// write writes one message. When ctx ends, as it does when another client has connected, a write under way gets a
// moment to finish: to cut it off would close the connection without a close frame, and the next client would get a
// message that this one may have.
func (s *session) write(ctx context.Context, message []byte) error {
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.opts.timeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(handover, cancel) })()
	if err := s.conn.Write(writing, websocket.MessageText, message); err != nil {
		return err
	}
	s.unread.add(-1)
	return nil
}

// ping returns an error when the client neither answers nor sends anything else: an answer comes after the message that
// the client is sending.
func (s *session) ping(ctx context.Context) error {
	ticker := time.NewTicker(s.opts.timeout)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		heard := s.heard.Load()
		pong, cancel := context.WithTimeout(context.Background(), s.opts.timeout) // or until the connection is closed
		err := s.conn.Ping(pong)
		cancel()
		if err != nil && s.heard.Load() == heard {
			return fmt.Errorf("no answer to a ping: %w", err)
		}
	}
}
