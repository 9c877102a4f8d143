package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/sealpush/sealpush/internal/answer"
	"github.com/sealpush/sealpush/pushauth"
	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/secret"
)

// checkBridge makes the requests of a bridge's notification in order. It sends the notification itself only if asked
// to.
func checkBridge(ctx context.Context, r *report, path string, page bool) {
	r.begin("Bridge configuration")
	config, ready := loadBridge(r, path)
	if !ready {
		return
	}
	r.begin("Token service")
	if !checkHealth(ctx, r, config.TokenURL, "token_url", config.ClientSecret.Reveal()) || !checkToken(ctx, r, config) {
		return // the relay takes nobody without a token
	}
	r.begin("Push relay of the bridge")
	if !checkHealth(ctx, r, config.URL, "url", config.ClientSecret.Reveal()) {
		return
	}
	client, err := bridge.New(config, bridge.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		r.fail("Correct [push_relay].", "%v", err)
		return
	}
	if base := withoutEnd(config.URL, "/push"); !checkAdmission(ctx, r, client) && base != config.URL {
		r.fail("Set url to "+base+".", "the path of url may have a /push too many: a bridge adds it")
	}
	if page {
		pageBridge(ctx, r, client)
	}
}

// table is what a bridge's configuration holds.
const bridgeTable = `    [push_relay]
    url = "https://push.example"
    token_url = "https://token.example"
    client_id = "CLIENT-ID"
    client_secret = "SHOWN-ONCE"`

func loadBridge(r *report, path string) (bridge.Config, bool) {
	if !checkFile(r, path, "the client secret",
		"Correct the path, or write the file: it is yours to write, and the relay's operator hands out what goes into it:\n"+bridgeTable) {
		return bridge.Config{}, false
	}
	config, err := bridge.LoadConfig(path)
	if err != nil {
		r.fail("Correct the file. Its [push_relay] table takes url, token_url, client_id and client_secret, all of them strings.", "%v", err)
		return config, false
	}
	var missing []string
	for name, value := range map[string]string{
		"url": config.URL, "token_url": config.TokenURL, "client_id": config.ClientID, "client_secret": config.ClientSecret.Reveal(),
	} {
		if strings.TrimSpace(value) == "" {
			missing = append(missing, name)
		}
	}
	switch {
	case config.Enabled():
		r.ok("[push_relay] is complete, client id %q", config.ClientID)
		return config, true
	case len(missing) == 4 && isEmpty(path):
		r.fail("Write [push_relay] into it, with what the relay's operator hands out:\n"+bridgeTable, "%s is empty: push is disabled", path)
	case len(missing) == 4:
		r.fail("Add [push_relay], with what the relay's operator hands out:\n"+bridgeTable,
			"there is no [push_relay] table, or nothing in it: push is disabled")
	default:
		r.fail("Fill it in: with a field empty, push is disabled.", "[push_relay] lacks %s", sorted(missing))
	}
	return config, false
}

// isEmpty reports whether a file holds nothing but space.
func isEmpty(path string) bool {
	content, err := os.ReadFile(path)
	return err == nil && len(bytes.TrimSpace(content)) == 0
}

// checkHealth looks for one of the two services. GET /health is harmless and takes no token.
func checkHealth(ctx context.Context, r *report, base, name string, secrets ...string) bool {
	endpoint, err := url.JoinPath(base, "health")
	if err != nil {
		r.fail("Correct "+name+".", "not a URL")
		return false
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
	if err != nil {
		r.fail("Correct "+name+".", "not a URL that can be called")
		return false
	}
	a, reached := reach(r, req, secrets...)
	if !reached {
		return false
	}
	switch {
	case a.status/100 == 2:
		r.ok("GET /health answers %d", a.status)
	case a.status/100 == 4 && a.status != http.StatusTooManyRequests:
		r.warn("Look at "+name+" if what follows fails, too: a service of this kind has one.", "GET /health answers %v", a)
	default:
		r.warn(statusAdvice(a, name), "GET /health answers %v", a)
	}
	return true
}

// checkAdmission asks the relay to unregister a device that was never registered. The relay answers that with success
// if it accepts the token.
func checkAdmission(ctx context.Context, r *report, client *bridge.Client) bool {
	madeUp := make([]byte, 32)
	rand.Read(madeUp)
	if err := client.Unregister(ctx, secret.New(hex.EncodeToString(madeUp))); err != nil {
		r.fail(bridgeAdvice(err), "%v", err)
		return false
	}
	r.ok("the relay takes the token (asked to forget a phone that nobody registered)")
	return true
}

// bridgeAdvice is for errors of package bridge and pushauth.
func bridgeAdvice(err error) string {
	if errors.Is(err, pushauth.ErrInvalidClient) {
		return "Correct client_id and client_secret. A secret is shown once: if it is lost, the operator makes the client anew."
	}
	if errors.Is(err, bridge.ErrNotDelivered) {
		return "See the lines about each phone, above."
	}
	if failed, ok := errors.AsType[*pushauth.TokenError](err); ok {
		if toDo := statusAdvice(reply{status: failed.StatusCode}, "token_url"); toDo != "" {
			return toDo
		}
		if failed.StatusCode != 0 {
			return "This is no token service, or a broken one: correct token_url, without the /token at its end."
		}
		return networkAdvice(err)
	}
	if errors.Is(err, bridge.ErrUnauthorized) {
		return "The relay trusts another token service, or this one for another relay: do url and token_url belong together? " +
			"If they do, the operator should compare issuer and audience, above, with the relay's settings."
	}
	if failed, ok := errors.AsType[*bridge.RelayError](err); ok && failed.StatusCode != 0 {
		if failed.StatusCode == http.StatusForbidden {
			return "The token's scope is not enough for the relay: the operator must make the client with scope push:write."
		}
		if toDo := statusAdvice(reply{status: failed.StatusCode}, "url"); toDo != "" {
			return toDo
		}
		return "This is no push relay, or one that disagrees: correct url, or ask the relay's operator."
	}
	return networkAdvice(err)
}

// refreshMargin is how long before its end a token is replaced (bridge push, "JWT Acquisition").
const refreshMargin = time.Minute

// checkToken fetches one token and says whether a relay can be expected to take it.
func checkToken(ctx context.Context, r *report, config bridge.Config) bool {
	source, err := pushauth.NewSource(pushauth.Credentials{
		TokenURL: config.TokenURL, ClientID: config.ClientID, ClientSecret: config.ClientSecret,
	}, pushauth.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		r.fail("Correct [push_relay].", "%v", err)
		return false
	}
	token, err := source.Token(ctx)
	if failed, ok := errors.AsType[*pushauth.TokenError](err); ok && nothingThere(failed.StatusCode) {
		switch base := withoutEnd(config.TokenURL, "/token"); {
		case base != config.TokenURL && isTokenService(ctx, base):
			r.fail("Set token_url to "+base+".", "%v: the path of token_url has a /token too many", err)
			return false
		case isTokenService(ctx, config.URL):
			r.fail("Exchange the two: the value of url belongs in token_url, and that of token_url in url.",
				"%v: url and token_url are swapped, for a token service answers at url", err)
			return false
		}
	}
	if err != nil {
		r.fail(bridgeAdvice(err), "%v", err)
		return false
	}
	checkLifetime(r, token)
	checkShape(r, token.Value.Reveal(), config)
	return true
}

// isTokenService asks for a token with an unknown client, which a token service refuses in a recognisable way. The
// bridge's own secret goes nowhere but to token_url.
func isTokenService(ctx context.Context, base string) bool {
	source, err := pushauth.NewSource(pushauth.Credentials{
		TokenURL: base, ClientID: "sealpush-doctor", ClientSecret: secret.New(rand.Text()),
	}, pushauth.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		return false
	}
	_, err = source.Token(ctx)
	return errors.Is(err, pushauth.ErrInvalidClient)
}

// withoutEnd cuts an end, and a slash after it, off a URL.
func withoutEnd(text, end string) string {
	return strings.TrimSuffix(strings.TrimSuffix(text, "/"), end)
}

// checkLifetime judges by this machine's clock, as a bridge does.
func checkLifetime(r *report, token pushauth.Token) {
	left := time.Until(token.Expiry)
	const costs = "The bridge fetches one for each notification. "
	switch {
	case token.Expiry.IsZero():
		r.warn(costs+"The token service should send expires_in.", "the service issues a token and does not say for how long")
	case left <= 0:
		r.warn(costs+"Set this machine's clock if it is ahead.", "the token is over on arrival")
	case left < refreshMargin:
		r.warn(costs+"The operator should let tokens live for an hour.", "the token lives for %v", left.Round(time.Second))
	default:
		r.ok("issues a token that lives for %v", left.Round(time.Second))
	}
}

// checkShape reads the token's claims, unverified: the relay verifies the signature. Relays accept only RS256, and find
// the key by its id.
func checkShape(r *report, value string, config bridge.Config) {
	const operator = "Ask the token service's operator: relays refuse such tokens."
	var claims struct {
		jwt.RegisteredClaims
		Scope string `json:"scope"`
	}
	token, _, err := jwt.NewParser().ParseUnverified(value, &claims)
	if err != nil { // the cause quotes it
		r.warn(operator, "the token is no JWT")
		return
	}
	shown := func(text string) string { return answer.Line(text, value, config.ClientSecret.Reveal()) }
	if keyID, _ := token.Header["kid"].(string); token.Method.Alg() != jwt.SigningMethodRS256.Alg() || keyID == "" {
		r.warn(operator, "the token is signed with %s, and with key id %q; it must be RS256 with a key id", token.Method.Alg(), shown(keyID))
	}
	if claims.Subject != config.ClientID {
		r.warn("Ask the operator: the relay keeps phones by the token's subject.",
			"the token is for %q, not for client id %q", shown(claims.Subject), config.ClientID)
	}
	if !slices.Contains(strings.Fields(claims.Scope), "push:write") {
		r.warn("The operator must make the client with scope push:write.", "the token's scope is %q", shown(claims.Scope))
	}
	r.ok("the token is from issuer %q for audience %q", shown(claims.Issuer), shown(strings.Join(claims.Audience, " ")))
}

func sorted(names []string) string {
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// pageBridge wakes the phones that are registered with the bridge's relay.
func pageBridge(ctx context.Context, r *report, client *bridge.Client) {
	result := client.Notify(ctx, bridge.Notification{Title: "sealpush doctor", Body: "Test notification"})
	if result.Status == bridge.StatusSent && len(result.Devices) == 0 {
		r.warn("Open the app while it is connected to the bridge, and let it show notifications: it registers then.",
			"no phone is registered with the relay, so nobody was woken")
	}
	for _, d := range result.Devices {
		switch d.Status {
		case bridge.DeviceSent:
			r.ok("notification sent to a phone (%s)", d.Platform)
		case bridge.DeviceRemoved:
			r.warn("Open the app again if the phone is still yours: it registers anew.",
				"the relay forgot a phone (%s) whose token is dead: %q", d.Platform, d.Reason)
		default:
			r.fail("The push service refuses this phone, and its reason says why: ask the relay's operator.",
				"a phone (%s) was not reached: %q", d.Platform, d.Reason)
		}
	}
	if result.Err != nil {
		r.fail(bridgeAdvice(result.Err), "%v", result.Err)
	}
}
