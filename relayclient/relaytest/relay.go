package relaytest

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/sealpush/sealpush/internal/requestbody"
	"github.com/sealpush/sealpush/relay"
)

// A Relay is a [relay.Relay] for tests: a server that listens, records what it is sent, answers as it is told, and
// delivers each envelope as a message to the inbox of its device, where a [Phone] reads it.
//
// It holds devices to a [relay.Policy] as the hosted relay does, so a test that sends one alert twice finds one
// message: see [WithoutPolicy].
//
// It is shaped like [net/http/httptest.Server]: [NewRelay] starts it, URL is where it listens, Client reaches it, Close
// stops it. It is an [http.Handler] too, for a server of your own.
//
// A Relay is safe for concurrent use.
type Relay struct {
	// URL is where the relay is posted to, without a trailing slash. It is empty until the relay is started.
	URL string

	config relayConfig
	relay  *relay.Relay
	script script
	record record
	inbox  inbox
	server *server // nil until started

	life  context.Context // until Close
	close func()
}

// A RelayOption sets up a [Relay]. Every [ServerOption] is one.
type RelayOption interface{ applyRelay(*relayConfig) error }

type relayConfig struct {
	server   serverConfig
	history  int // messages
	requests int
	relay    []relay.Option
}

func (o ServerOption) applyRelay(c *relayConfig) error {
	if o == nil {
		return errNilOption
	}
	return o(&c.server)
}

type relayOption func(*relayConfig) error

func (o relayOption) applyRelay(c *relayConfig) error { return o(c) }

// DefaultHistory is how many requests, and how many messages, a [Relay] keeps.
const DefaultHistory = 10_000

// WithHistory keeps the latest n requests and the latest n messages for tests to look at, instead of [DefaultHistory].
// Zero keeps none, which leaves [Relay.Requests] and [Relay.Inbox] empty.
func WithHistory(n int) RelayOption {
	return relayOption(func(c *relayConfig) error {
		if n < 0 {
			return fmt.Errorf("WithHistory: %d is negative", n)
		}
		c.history, c.requests = n, n
		return nil
	})
}

// WithoutRequests keeps no requests, and messages as before. Use it for a relay that strangers can reach, so that their
// requests are not kept, nor the credentials in the headers.
func WithoutRequests() RelayOption {
	return relayOption(func(c *relayConfig) error {
		c.requests = 0
		return nil
	})
}

// WithRelay sets up the relay itself, say with a policy, or with a push service in place of the inbox in memory, which
// then stays empty.
func WithRelay(opts ...relay.Option) RelayOption {
	return relayOption(func(c *relayConfig) error {
		c.relay = append(c.relay, opts...)
		return nil
	})
}

// WithoutPolicy is WithRelay of [relay.WithoutPolicy]: every envelope that is right is forwarded, however often it
// comes.
func WithoutPolicy() RelayOption { return WithRelay(relay.WithoutPolicy()) }

// NewRelay starts a relay. The caller calls Close when done with it. It panics on an option that is nil or has a bad
// value.
func NewRelay(opts ...RelayOption) *Relay {
	r := NewUnstartedRelay(opts...)
	r.Start()
	return r
}

// NewUnstartedRelay makes a relay that does not listen: start it, or mount it as a handler, with [http.StripPrefix]
// unless it is at the root. The caller calls Close when done with it in either case. It panics as [NewRelay] does.
func NewUnstartedRelay(opts ...RelayOption) *Relay {
	r := &Relay{config: relayConfig{history: DefaultHistory, requests: DefaultHistory}}
	r.config.relay = []relay.Option{relay.WithForwarder(&r.inbox)}
	for _, opt := range opts {
		if opt == nil {
			must(errNilOption)
		}
		must(opt.applyRelay(&r.config))
	}
	r.config.server.connState = r.record.connState
	r.record.requests.limit = r.config.requests
	r.inbox.messages.limit = r.config.history
	r.inbox.id = rand.Text()
	made, err := relay.New(r.config.relay...)
	must(err)
	r.relay = made
	var end func()
	r.life, end = context.WithCancel(context.Background())
	r.close = sync.OnceFunc(func() {
		end()
		r.relay.Close()
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
	r.server = newServer("relay", r.config.server)
	r.URL = r.server.url
	r.server.start(r)
}

// Client returns an HTTP client that reaches the relay and trusts its certificate. It is nil until the relay is
// started.
func (r *Relay) Client() *http.Client {
	if r.server == nil {
		return nil
	}
	return r.server.Client()
}

// Close ends what was scripted and what is being forwarded, waits for the requests in hand and stops the relay. It may
// be called more than once; inboxes and records stay readable.
func (r *Relay) Close() { r.close() }

// Script sets the answer to the next requests, as many as times says ([Always]: all from now on). It takes effect after
// the answers that were set before.
func (r *Relay) Script(times int, a Answer) { r.script.add("", times, a) }

// ScriptDevice is like [Relay.Script] for envelopes to one device token, in either case. It goes before what is
// scripted for any request.
func (r *Relay) ScriptDevice(deviceToken string, times int, a Answer) {
	r.script.add(strings.ToLower(deviceToken), times, a)
}

// ClearScript forgets the answers that were set. Requests that one of them holds stay held.
func (r *Relay) ClearScript() { r.script.clear() }

// maxBody is how much of a body is recorded, in bytes: one more than an envelope may have.
const maxBody = 8192 + 1

// ServeHTTP records the request, and then does what is scripted for it or, if nothing is, answers as the relay.
func (r *Relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	defer r.record.enter()()
	body, err := requestbody.Read(w, req, maxBody)
	r.record.add(req, body)
	device := "" // for no script but those for any request
	if e, err := relay.ParseEnvelope(body); err == nil {
		device = strings.ToLower(e.Device.Reveal())
	}
	if r.script.play(r.life.Done(), device, w, req) {
		return
	}
	req.Body = &requestbody.Replay{Body: body, Err: err}
	r.relay.ServeHTTP(w, req)
}

// Format prints the relay by its URL, for every verb: what it keeps holds device tokens.
func (r *Relay) Format(s fmt.State, _ rune) { io.WriteString(s, "relay at "+r.URL) }
