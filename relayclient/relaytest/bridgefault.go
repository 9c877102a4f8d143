package relaytest

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"math"
	"net/http"
	"sync"
	"time"
)

// maxBridgeBody is the size in bytes of the largest request body that either
// half of a BridgeService reads; more is answered 413.
const maxBridgeBody = 8 << 10

// A BridgeEndpoint is one of the things that a [BridgeService] is asked for.
type BridgeEndpoint string

// The endpoints of the token service and of the push relay.
const (
	EndpointToken        BridgeEndpoint = "token"         // POST /token
	EndpointJWKS         BridgeEndpoint = "jwks"          // GET /.well-known/jwks.json
	EndpointAddClient    BridgeEndpoint = "add-client"    // POST /clients
	EndpointDeleteClient BridgeEndpoint = "delete-client" // DELETE /clients/{id}
	EndpointTokenHealth  BridgeEndpoint = "token-health"  // GET /health of the token service

	EndpointRegister    BridgeEndpoint = "register"     // POST /register
	EndpointUnregister  BridgeEndpoint = "unregister"   // DELETE /register
	EndpointPush        BridgeEndpoint = "push"         // POST /push
	EndpointRelayHealth BridgeEndpoint = "relay-health" // GET /health of the push relay
)

// A BridgeFault is what an endpoint does with a request instead of its work.
type BridgeFault struct {
	// Delay passes first. It is cut short when the client gives up, and when
	// the service is closed.
	Delay time.Duration
	// Drop closes the connection without an answer.
	Drop bool
	// Status is what is answered. With 0, and without Drop, the endpoint does
	// its work after all: a fault that is a delay alone.
	Status int
	// Header is added to the answer, such as a Retry-After.
	Header http.Header
	// Body is the answer's body; if empty, {"ok":false,"error":"scripted"}.
	Body string
}

// Always, as the number of times of [BridgeService.Fail], is until
// [BridgeService.Recover].
const Always = math.MaxInt

// Fail makes an endpoint answer its next requests with fault, so many times.
// Faults of several calls happen one after the other.
func (s *BridgeService) Fail(endpoint BridgeEndpoint, times int, fault BridgeFault) {
	s.faults.add(endpoint, times, fault)
}

// Recover drops the faults of an endpoint that have not happened yet.
func (s *BridgeService) Recover(endpoint BridgeEndpoint) { s.faults.clear(endpoint) }

// RequestCount is the number of requests that an endpoint was sent, with those
// that it refused and those that met a fault.
func (s *BridgeService) RequestCount(endpoint BridgeEndpoint) int { return s.faults.count(endpoint) }

// bridgeFaults routes requests, counts them, and lets the scripted faults
// happen.
type bridgeFaults struct {
	closing chan struct{}

	mu     sync.Mutex
	counts map[BridgeEndpoint]int
	queues map[BridgeEndpoint][]queuedFault
}

type queuedFault struct {
	fault BridgeFault
	times int // left
}

func newBridgeFaults() *bridgeFaults {
	return &bridgeFaults{
		closing: make(chan struct{}),
		counts:  map[BridgeEndpoint]int{},
		queues:  map[BridgeEndpoint][]queuedFault{},
	}
}

func (f *bridgeFaults) close() { close(f.closing) }

func (f *bridgeFaults) add(endpoint BridgeEndpoint, times int, fault BridgeFault) {
	if times <= 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queues[endpoint] = append(f.queues[endpoint], queuedFault{fault, times})
}

func (f *bridgeFaults) clear(endpoint BridgeEndpoint) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.queues, endpoint)
}

func (f *bridgeFaults) count(endpoint BridgeEndpoint) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[endpoint]
}

// next counts a request and takes the fault that it meets.
func (f *bridgeFaults) next(endpoint BridgeEndpoint) (BridgeFault, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[endpoint]++
	queue := f.queues[endpoint]
	if len(queue) == 0 {
		return BridgeFault{}, false
	}
	fault := queue[0].fault
	if queue[0].times != Always {
		queue[0].times--
	}
	if queue[0].times == 0 {
		f.queues[endpoint] = queue[1:]
	}
	return fault, true
}

type bridgeRoute struct {
	endpoint     BridgeEndpoint
	method, path string
	serve        http.HandlerFunc
}

// routes is a handler in which every answer is JSON, also 404 and 405.
func (f *bridgeFaults) routes(routes []bridgeRoute) http.Handler {
	mux := http.NewServeMux()
	allowed := map[string]string{}
	for _, route := range routes {
		mux.Handle(route.method+" "+route.path, f.handler(route))
		if before := allowed[route.path]; before != "" {
			allowed[route.path] = before + ", " + route.method
		} else {
			allowed[route.path] = route.method
		}
	}
	for path, methods := range allowed {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", methods)
			writeBridgeError(w, http.StatusMethodNotAllowed, "method not allowed")
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeBridgeError(w, http.StatusNotFound, "not found")
	})
	return mux
}

func (f *bridgeFaults) handler(route bridgeRoute) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fault, faulty := f.next(route.endpoint)
		// Read before anything else: a server notices that its client has gone
		// only once the body is read.
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBridgeBody))
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			writeBridgeError(w, http.StatusRequestEntityTooLarge, "body too large")
			return
		}
		if err != nil {
			writeBridgeError(w, http.StatusBadRequest, "body not readable")
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if faulty && f.happen(w, r, fault) {
			return
		}
		route.serve(w, r)
	})
}

// happen reports whether the fault was the whole answer.
func (f *bridgeFaults) happen(w http.ResponseWriter, r *http.Request, fault BridgeFault) bool {
	if fault.Delay > 0 {
		timer := time.NewTimer(fault.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return true
		case <-f.closing:
		}
	}
	if fault.Drop {
		panic(http.ErrAbortHandler)
	}
	if fault.Status == 0 {
		return false
	}
	w.Header().Set("Content-Type", "application/json")
	for name, values := range fault.Header {
		w.Header()[http.CanonicalHeaderKey(name)] = values
	}
	w.WriteHeader(fault.Status)
	io.WriteString(w, cmp.Or(fault.Body, `{"ok":false,"error":"scripted"}`))
	return true
}
