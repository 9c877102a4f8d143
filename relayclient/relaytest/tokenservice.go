package relaytest

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

// tokenService issues RS256 JWTs to clients that know their secret.
type tokenService struct {
	issuer, audience string
	lifetime         time.Duration
	clients          *tokenClients
	adminSecret      func() string // creates the admin when somebody first asks

	mu      sync.Mutex
	current *signingKey // nil until it is needed: making one takes a while
}

func newTokenService(config bridgeConfig) *tokenService {
	s := &tokenService{lifetime: config.tokenLifetime, clients: newTokenClients(config.hashRounds)}
	s.adminSecret = sync.OnceValue(func() string { return s.addClient(adminClientID, scopeAdmin) })
	if config.signingKey != nil {
		s.current = newSigningKey(config.signingKey)
	}
	return s
}

func (s *tokenService) addClient(id, scope string) (secret string) {
	secret = rand.Text()
	s.clients.set(id, secret, scope)
	return secret
}

func (s *tokenService) key() *signingKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		s.current = makeSigningKey()
	}
	return s.current
}

func (s *tokenService) rotate() {
	key := makeSigningKey()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = key
}

func (s *tokenService) issue(clientID, scope string) (token string, expiresIn int64) {
	now := time.Now().Unix()
	expiresIn = int64(s.lifetime / time.Second)
	return s.key().sign(map[string]any{
		"iss":   s.issuer,
		"sub":   clientID,
		"aud":   s.audience,
		"iat":   now,
		"exp":   now + expiresIn,
		"scope": scope,
	}), expiresIn
}

func (s *tokenService) serveToken(w http.ResponseWriter, r *http.Request) {
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

func (s *tokenService) serveJWKS(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Cache-Control", "public, max-age=3600")
	writeBridgeJSON(w, http.StatusOK, s.key().public())
}

var clientIDPattern = regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`)

func (s *tokenService) serveAddClient(w http.ResponseWriter, r *http.Request) {
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
func (s *tokenService) serveDeleteClient(w http.ResponseWriter, r *http.Request) {
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
func (s *tokenService) admit(w http.ResponseWriter, r *http.Request) bool {
	scheme, bearer, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	key := s.key()
	var claims struct {
		jwt.RegisteredClaims
		Scope string `json:"scope"`
	}
	_, err := jwt.ParseWithClaims(bearer, &claims,
		func(*jwt.Token) (any, error) { return &key.private.PublicKey, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodRS256.Name}),
		jwt.WithExpirationRequired(), jwt.WithIssuer(s.issuer), jwt.WithAudience(s.audience))
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
