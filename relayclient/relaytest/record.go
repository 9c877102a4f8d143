package relaytest

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/sealpush/sealpush/relay"
)

// A Request is one HTTP request as a relay received it, before anything was made of it: the whole of what the relay can
// know.
//
// It prints, logs and encodes to JSON as its method, path and size: the rest may hold a device token or the relay's
// credentials. Copies share header and body, so leave those unchanged.
type Request struct {
	Time   time.Time
	Method string
	Path   string
	Query  string      `json:"-"` // without the question mark
	Header http.Header `json:"-"`
	Body   []byte      `json:"-"` // at most 8193 bytes are read
}

// Envelope reads the request's body as the relay does. The error says which member is wrong and how.
func (r Request) Envelope() (relay.Envelope, error) { return relay.ParseEnvelope(r.Body) }

// Format prints the request's method, path and size, for every verb.
func (r Request) Format(s fmt.State, _ rune) { io.WriteString(s, r.String()) }

// String describes the request by its method, path and size.
func (r Request) String() string {
	return printable(fmt.Sprintf("%s %s, %d bytes", r.Method, r.Path, len(r.Body)))
}

// printable puts U+FFFD in the place of what a terminal would act on, in a text with parts that a client chose.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, s)
}

// LogValue logs what [Request.String] says.
func (r Request) LogValue() slog.Value { return slog.StringValue(r.String()) }

// Stats are a relay's counters since its start.
type Stats struct {
	Connections int // connections opened; zero for a relay mounted in another server
	Requests    int // requests received
	InFlight    int // requests being served now
	MaxInFlight int // the most that were served at once
}

// record is what a relay remembers about its requests.
type record struct {
	monitor
	stats    Stats
	requests history[Request]
}

// enter counts a request as in flight until the function it returns is called.
func (r *record) enter() (leave func()) {
	r.Lock()
	defer r.Unlock()
	r.stats.Requests++
	r.stats.InFlight++
	r.stats.MaxInFlight = max(r.stats.MaxInFlight, r.stats.InFlight)
	r.notify()
	return func() {
		r.Lock()
		defer r.Unlock()
		r.stats.InFlight--
	}
}

func (r *record) add(req *http.Request, body []byte) {
	if r.requests.limit == 0 {
		return
	}
	request := Request{
		Time:   time.Now(),
		Method: req.Method,
		Path:   req.URL.Path,
		Query:  req.URL.RawQuery,
		Header: req.Header.Clone(),
		Body:   body,
	}
	r.Lock()
	defer r.Unlock()
	r.requests.add(request)
}

func (r *record) connState(_ net.Conn, state http.ConnState) {
	if state != http.StateNew {
		return
	}
	r.Lock()
	defer r.Unlock()
	r.stats.Connections++
}

// Requests returns what the relay received, oldest first, refused requests included. It keeps the latest ones, as many
// as [WithHistory] says.
func (r *Relay) Requests() []Request {
	r.record.Lock()
	defer r.record.Unlock()
	return slices.Clone(r.record.requests.latest())
}

// Stats returns the relay's counters.
func (r *Relay) Stats() Stats {
	r.record.Lock()
	defer r.record.Unlock()
	return r.record.stats
}

// WaitInFlight waits until at least n requests are being served at once, or until ctx is done, whose cause is then the
// error. With an [Answer] that holds its requests, it shows how many a client has on the way together.
func (r *Relay) WaitInFlight(ctx context.Context, n int) error {
	return r.record.await(ctx, func() bool { return r.record.stats.InFlight >= n })
}
