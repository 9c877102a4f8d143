package relay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sealpush/sealpush/secret"
)

const (
	scopePush     = "push:write"
	scopeAdmin    = "admin"
	adminClientID = "admin"
)

// A TokenService issues RS256 JWTs to clients that know their secret (bridge push, "cf-token"): POST /token, GET
// /.well-known/jwks.json, POST /clients, DELETE /clients/{id} and GET /health. Paths, member names and the word
// "Bearer" are taken as they are written here, and every other method or path is answered 404, as by the deployed one.
//
// It keeps its clients in memory, with a PBKDF2-SHA256 hash of each secret. A secret contains a tag that shows who made
// it, so a wrong one is refused at almost no cost. A right one takes a hash; one hash is computed at a time, and a
// client of which 8 requests wait is answered 429.
type TokenService struct {
	config      tokenConfig
	clients     *tokenClients
	adminSecret func() secret.Text // creates the admin when somebody first asks

	mu      sync.Mutex
	current *signingKey // nil until it is needed: making one takes a while
}

// NewTokenService makes a token service. It needs [WithIssuer] and [WithAudience].
func NewTokenService(opts ...TokenOption) (*TokenService, error) {
	c, err := newTokenConfig(opts)
	if err != nil {
		return nil, err
	}
	s := &TokenService{config: c, clients: newTokenClients(c.hashRounds)}
	s.adminSecret = sync.OnceValue(func() secret.Text { return s.addClient(adminClientID, scopeAdmin) })
	if c.signingKey != nil {
		s.current = newSigningKey(c.signingKey)
	}
	return s, nil
}

// ServeHTTP answers as the token service does.
func (s *TokenService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var handler bridgeHandler
	path := r.URL.EscapedPath()
	switch r.Method + " " + path {
	case "POST /token":
		handler = s.serveToken
	case "GET /.well-known/jwks.json":
		handler = s.serveJWKS
	case "POST /clients":
		handler = s.serveAddClient
	case "GET /health":
		handler = serveHealth
	default:
		if id, ok := strings.CutPrefix(path, "/clients/"); ok && r.Method == http.MethodDelete && id != "" && !strings.Contains(id, "/") {
			handler = s.serveDeleteClient
		}
	}
	serveBody(w, r, maxBridgeBody, handler)
}

// AdminCredentials are the token service's own client of scope "admin". A token for it, from POST /token, creates and
// deletes clients.
func (s *TokenService) AdminCredentials() (clientID string, clientSecret secret.Text) {
	return adminClientID, s.adminSecret()
}

// AddClient creates a client of scope "push:write", as an operator does with POST /clients, and returns its secret. A
// client of that id is replaced.
func (s *TokenService) AddClient(clientID string) (clientSecret secret.Text) {
	return s.addClient(clientID, scopePush)
}

func (s *TokenService) addClient(id, scope string) secret.Text {
	made, err := s.clients.add(context.Background(), id, scope, true)
	if err != nil {
		panic(err) // PBKDF2 refuses parameters that are not ours
	}
	return secret.New(made)
}

// Token returns a token as POST /token issues it to a client of scope "push:write", whether or not there is such a
// client.
func (s *TokenService) Token(clientID string) string {
	token, _ := s.issue(clientID, scopePush)
	return token
}

// SignToken signs claims with the current key as they are: what it takes to see that a relay refuses an expired token,
// or one for somebody else. It panics if claims cannot be encoded as JSON.
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

func (s *TokenService) serveToken(w http.ResponseWriter, r *http.Request, body []byte) {
	var credentials bridgeBody
	if json.Unmarshal(body, &credentials) != nil {
		credentials = nil // which the deployed service answers like wrong ones
	}
	id := credentials.string("client_id")
	scope, err := s.clients.authenticate(r.Context(), id, credentials.string("client_secret"))
	switch {
	case errors.Is(err, errCredentials):
		writeBridgeError(w, http.StatusUnauthorized, "invalid_client")
		return
	case err != nil: // so many at once, or the client has gone
		w.Header().Set("Retry-After", "1")
		writeBridgeError(w, http.StatusTooManyRequests, "too many requests at once")
		return
	}
	token, expiresIn := s.issue(id, scope)
	w.Header().Set("Cache-Control", "no-store") // RFC 6749 section 5.1
	writeBridgeJSON(w, http.StatusOK, struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		ExpiresIn   int64  `json:"expires_in"`
	}{token, "Bearer", expiresIn})
}

func (s *TokenService) serveJWKS(w http.ResponseWriter, _ *http.Request, _ []byte) {
	w.Header().Set("Cache-Control", "public, max-age=3600")
	writeBridgeJSON(w, http.StatusOK, s.key().public())
}

const maxClientID = 128 // bytes

func validClientID(id string) bool {
	return id != "" && len(id) <= maxClientID && utf8.ValidString(id) && !strings.ContainsFunc(id, unicode.IsControl)
}

func (s *TokenService) serveAddClient(w http.ResponseWriter, r *http.Request, body []byte) {
	if !s.admit(w, r) {
		return
	}
	members, ok := readBridgeBody(w, body)
	if !ok {
		return
	}
	id, scope := members.string("client_id"), members.string("scope")
	if !validClientID(id) {
		writeBridgeError(w, http.StatusBadRequest, fmt.Sprintf("client_id is missing, longer than %d bytes, or has control characters", maxClientID))
		return
	}
	if scope != scopePush && scope != scopeAdmin {
		writeBridgeError(w, http.StatusBadRequest, "scope is neither push:write nor admin")
		return
	}
	made, err := s.clients.add(r.Context(), id, scope, false)
	switch {
	case errors.Is(err, errClientExists):
		writeBridgeError(w, http.StatusConflict, "client_id exists")
		return
	case err != nil:
		writeBridgeError(w, http.StatusServiceUnavailable, "the service has no room for another client")
		return
	}
	writeBridgeJSON(w, http.StatusCreated, struct {
		OK     bool   `json:"ok"`
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
		Scope  string `json:"scope"`
	}{true, id, made, scope})
}

// serveDeleteClient ends the issuing of tokens to a client. Those that it has stay valid until they expire, as nothing
// asks the token service about them. An id that nobody has is no error, as at the deployed service.
func (s *TokenService) serveDeleteClient(w http.ResponseWriter, r *http.Request, _ []byte) {
	if !s.admit(w, r) {
		return
	}
	id, err := url.PathUnescape(strings.TrimPrefix(r.URL.EscapedPath(), "/clients/"))
	if err != nil {
		writeBridgeError(w, http.StatusBadRequest, "the client id in the path is not percent-encoded")
		return
	}
	s.clients.remove(id)
	writeBridgeJSON(w, http.StatusOK, bridgeOK{OK: true, Message: "Client deleted"})
}

// admit lets an admin's request pass and answers any other with 401, a client's of another scope too.
func (s *TokenService) admit(w http.ResponseWriter, r *http.Request) bool {
	bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	key := s.key()
	var claims struct {
		jwt.RegisteredClaims
		Scope string `json:"scope"`
	}
	_, err := jwt.ParseWithClaims(bearer, &claims,
		func(*jwt.Token) (any, error) { return &key.private.PublicKey, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodRS256.Name}),
		jwt.WithExpirationRequired(), jwt.WithIssuer(s.config.issuer), jwt.WithAudience(s.config.audience))
	if !ok || err != nil || !slices.Contains(strings.Fields(claims.Scope), scopeAdmin) {
		refuseBearer(w, http.StatusUnauthorized, "invalid_token")
		return false
	}
	return true
}
