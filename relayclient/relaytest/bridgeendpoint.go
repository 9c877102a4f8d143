package relaytest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// maxBridgeBody is the size in bytes of the largest request body that either
// half of a BridgeService reads; more is answered 413.
const maxBridgeBody = 8 << 10

// A BridgeEndpoint is one of the things that a [BridgeService] is asked for.
// It is a plain value.
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

// Script lines up an answer for the next requests to an endpoint, as many as
// times says ([Always]: all from now on), after those lined up before. A service
// that cannot be reached is one that drops them ([Answer].Drop). It panics on an
// endpoint that there is not.
func (s *BridgeService) Script(endpoint BridgeEndpoint, times int, a Answer) {
	s.endpoints.mustKnow(endpoint)
	s.endpoints.script.add(string(endpoint), times, a)
}

// ClearScript forgets the answers that were lined up, for every endpoint.
// Requests that one of them holds stay held.
func (s *BridgeService) ClearScript() { s.endpoints.script.clear() }

// RequestCount is the number of requests that an endpoint was sent: also those
// that it refused, and those that had a scripted answer. It panics on an
// endpoint that there is not.
func (s *BridgeService) RequestCount(endpoint BridgeEndpoint) int {
	s.endpoints.mustKnow(endpoint)
	s.endpoints.mu.Lock()
	defer s.endpoints.mu.Unlock()
	return s.endpoints.counts[endpoint]
}

// bridgeEndpoints routes requests, counts them, and plays what is scripted.
type bridgeEndpoints struct {
	closing chan struct{}
	script  script

	mu     sync.Mutex
	counts map[BridgeEndpoint]int
}

func newBridgeEndpoints() *bridgeEndpoints {
	return &bridgeEndpoints{closing: make(chan struct{}), counts: map[BridgeEndpoint]int{}}
}

func (e *bridgeEndpoints) mustKnow(endpoint BridgeEndpoint) {
	switch endpoint {
	case EndpointToken, EndpointJWKS, EndpointAddClient, EndpointDeleteClient, EndpointTokenHealth,
		EndpointRegister, EndpointUnregister, EndpointPush, EndpointRelayHealth:
	default:
		panic(fmt.Sprintf("relaytest: BridgeService has no endpoint %q", endpoint))
	}
}

func (e *bridgeEndpoints) close() { close(e.closing) }

func (e *bridgeEndpoints) add(endpoint BridgeEndpoint) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counts[endpoint]++
}

type bridgeRoute struct {
	endpoint     BridgeEndpoint
	method, path string
	serve        http.HandlerFunc
}

// routes is a handler whose every answer is JSON, those of 404 and 405 too.
func (e *bridgeEndpoints) routes(routes []bridgeRoute) http.Handler {
	mux := http.NewServeMux()
	allowed := map[string][]string{}
	for _, route := range routes {
		mux.Handle(route.method+" "+route.path, e.handler(route))
		allowed[route.path] = append(allowed[route.path], route.method)
	}
	for path, methods := range allowed {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			writeBridgeError(w, http.StatusMethodNotAllowed, "method not allowed")
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeBridgeError(w, http.StatusNotFound, "not found")
	})
	return mux
}

func (e *bridgeEndpoints) handler(route bridgeRoute) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.add(route.endpoint)
		// Read before anything else: a server notices that its client has gone
		// only once the body is read.
		body, err := io.ReadAll(io.LimitReader(r.Body, maxBridgeBody+1))
		r.Body = io.NopCloser(bytes.NewReader(body))
		if e.script.play(e.closing, string(route.endpoint), w, r) {
			return
		}
		switch {
		case err != nil:
			writeBridgeError(w, http.StatusBadRequest, "body not readable")
		case len(body) > maxBridgeBody:
			writeBridgeError(w, http.StatusRequestEntityTooLarge, "body too large")
		default:
			route.serve(w, r)
		}
	})
}
