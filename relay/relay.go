package relay

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/sealpush/sealpush/internal/requestbody"
)

// A Relay is a sealed-alert relay: it takes the envelopes of the relay protocol and forwards each to a push service. It
// cannot read what is inside.
//
// Envelopes go to the path "/" alone (mount it elsewhere with [http.StripPrefix]), with any Content-Type: it is the
// body that counts.
type Relay struct {
	config config

	mu       sync.Mutex
	underway map[uint64]*forwarding // by lease: the forwards of this process

	life  context.Context // until Close
	close context.CancelFunc
}

// New makes a relay. It needs [WithForwarder]. The caller calls Close when done with it.
func New(opts ...Option) (*Relay, error) {
	c, err := newConfig(opts)
	if err != nil {
		return nil, err
	}
	r := &Relay{config: c, underway: make(map[uint64]*forwarding)}
	r.life, r.close = context.WithCancel(context.Background())
	return r, nil
}

// Close ends the forwards that are under way; their daemons are answered 502. Shut the server down first, so that there
// are none. It may be called more than once.
func (r *Relay) Close() { r.close() }

// ServeHTTP answers as the relay protocol has it.
func (r *Relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	announceIdle(w, req)
	start := r.config.observedNow()
	reply := r.answer(w, req)
	if req.Method == http.MethodPost && isEndpoint(req) {
		r.config.observe("post", reply.result(), reply.status, start)
	}
	reply.write(w, req)
}

// isEndpoint reports whether envelopes are posted to the request's path. StripPrefix leaves none.
func isEndpoint(req *http.Request) bool { return req.URL.Path == "/" || req.URL.Path == "" }

func (r *Relay) answer(w http.ResponseWriter, req *http.Request) *reply {
	body, err := requestbody.Read(w, req, maxBody+1)
	switch {
	case errors.Is(err, requestbody.ErrTimeout):
		refusal := refuse(http.StatusRequestTimeout, err.Error())
		refusal.hangUp = true
		return refusal
	case err != nil:
		return refuse(http.StatusBadRequest, "body could not be read to its end")
	}
	if !isEndpoint(req) {
		return refuse(http.StatusNotFound, "nothing here: post envelopes to /")
	}
	switch req.Method {
	case http.MethodPost:
	case http.MethodGet, http.MethodHead:
		return &reply{status: http.StatusOK, page: "This is a relay for sealed alerts. Daemons post envelopes to it; there is nothing to see here.\n"}
	default:
		refusal := refuse(http.StatusMethodNotAllowed, "method must be POST")
		refusal.allow = "GET, HEAD, POST"
		return refusal
	}
	envelope, device, err := parseEnvelope(body, r.config.maxCap, r.config.forwarder.Device)
	switch {
	case errors.Is(err, errOversize):
		return refuse(http.StatusRequestEntityTooLarge, err.Error())
	case err != nil:
		return refuse(http.StatusBadRequest, err.Error())
	}
	return r.accept(envelope, device)
}
