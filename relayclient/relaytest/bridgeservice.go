package relaytest

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/secret"
)

// BridgeService is the token service and the push relay that a bridge talks to, with everything in memory: two servers,
// so that each can fail on its own. It is safe for concurrent use.
//
// A test creates a client, points a bridge at the two URLs, and looks at what arrived:
//
//	service := relaytest.NewBridgeService()
//	defer service.Close()
//	secret := service.AddClient("bridge-home-office")
//	// … a bridge uses service.RelayURL, service.TokenURL, the id and the secret …
//	pushes := service.Pushes("bridge-home-office")
//
// Inside a testing/synctest bubble it runs on listeners in memory ([InMemory]), and time is the bubble's: a token
// expires when the bubble's clock says so.
type BridgeService struct {
	TokenURL string // base URL of the token service, the issuer of its tokens
	RelayURL string // base URL of the push relay, the audience of the tokens

	tokens    *relay.TokenService
	bridge    *relay.Bridge
	keys      *bridgeKeys
	phones    *bridgePhones
	endpoints *bridgeEndpoints
	client    *http.Client
	servers   []*server
	close     func()

	lossy   bool       // see WithLossyRegistrations
	writing sync.Mutex // of a lossy list
}

// NewBridgeService starts both servers. They run until Close. It panics on an option that is nil or has a bad value.
func NewBridgeService(opts ...BridgeOption) *BridgeService {
	config := newBridgeConfig(opts)
	token, push := newServer("token", config.server), newServer("push", config.server)
	s := newBridgeService(token.url, push.url, config)
	s.servers = []*server{token, push}
	token.start(s.TokenHandler())
	s.client = token.Client()
	s.keys.trust(s.client)
	push.start(s.RelayHandler())
	if config.server.inMemory {
		reachBoth(token, push)
	}
	return s
}

// NewUnstartedBridgeService returns a service that does not listen: the caller serves [BridgeService.TokenHandler] and
// [BridgeService.RelayHandler] itself, under the two base URLs, and strips their paths. Options about servers have no
// effect. The URLs are what tokens are issued by and for, and what others use; the relay gets the token service's keys
// from the handler itself, so that it need not reach it by a name that may be for others alone. It panics on a URL that
// is not an absolute one of http or https.
func NewUnstartedBridgeService(tokenURL, relayURL string, opts ...BridgeOption) *BridgeService {
	s := newBridgeService(strings.TrimSuffix(tokenURL, "/"), strings.TrimSuffix(relayURL, "/"), newBridgeConfig(opts))
	s.client = http.DefaultClient
	s.keys.trust(&http.Client{Transport: keyTransport{s.TokenHandler()}})
	return s
}

func newBridgeService(tokenURL, relayURL string, config bridgeConfig) *BridgeService {
	s := &BridgeService{
		TokenURL:  tokenURL,
		RelayURL:  relayURL,
		keys:      &bridgeKeys{issuer: tokenURL, audience: relayURL},
		phones:    newBridgePhones(),
		endpoints: newBridgeEndpoints(),

		lossy: config.lossy,
	}
	var err error
	s.tokens, err = relay.NewTokenService(append(config.tokens, relay.WithIssuer(tokenURL), relay.WithAudience(relayURL))...)
	must(err)
	quiet := relay.WithBridgeLogger(slog.New(slog.DiscardHandler)) // failures are what a test has asked for
	s.bridge, err = relay.NewBridge(append(append([]relay.BridgeOption{quiet}, config.bridge...),
		relay.WithAuthenticator(s.keys), relay.WithBridgeForwarder(s.phones), relay.OnPush(s.phones.record))...)
	must(err)
	s.close = sync.OnceFunc(func() {
		s.endpoints.close()
		for _, server := range s.servers {
			server.Close()
		}
	})
	return s
}

// reachBoth makes the client of one server in memory reach the other as well.
func reachBoth(token, push *server) {
	token.Client().Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if host, _, _ := net.SplitHostPort(address); host == string(push.memory.host) {
			return push.memory.dial(ctx, network, address)
		}
		return token.memory.dial(ctx, network, address)
	}
}

// Client returns a client that reaches both servers: it trusts their certificate, and dials them in memory if that is
// where they are. It is [http.DefaultClient] for an unstarted service.
func (s *BridgeService) Client() *http.Client { return s.client }

// Close ends scripted delays, waits for the requests in hand and stops both servers. It may be called more than once.
func (s *BridgeService) Close() { s.close() }

// TokenHandler is the token service, with its script.
func (s *BridgeService) TokenHandler() http.Handler {
	return s.endpoints.before(s.tokens, tokenEndpoint)
}

// RelayHandler is the push relay, with its script.
func (s *BridgeService) RelayHandler() http.Handler {
	return s.endpoints.before(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch endpoint := relayEndpoint(r); {
		case endpoint == EndpointPush:
			s.servePush(w, r)
		case s.lossy && (endpoint == EndpointRegister || endpoint == EndpointUnregister):
			s.serveLossy(w, r)
		default:
			s.bridge.ServeHTTP(w, r)
		}
	}), relayEndpoint)
}

// AdminCredentials are [relay.TokenService.AdminCredentials].
func (s *BridgeService) AdminCredentials() (clientID string, clientSecret secret.Text) {
	return s.tokens.AdminCredentials()
}

// AddClient is [relay.TokenService.AddClient].
func (s *BridgeService) AddClient(clientID string) (clientSecret secret.Text) {
	return s.tokens.AddClient(clientID)
}

// Token is [relay.TokenService.Token].
func (s *BridgeService) Token(clientID string) string { return s.tokens.Token(clientID) }

// SignToken is [relay.TokenService.SignToken].
func (s *BridgeService) SignToken(claims map[string]any) string { return s.tokens.SignToken(claims) }

// Devices is [relay.Bridge.Devices].
func (s *BridgeService) Devices(clientID string) []relay.BridgeDevice {
	return s.bridge.Devices(clientID)
}

// RotateKey replaces the key that tokens are signed with. The push relay takes note at once, so that every earlier
// token is refused. (A relay that is not told finds out when it meets a token of the new key, or when the key set that
// it holds is an hour old.)
func (s *BridgeService) RotateKey() {
	s.tokens.RotateKey()
	s.keys.forget()
}
