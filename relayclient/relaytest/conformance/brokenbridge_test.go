package conformance_test

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/relayclient/relaytest/conformance"
	"github.com/sealpush/sealpush/secret"
)

// A brokenBridge is a bridge service that does one thing wrong, in its token
// service or in its push relay.
type brokenBridge struct{ token, relay brokenRelay }

// A bridgeFixture is one client of a right bridge service.
type bridgeFixture struct {
	service *relaytest.BridgeService
	client  string
	secret  secret.Text
	foreign *rsa.PrivateKey // not the service's
	issued  atomic.Value    // the latest token that a client got, a string
}

func newBridgeFixture(service *relaytest.BridgeService, foreign *rsa.PrivateKey) *bridgeFixture {
	client := "conformance-" + randomHex()
	return &bridgeFixture{service: service, client: client, secret: service.AddClient(client), foreign: foreign}
}

func (f *bridgeFixture) latest() string {
	token, _ := f.issued.Load().(string)
	return token
}

// serve puts the service behind what is broken about it.
func (f *bridgeFixture) serve(t *testing.T, b brokenBridge) conformance.Target {
	change := b.token.after
	b.token.after = func(p *post, a *httptest.ResponseRecorder) {
		if change != nil {
			change(p, a)
		}
		if token := accessToken(a.Body.Bytes()); token != "" {
			f.issued.Store(token)
		}
	}
	token := httptest.NewServer(b.token.over(f.service.TokenHandler()))
	t.Cleanup(token.Close)
	relay := httptest.NewServer(b.relay.over(f.service.RelayHandler()))
	t.Cleanup(relay.Close)
	return conformance.Target{Bridge: conformance.Bridge{
		TokenURL: token.URL, RelayURL: relay.URL, ClientID: f.client, ClientSecret: f.secret,
	}}
}

func accessToken(body []byte) string {
	var answer struct {
		AccessToken string `json:"access_token"`
	}
	json.Unmarshal(body, &answer)
	return answer.AccessToken
}

// replaces makes the token service issue another token, which the push relay
// takes as though it were the one that it replaces.
func (f *bridgeFixture) replaces(token func(right jwt.MapClaims, kid any) string) brokenBridge {
	return brokenBridge{
		token: brokenRelay{after: func(_ *post, a *httptest.ResponseRecorder) {
			issued := accessToken(a.Body.Bytes())
			if issued == "" {
				return
			}
			right, _, _ := jwt.NewParser().ParseUnverified(issued, jwt.MapClaims{})
			replaced := token(right.Claims.(jwt.MapClaims), right.Header["kid"])
			a.Body = bytes.NewBufferString(strings.Replace(a.Body.String(), issued, replaced, 1))
		}},
		relay: f.takesBearer(func(bearer string, _ *jwt.Token) bool { return bearer == f.latest() }).relay,
	}
}

// takesBearer takes some tokens for the client's.
func (f *bridgeFixture) takesBearer(where func(bearer string, parsed *jwt.Token) bool) brokenBridge {
	return brokenBridge{relay: brokenRelay{before: func(_ http.ResponseWriter, p *post) bool {
		bearer := strings.TrimPrefix(p.Header.Get("Authorization"), "Bearer ")
		parsed, _, err := jwt.NewParser().ParseUnverified(bearer, jwt.MapClaims{})
		if err != nil {
			parsed = &jwt.Token{Header: map[string]any{}, Claims: jwt.MapClaims{}}
		}
		if where(bearer, parsed) {
			p.Header.Set("Authorization", "Bearer "+f.service.Token(f.client))
		}
		return false
	}}}
}

// request is a brokenRelay that looks at the client's own requests.
func (f *bridgeFixture) request(method, path string, before func(w http.ResponseWriter, p *post) bool) brokenRelay {
	return brokenRelay{before: func(w http.ResponseWriter, p *post) bool {
		return p.Method == method && p.URL.Path == path &&
			p.Header.Get("Authorization") == "Bearer "+f.latest() && before(w, p)
	}}
}

// fills puts a value where a member is missing, or such that where says so.
func (f *bridgeFixture) fills(method, path, name string, value any, where func(value any, has bool) bool) brokenBridge {
	return brokenBridge{relay: f.request(method, path, func(_ http.ResponseWriter, p *post) bool {
		// An object without members stays wrong.
		if v, has := p.members[name]; len(p.members) > 0 && where(v, has) {
			p.set(name, value)
		}
		return false
	})}
}

func (f *bridgeFixture) sign(header map[string]any, claims jwt.MapClaims) string {
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	maps.Copy(token.Header, header)
	signed, err := token.SignedString(f.foreign)
	if err != nil {
		panic(err)
	}
	return signed
}

// publishesForeign makes the JWK set name the foreign key under a kid.
func (f *bridgeFixture) publishesForeign(kid func(right string) string) func(*post, *httptest.ResponseRecorder) {
	return func(p *post, a *httptest.ResponseRecorder) {
		if p.URL.Path != "/.well-known/jwks.json" {
			return
		}
		var set struct {
			Keys []map[string]any `json:"keys"`
		}
		json.Unmarshal(a.Body.Bytes(), &set)
		right, _ := set.Keys[0]["kid"].(string)
		set.Keys[0]["kid"] = kid(right)
		set.Keys[0]["n"] = base64.RawURLEncoding.EncodeToString(f.foreign.N.Bytes())
		encoded, _ := json.Marshal(set)
		a.Body = bytes.NewBuffer(encoded)
	}
}

const onceMore = "once-more"

// broken has, under the name of each check, bridge services that only this
// check finds to be wrong.
func (f *bridgeFixture) broken() map[string][]brokenBridge {
	onToken := func(r brokenRelay) []brokenBridge { return []brokenBridge{{token: r}} }
	onRelay := func(r brokenRelay) []brokenBridge { return []brokenBridge{{relay: r}} }
	credentials := func(change func(p *post)) brokenBridge {
		return brokenBridge{token: brokenRelay{before: func(_ http.ResponseWriter, p *post) bool {
			change(p)
			return false
		}}}
	}

	otherAlgorithm := f.replaces(func(right jwt.MapClaims, _ any) string {
		return f.sign(map[string]any{"alg": "RS512", "kid": "foreign"}, right)
	})
	issue, publish := otherAlgorithm.token.after, f.publishesForeign(func(string) string { return "foreign" })
	otherAlgorithm.token.after = func(p *post, a *httptest.ResponseRecorder) { issue(p, a); publish(p, a) }

	twoHours := f.replaces(func(right jwt.MapClaims, _ any) string {
		right["exp"] = right["iat"].(float64) + (2 * time.Hour).Seconds()
		return f.service.SignToken(right)
	})

	return map[string][]brokenBridge{
		"token-issue":    onToken(changesBody(http.StatusOK, `"Bearer"`, `"MAC"`)),
		"token-jwt":      {otherAlgorithm},
		"token-jwks":     onToken(brokenRelay{after: f.publishesForeign(func(right string) string { return right })}),
		"token-subject":  {f.replaces(func(right jwt.MapClaims, _ any) string { right["sub"] = "somebody"; return f.service.SignToken(right) })},
		"token-expiry":   onToken(changesBody(http.StatusOK, `"expires_in":3600`, `"expires_in":3601`)),
		"token-one-hour": {twoHours},
		"token-claims": {
			f.replaces(func(right jwt.MapClaims, _ any) string { delete(right, "iss"); return f.service.SignToken(right) }),
			f.replaces(func(right jwt.MapClaims, _ any) string { right["scope"] = "admin"; return f.service.SignToken(right) }),
		},
		"token-bad-secret": {
			credentials(func(p *post) {
				if strings.HasPrefix(p.text("client_secret"), f.secret.Reveal()) {
					p.set("client_secret", f.secret.Reveal())
				}
			}),
			credentials(func(p *post) {
				if p.members["client_secret"] == "" {
					p.set("client_secret", f.secret.Reveal())
				}
			}),
		},
		"token-unknown-client": {credentials(func(p *post) {
			if strings.HasPrefix(p.text("client_id"), "nobody-") {
				p.set("client_id", f.client)
			}
		})},
		"token-malformed": {
			credentials(func(p *post) {
				if p.members["client_id"] == nil && p.members != nil {
					p.set("client_id", f.client)
				}
			}),
			{token: brokenRelay{before: func(w http.ResponseWriter, p *post) bool {
				return p.URL.Path == "/token" && p.members == nil && answer(w, http.StatusOK, "{}")
			}}},
		},
		"token-invalid-client": {
			{token: changesBody(http.StatusUnauthorized, "invalid_client", "no such client, or not its secret")},
			{token: brokenRelay{after: func(p *post, a *httptest.ResponseRecorder) {
				if strings.HasPrefix(p.text("client_id"), "nobody-") {
					a.Code = http.StatusNotFound
				}
			}}},
		},

		"push-no-devices":        onRelay(brokenRelay{after: statusWhere(http.StatusNotFound, func(p *post, results int) bool { return results == 0 && p.members["data"] == nil })}),
		"push-no-devices-answer": onRelay(changesBody(http.StatusOK, "No devices registered", "Nobody is here")),

		"bearer-missing": {f.takesBearer(func(bearer string, _ *jwt.Token) bool { return bearer == "" })},
		"bearer-garbage": {f.takesBearer(func(bearer string, _ *jwt.Token) bool { return bearer == "not-a-token" })},
		"bearer-tampered": {f.takesBearer(func(_ string, t *jwt.Token) bool {
			sub, _ := t.Claims.GetSubject()
			return sub != "" && sub != f.client
		})},
		"bearer-alg-none": {f.takesBearer(func(_ string, t *jwt.Token) bool { return t.Header["alg"] == "none" })},
		"bearer-alg-hmac": {f.takesBearer(func(_ string, t *jwt.Token) bool { return t.Header["alg"] == "HS256" })},
		"bearer-foreign-key": {f.takesBearer(func(bearer string, t *jwt.Token) bool {
			sub, _ := t.Claims.GetSubject()
			return bearer != f.latest() && t.Header["alg"] == "RS256" && sub == f.client && t.Header["kid"] == f.kid()
		})},
		"bearer-unknown-kid": {
			f.takesBearer(func(_ string, t *jwt.Token) bool { return t.Header["kid"] != nil && t.Header["kid"] != f.kid() }),
			{relay: brokenRelay{after: func(p *post, a *httptest.ResponseRecorder) {
				bearer := strings.TrimPrefix(p.Header.Get("Authorization"), "Bearer ")
				if t, _, err := jwt.NewParser().ParseUnverified(bearer, jwt.MapClaims{}); err == nil && t.Header["kid"] != f.kid() {
					a.Code = http.StatusInternalServerError
				}
			}}},
		},

		"register-ios":     onRelay(f.failsFirst("ios")),
		"register-android": onRelay(f.failsFirst("android")),
		"register-no-token": {
			f.fills(http.MethodPost, "/register", "device_token", onceMore, missing),
			f.fills(http.MethodPost, "/register", "device_token", onceMore, func(v any, _ bool) bool { return v == "" }),
		},
		"register-platform": {
			f.fills(http.MethodPost, "/register", "platform", "ios", missing),
			f.fills(http.MethodPost, "/register", "platform", "ios", func(v any, _ bool) bool { return v == "apns" }),
		},
		"register-answer": {
			{relay: changesBody(http.StatusOK, `"message":"Device registered"`, `"message":""`)},
			{relay: changesBody(http.StatusBadRequest, `"ok":false,`, "")},
		},
		"register-status-400": onRelay(answersInstead(http.StatusBadRequest, http.StatusUnprocessableEntity)),
		"unregister": onRelay(f.request(http.MethodDelete, "/register", func(w http.ResponseWriter, p *post) bool {
			return p.members["device_token"] != nil && answer(w, http.StatusOK, `{"ok":true,"message":"Device unregistered"}`)
		})),
		"unregister-no-token": {f.fills(http.MethodDelete, "/register", "device_token", onceMore, missing)},
		"bridge-not-json": {
			{relay: f.request(http.MethodPost, "/push", notJSON)},
			{relay: f.request(http.MethodPost, "/register", notJSON)},
			{relay: f.request(http.MethodDelete, "/register", notJSON)},
		},

		"push-devices": onRelay(brokenRelay{after: statusWhere(http.StatusBadGateway, func(_ *post, results int) bool { return results > 1 })}),
		"push-results": {
			{relay: changesBody(http.StatusOK, `"status":"sent"`, `"status":"delivered"`)},
			{relay: changesBody(http.StatusOK, `"platform":"android"`, `"platform":"fcm"`)},
		},
		"push-registered-twice": onRelay(f.registersAgain()),
		"push-data": onRelay(f.request(http.MethodPost, "/push", func(w http.ResponseWriter, p *post) bool {
			return p.members["data"] != nil && answer(w, http.StatusBadRequest, `{"ok":false,"error":"no data, please"}`)
		})),
		"push-missing-field": {
			f.fills(http.MethodPost, "/push", "title", onceMore, missing),
			f.fills(http.MethodPost, "/push", "body", onceMore, missing),
		},
		"bridge-health": {
			{relay: brokenRelay{before: noHealth}},
			{token: brokenRelay{before: noHealth}},
		},
	}
}

// kid is the id of the service's key.
func (f *bridgeFixture) kid() any {
	parsed, _, _ := jwt.NewParser().ParseUnverified(f.service.Token(f.client), jwt.MapClaims{})
	return parsed.Header["kid"]
}

// statusWhere changes the status of pushes by the number of their results.
func statusWhere(status int, where func(p *post, results int) bool) func(*post, *httptest.ResponseRecorder) {
	return func(p *post, a *httptest.ResponseRecorder) {
		var body struct{ Results []any }
		json.Unmarshal(a.Body.Bytes(), &body)
		if p.URL.Path == "/push" && a.Code == http.StatusOK && where(p, len(body.Results)) {
			a.Code = status
		}
	}
}

func (f *bridgeFixture) failsFirst(platform string) brokenRelay {
	once := onlyOnce(func(p *post) bool { return p.text("platform") == platform }, http.StatusInternalServerError)
	return f.request(http.MethodPost, "/register", once.before)
}

// registersAgain makes a device of its own of each registration.
func (f *bridgeFixture) registersAgain() brokenRelay {
	seen := map[string]bool{}
	return f.request(http.MethodPost, "/register", func(_ http.ResponseWriter, p *post) bool {
		token := p.text("device_token")
		if token == "" {
			return false
		}
		if seen[token] {
			p.set("device_token", token+randomHex())
		}
		seen[token] = true
		return false
	})
}

func notJSON(w http.ResponseWriter, p *post) bool {
	return p.members == nil && answer(w, http.StatusOK, `{"ok":true,"message":"whatever it was"}`)
}

func noHealth(w http.ResponseWriter, p *post) bool {
	return p.URL.Path == "/health" && answer(w, http.StatusNotFound, "")
}

func TestEachCheckFindsItsBrokenBridge(t *testing.T) {
	service := relaytest.NewBridgeService(relaytest.WithHashRounds(1))
	t.Cleanup(service.Close)
	foreign, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	checks := checksOf(t, conformance.BridgeRelay)
	broken := newBridgeFixture(service, foreign).broken()
	eachIsProved(t, checks, broken)
	for _, check := range checks {
		for i := range broken[check.Name] {
			t.Run(variantName(check.Name, i), func(t *testing.T) {
				t.Parallel()
				f := newBridgeFixture(service, foreign)
				findsOnly(t, t.Context(), f.serve(t, f.broken()[check.Name][i]), check)
			})
		}
	}
}
