package relaytest

import (
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/sealpush/sealpush/internal/requestbody"
)

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

// tokenEndpoint says what a request to the token service asks for, or "".
func tokenEndpoint(r *http.Request) BridgeEndpoint {
	switch r.Method + " " + r.URL.Path {
	case "POST /token":
		return EndpointToken
	case "GET /.well-known/jwks.json":
		return EndpointJWKS
	case "POST /clients":
		return EndpointAddClient
	case "GET /health":
		return EndpointTokenHealth
	}
	if r.Method == http.MethodDelete && strings.HasPrefix(r.URL.Path, "/clients/") {
		return EndpointDeleteClient
	}
	return ""
}

// relayEndpoint says what a request to the push relay asks for, or "".
func relayEndpoint(r *http.Request) BridgeEndpoint {
	switch r.Method + " " + r.URL.Path {
	case "POST /register":
		return EndpointRegister
	case "DELETE /register":
		return EndpointUnregister
	case "POST /push":
		return EndpointPush
	case "GET /health":
		return EndpointRelayHealth
	}
	return ""
}

// Script sets the answer to the next requests to an endpoint, as many as times says ([Always]: all from now on). It
// takes effect after the answers that were set before. A script that drops them ([Answer].Drop) makes the service look
// unreachable. It panics on an endpoint that there is not.
func (s *BridgeService) Script(endpoint BridgeEndpoint, times int, a Answer) {
	s.endpoints.mustKnow(endpoint)
	s.endpoints.script.add(string(endpoint), times, a)
}

// ClearScript forgets the answers that were set, for every endpoint. Requests that one of them holds stay held.
func (s *BridgeService) ClearScript() { s.endpoints.script.clear() }

// RequestCount is the number of requests that an endpoint was sent: also those that it refused, and those that had a
// scripted answer. It panics on an endpoint that there is not.
func (s *BridgeService) RequestCount(endpoint BridgeEndpoint) int {
	s.endpoints.mustKnow(endpoint)
	s.endpoints.mu.Lock()
	defer s.endpoints.mu.Unlock()
	return s.endpoints.counts[endpoint]
}

// bridgeEndpoints counts requests and plays what is scripted.
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

// maxBridgeBody is the size in bytes of the largest body that is replayed to a service, and one more: both services
// refuse that.
const maxBridgeBody = 1<<20 + 1

// before serves with next what is not scripted.
func (e *bridgeEndpoints) before(next http.Handler, endpointOf func(*http.Request) BridgeEndpoint) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		endpoint := endpointOf(r)
		if endpoint == "" {
			next.ServeHTTP(w, r)
			return
		}
		e.add(endpoint)
		// Read before anything else: a server notices that its client has gone only once the body is read.
		body, err := requestbody.Read(w, r, maxBridgeBody)
		if e.script.play(e.closing, string(endpoint), w, r) {
			return
		}
		r.Body = &requestbody.Replay{Body: body, Err: err}
		next.ServeHTTP(w, r)
	})
}
