package relaytest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"time"
)

// A Relay is a sealed-alert relay: it takes envelopes, as the relay protocol
// has them, and delivers each as a message to the inbox of its device, where a
// [Phone] reads it. It has no way to read what is inside.
//
// It holds devices to a [Policy] as the hosted relay does, so a test that sends
// one alert twice finds one message: see [WithoutPolicy].
//
// It is shaped like [net/http/httptest.Server]: [NewRelay] starts it, URL is
// where it listens, Client reaches it, Close stops it. It is an [http.Handler]
// too, for a server of your own. Envelopes go to the path "/" alone, with any
// Content-Type: it is the body that counts.
//
// A Relay is safe for concurrent use.
type Relay struct {
	// URL is where the relay is posted to, without a trailing slash. It is
	// empty until the relay is started.
	URL string

	config  relayConfig
	script  script
	record  record
	inbox   inbox
	gate    *gate // nil without a policy
	sweeper sweeper
	server  *httptest.Server // nil until started

	life  context.Context // until Close
	close func()
}

// A RelayOption sets up a [Relay]. Every [ServerOption] is one.
// It is a plain value.
type RelayOption interface{ applyRelay(*relayConfig) }

type relayConfig struct {
	server    serverConfig
	history   int
	policy    *Policy // nil for none
	forwarder Forwarder
	logger    *slog.Logger // nil for slog.Default when it comes to that
}

func (o ServerOption) applyRelay(c *relayConfig) { o(&c.server) }

type relayOption func(*relayConfig)

func (o relayOption) applyRelay(c *relayConfig) { o(c) }

// bodyTimeout is how long a body may take to arrive.
const bodyTimeout = 10 * time.Second

// DefaultHistory is how many requests, and how many messages, a [Relay] keeps.
const DefaultHistory = 10_000

// WithHistory keeps the latest n requests and the latest n messages for tests
// to look at, instead of [DefaultHistory]. Zero keeps none, which leaves
// [Relay.Requests] and [Relay.Inbox] empty.
func WithHistory(n int) RelayOption {
	if n < 0 {
		panic(fmt.Sprintf("relaytest: a history of %d", n))
	}
	return relayOption(func(c *relayConfig) { c.history = n })
}

// NewRelay starts a relay. The caller calls Close when done with it.
func NewRelay(opts ...RelayOption) *Relay {
	r := NewUnstartedRelay(opts...)
	r.Start()
	return r
}

// NewUnstartedRelay makes a relay that does not listen: start it, or mount it
// as a handler, with [http.StripPrefix] unless it is at the root. The caller
// calls Close when done with it in either case.
func NewUnstartedRelay(opts ...RelayOption) *Relay {
	r := &Relay{config: relayConfig{history: DefaultHistory}}
	WithPolicy(Policy{}).applyRelay(&r.config)
	r.config.forwarder = &r.inbox
	for _, opt := range opts {
		opt.applyRelay(&r.config)
	}
	r.config.server.connState = r.record.connState
	r.record.requests.limit = r.config.history
	r.inbox.messages.limit = r.config.history
	r.inbox.id = rand.Text()
	if policy := r.config.policy; policy != nil {
		r.gate = newGate(*policy)
		r.sweeper.sweep = r.gate.sweep
		r.sweeper.every = max(policy.longest()/4, time.Second)
	}
	var end func()
	r.life, end = context.WithCancel(context.Background())
	r.close = sync.OnceFunc(func() {
		end()
		r.sweeper.stop()
		if r.server != nil {
			r.server.Close()
		}
	})
	return r
}

// Start makes the relay listen and sets its URL. It is called once.
func (r *Relay) Start() {
	if r.server != nil {
		panic("relaytest: relay already started")
	}
	r.server = startServer("relay", r, r.config.server)
	r.URL = r.server.URL
}

// Client returns an HTTP client that reaches the relay and trusts its
// certificate. It is nil until the relay is started.
func (r *Relay) Client() *http.Client {
	if r.server == nil {
		return nil
	}
	return r.server.Client()
}

// Close ends what was scripted, waits for the requests in hand and stops the
// relay. It may be called more than once; inboxes and records stay readable.
func (r *Relay) Close() { r.close() }

// Script lines up an answer for the next requests, as many as times says
// ([Always]: all from now on), after those lined up before.
func (r *Relay) Script(times int, a Answer) { r.script.add("", times, a) }

// ScriptDevice is like [Relay.Script] for envelopes to one device token. It goes
// before what is scripted for any request.
func (r *Relay) ScriptDevice(deviceToken string, times int, a Answer) {
	r.script.add(deviceKey(deviceToken), times, a)
}

// ClearScript forgets the answers that were lined up. Requests that one of them
// holds stay held.
func (r *Relay) ClearScript() { r.script.clear() }

// ServeHTTP answers as the relay protocol has it.
func (r *Relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	defer r.record.enter()()
	body, readErr := readBody(w, req)
	r.record.add(req, body)
	envelope, refusal := examine(req, body)
	switch {
	case errors.Is(readErr, os.ErrDeadlineExceeded):
		refusal = refuse(http.StatusRequestTimeout, "body took longer than "+bodyTimeout.String())
	case readErr != nil:
		refusal = refuse(http.StatusBadRequest, "body could not be read to its end")
	}
	if r.script.play(r.life.Done(), deviceKey(envelope.Device), w, req) {
		return
	}
	if refusal != nil {
		refusal.write(w)
		return
	}
	r.accept(envelope).write(w)
}

// readBody reads a byte more than an envelope may have, and does not wait for a
// slow one for ever.
func readBody(w http.ResponseWriter, req *http.Request) ([]byte, error) {
	conn := http.NewResponseController(w)
	conn.SetReadDeadline(time.Now().Add(bodyTimeout)) // not every server can
	defer conn.SetReadDeadline(time.Time{})
	return io.ReadAll(io.LimitReader(req.Body, maxBody+1))
}

// examine reads an envelope, or says why there is none.
func examine(req *http.Request, body []byte) (Envelope, *reply) {
	if path := req.URL.Path; path != "/" && path != "" { // StripPrefix leaves none
		return Envelope{}, refuse(http.StatusNotFound, "nothing here: post envelopes to /")
	}
	if req.Method != http.MethodPost {
		refusal := refuse(http.StatusMethodNotAllowed, "method must be POST")
		refusal.allow = http.MethodPost
		return Envelope{}, refusal
	}
	envelope, err := parseEnvelope(body)
	switch {
	case errors.Is(err, errOversize):
		return Envelope{}, refuse(http.StatusRequestEntityTooLarge, err.Error())
	case err != nil:
		return Envelope{}, refuse(http.StatusBadRequest, err.Error())
	}
	return envelope, nil
}

// Format prints the relay by its URL, for every verb: what it keeps holds
// device tokens.
func (r *Relay) Format(s fmt.State, _ rune) { io.WriteString(s, "relay at "+r.URL) }
