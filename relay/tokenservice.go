package relay

import (
	"crypto/rand"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

const (
	scopePush     = "push:write"
	scopeAdmin    = "admin"
	adminClientID = "admin"
)

// A TokenService issues RS256 JWTs to clients that know their secret (bridge push,
// "cf-token"): POST /token, GET /.well-known/jwks.json, POST /clients,
// DELETE /clients/{id} and GET /health. It keeps its clients in memory.
type TokenService struct {
	config      tokenConfig
	mux         http.Handler
	clients     *tokenClients
	adminSecret func() string // creates the admin when somebody first asks

	mu      sync.Mutex
	current *signingKey // nil until it is needed: making one takes a while
}

// NewTokenService makes a token service. It needs [WithIssuer] and
// [WithAudience].
func NewTokenService(opts ...TokenOption) (*TokenService, error) {
	c, err := newTokenConfig(opts)
	if err != nil {
		return nil, err
	}
	s := &TokenService{config: c, clients: newTokenClients(c.hashRounds)}
	s.adminSecret = sync.OnceValue(func() string { return s.addClient(adminClientID, scopeAdmin) })
	if c.signingKey != nil {
		s.current = newSigningKey(c.signingKey)
	}
	s.mux = bridgeRoutes([]bridgeRoute{
		{"POST", "/token", s.serveToken},
		{"GET", "/.well-known/jwks.json", s.serveJWKS},
		{"POST", "/clients", s.serveAddClient},
		{"DELETE", "/clients/{id}", s.serveDeleteClient},
		{"GET", "/health", serveHealth},
	})
	return s, nil
}

// ServeHTTP answers as the token service does.
func (s *TokenService) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// AdminCredentials are the token service's own client of scope "admin". A token
// for it, from POST /token, creates and deletes clients.
func (s *TokenService) AdminCredentials() (clientID, clientSecret string) {
	return adminClientID, s.adminSecret()
}

// AddClient creates a client of scope "push:write", as an operator does with
// POST /clients, and returns its secret. A client of that id is replaced.
func (s *TokenService) AddClient(clientID string) (clientSecret string) {
	return s.addClient(clientID, scopePush)
}

func (s *TokenService) addClient(id, scope string) (secret string) {
	secret = rand.Text()
	s.clients.set(id, secret, scope)
	return secret
}

// Token returns a token as POST /token issues it to a client of scope
// "push:write", whether or not there is such a client.
func (s *TokenService) Token(clientID string) string {
	token, _ := s.issue(clientID, scopePush)
	return token
}

// SignToken signs claims with the current key as they are: what it takes to
// see that a relay refuses an expired token, or one for somebody else. It
// panics if claims cannot be encoded as JSON.
func (s *TokenService) SignToken(claims map[string]any) string { return s.key().sign(claims) }

// RotateKey replaces the key that tokens are signed with.
func (s *TokenService) RotateKey() {
	key := makeSigningKey()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = key
}

func (s *TokenService) key() *signingKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		s.current = makeSigningKey()
	}
	return s.current
}

func (s *TokenService) issue(clientID, scope string) (token string, expiresIn int64) {
	now := time.Now().Unix()
	expiresIn = int64(s.config.lifetime / time.Second)
	return s.key().sign(map[string]any{
		"iss":   s.config.issuer,
		"sub":   clientID,
		"aud":   s.config.audience,
		"iat":   now,
		"exp":   now + expiresIn,
		"scope": scope,
	}), expiresIn
}

func (s *TokenService) serveToken(w http.ResponseWriter, r *http.Request) {
	var credentials struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
	}
	if !readBridgeJSON(w, r, &credentials) {
		return
	}
	scope, ok := s.clients.authenticate(credentials.ClientID, credentials.ClientSecret)
	if !ok {
		writeBridgeError(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	token, expiresIn := s.issue(credentials.ClientID, scope)
	w.Header().Set("Cache-Control", "no-store") // RFC 6749 section 5.1
	writeBridgeJSON(w, http.StatusOK, struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		ExpiresIn   int64  `json:"expires_in"`
	}{token, "Bearer", expiresIn})
}

func (s *TokenService) serveJWKS(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "public, max-age=3600")
	writeBridgeJSON(w, http.StatusOK, s.key().public())
}

var clientIDPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

func (s *TokenService) serveAddClient(w http.ResponseWriter, r *http.Request) {
	if !s.admit(w, r) {
		return
	}
	var client struct {
		ID    string `json:"client_id"`
		Scope string `json:"scope"`
	}
	if !readBridgeJSON(w, r, &client) {
		return
	}
	if !clientIDPattern.MatchString(client.ID) {
		writeBridgeError(w, http.StatusBadRequest, "client_id is missing, or not 1 to 128 letters, digits, '.', '_' and '-'")
		return
	}
	if client.Scope != scopePush && client.Scope != scopeAdmin {
		writeBridgeError(w, http.StatusBadRequest, "scope is neither push:write nor admin")
		return
	}
	secret := rand.Text()
	if !s.clients.add(client.ID, secret, client.Scope) {
		writeBridgeError(w, http.StatusConflict, "client_id exists")
		return
	}
	writeBridgeJSON(w, http.StatusCreated, struct {
		OK     bool   `json:"ok"`
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Scope  string `json:"scope"`
	}{true, client.ID, secret, client.Scope})
}

// serveDeleteClient ends the issuing of tokens to a client. Those that it has
// stay valid until they expire, as nothing asks the token service about them.
func (s *TokenService) serveDeleteClient(w http.ResponseWriter, r *http.Request) {
	if !s.admit(w, r) {
		return
	}
	if !s.clients.remove(r.PathValue("id")) {
		writeBridgeError(w, http.StatusNotFound, "no such client")
		return
	}
	writeBridgeJSON(w, http.StatusOK, bridgeOK{OK: true, Message: "Client deleted"})
}

// admit lets an admin's request pass and answers any other.
func (s *TokenService) admit(w http.ResponseWriter, r *http.Request) bool {
	scheme, bearer, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	key := s.key()
	var claims struct {
		jwt.RegisteredClaims
		Scope string `json:"scope"`
	}
	_, err := jwt.ParseWithClaims(bearer, &claims,
		func(*jwt.Token) (any, error) { return &key.private.PublicKey, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodRS256.Name}),
		jwt.WithExpirationRequired(), jwt.WithIssuer(s.config.issuer), jwt.WithAudience(s.config.audience))
	if err != nil || !strings.EqualFold(scheme, "Bearer") {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		writeBridgeError(w, http.StatusUnauthorized, "invalid_token")
		return false
	}
	if !slices.Contains(strings.Fields(claims.Scope), scopeAdmin) {
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope"`)
		writeBridgeError(w, http.StatusForbidden, "insufficient_scope")
		return false
	}
	return true
}
