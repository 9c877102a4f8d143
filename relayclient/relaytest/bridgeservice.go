package relaytest

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
)

// BridgeService is the token service and the push relay that a bridge talks to,
// with everything in memory: two servers, so that each can fail on its own. It
// is safe for concurrent use.
//
// A test creates a client, points a bridge at the two URLs, and looks at what
// arrived:
//
//	service := relaytest.NewBridgeService()
//	defer service.Close()
//	secret := service.AddClient("bridge-home-office")
//	// … a bridge uses service.RelayURL, service.TokenURL, the id and the secret …
//	pushes := service.Pushes("bridge-home-office")
//
// Inside a testing/synctest bubble it runs on listeners in memory
// ([InMemory]), and time is the bubble's: a token expires when the bubble's
// clock says so.
type BridgeService struct {
	TokenURL string // base URL of the token service, the issuer of its tokens
	RelayURL string // base URL of the push relay, the audience of the tokens

	tokens    *tokenService
	relay     *bridgeRelay
	endpoints *bridgeEndpoints
	client    *http.Client
	servers   []*httptest.Server
	close     func()
}

// NewBridgeService starts both servers. They run until Close.
func NewBridgeService(opts ...BridgeOption) *BridgeService {
	config := newBridgeConfig(opts)
	s := newBridgeService(config)
	token := startServer("token", s.TokenHandler(), config.server)
	relay := startServer("push", s.RelayHandler(), config.server)
	s.servers = []*httptest.Server{token, relay}
	s.client = token.Client()
	if config.server.inMemory {
		reachBoth(token, relay)
	}
	s.at(token.URL, relay.URL, s.client)
	return s
}

// NewUnstartedBridgeService returns a service that does not listen: the caller
// serves [BridgeService.TokenHandler] and [BridgeService.RelayHandler] itself,
// under the two base URLs, and strips their paths. Options about servers have
// no effect. The URLs are what tokens are issued by and for, and what others
// use; the relay gets the token service's keys from the handler itself, so that
// it need not reach it by a name that may be for others alone. It panics on a
// URL that is not an absolute one of http or https.
func NewUnstartedBridgeService(tokenURL, relayURL string, opts ...BridgeOption) *BridgeService {
	s := newBridgeService(newBridgeConfig(opts))
	s.client = http.DefaultClient
	s.at(mustBaseURL(tokenURL), mustBaseURL(relayURL), &http.Client{Transport: keyTransport{s.TokenHandler()}})
	return s
}

func mustBaseURL(base string) string {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
		panic("relaytest: NewUnstartedBridgeService needs absolute http or https URLs, without credentials or query")
	}
	return strings.TrimSuffix(base, "/")
}

func newBridgeService(config bridgeConfig) *BridgeService {
	s := &BridgeService{
		tokens:    newTokenService(config),
		relay:     newBridgeRelay(),
		endpoints: newBridgeEndpoints(),
	}
	s.close = sync.OnceFunc(func() {
		s.endpoints.close()
		for _, server := range s.servers {
			server.Close()
		}
	})
	return s
}

// at says where the two halves are reached, which their tokens depend on, and
// how the relay reaches the token service.
func (s *BridgeService) at(tokenURL, relayURL string, keys *http.Client) {
	s.TokenURL, s.RelayURL = tokenURL, relayURL
	s.tokens.issuer, s.tokens.audience = tokenURL, relayURL
	s.relay.trust(tokenURL, relayURL, keys)
}

// reachBoth makes the client of one server in memory reach the other as well.
func reachBoth(token, relay *httptest.Server) {
	dial := func(s *httptest.Server) func(context.Context, string, string) (net.Conn, error) {
		return s.Client().Transport.(*http.Transport).DialContext
	}
	dialToken, dialRelay := dial(token), dial(relay)
	relayHost := relay.Listener.Addr().String()
	token.Client().Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if host, _, _ := net.SplitHostPort(address); host == relayHost {
			return dialRelay(ctx, network, address)
		}
		return dialToken(ctx, network, address)
	}
}

// Client returns a client that reaches both servers: it trusts their
// certificate, and dials them in memory if that is where they are. It is
// [http.DefaultClient] for an unstarted service.
func (s *BridgeService) Client() *http.Client { return s.client }

// Close ends scripted delays, waits for the requests in hand and stops both
// servers. It may be called more than once.
func (s *BridgeService) Close() { s.close() }

// TokenHandler is the token service: POST /token, GET /.well-known/jwks.json,
// POST /clients, DELETE /clients/{id} and GET /health.
func (s *BridgeService) TokenHandler() http.Handler {
	return s.endpoints.routes([]bridgeRoute{
		{EndpointToken, "POST", "/token", s.tokens.serveToken},
		{EndpointJWKS, "GET", "/.well-known/jwks.json", s.tokens.serveJWKS},
		{EndpointAddClient, "POST", "/clients", s.tokens.serveAddClient},
		{EndpointDeleteClient, "DELETE", "/clients/{id}", s.tokens.serveDeleteClient},
		{EndpointTokenHealth, "GET", "/health", serveHealth},
	})
}

// RelayHandler is the push relay: POST and DELETE /register, POST /push and GET
// /health.
func (s *BridgeService) RelayHandler() http.Handler {
	return s.endpoints.routes([]bridgeRoute{
		{EndpointRegister, "POST", "/register", s.relay.authenticated(s.relay.serveRegister)},
		{EndpointUnregister, "DELETE", "/register", s.relay.authenticated(s.relay.serveUnregister)},
		{EndpointPush, "POST", "/push", s.relay.authenticated(s.relay.servePush)},
		{EndpointRelayHealth, "GET", "/health", serveHealth},
	})
}

func serveHealth(w http.ResponseWriter, _ *http.Request) {
	writeBridgeJSON(w, http.StatusOK, bridgeOK{OK: true, Message: "healthy"})
}

// AdminCredentials are the token service's own client of scope "admin". A token
// for it, from POST /token, creates and deletes clients.
func (s *BridgeService) AdminCredentials() (clientID, clientSecret string) {
	return adminClientID, s.tokens.adminSecret()
}

// AddClient creates a client of scope "push:write", as an operator does with
// POST /clients, and returns its secret. A client of that id is replaced.
func (s *BridgeService) AddClient(clientID string) (clientSecret string) {
	return s.tokens.addClient(clientID, scopePush)
}

// Token returns a token as POST /token issues it to a client of scope
// "push:write", whether or not there is such a client.
func (s *BridgeService) Token(clientID string) string {
	token, _ := s.tokens.issue(clientID, scopePush)
	return token
}

// SignToken signs claims with the current key as they are: what it takes to
// see that a relay refuses an expired token, or one for somebody else. It
// panics if claims cannot be encoded as JSON.
func (s *BridgeService) SignToken(claims map[string]any) string {
	return s.tokens.key().sign(claims)
}

// RotateKey replaces the key that tokens are signed with. The push relay takes
// note at once, so that every earlier token is refused. (A relay that is not
// told finds out when it meets a token of the new key, or when the key set that
// it holds is an hour old.)
func (s *BridgeService) RotateKey() {
	s.tokens.rotate()
	s.relay.forgetKeys()
}
