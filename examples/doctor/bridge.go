package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/sealpush/sealpush/pushauth"
	"github.com/sealpush/sealpush/relayclient/bridge"
	"github.com/sealpush/sealpush/secret"
)

// checkBridge goes the way of a bridge's notification, and stops before the
// notification unless it is asked for.
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
	checkAdmission(ctx, r, client)
	if page {
		pageBridge(ctx, r, client)
	}
}

// table is what a bridge's configuration holds.
const table = `    [push_relay]
    url = "https://push.example"
    token_url = "https://token.example"
    client_id = "CLIENT-ID"
    client_secret = "SHOWN-ONCE"`

func loadBridge(r *report, path string) (bridge.Config, bool) {
	if !checkFile(r, path, "the client secret",
		"Correct the path, or write the file: it is yours to write, and the relay's operator hands out what goes into it:\n"+table) {
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
	case len(missing) == 4:
		r.fail("Add [push_relay], with what the relay's operator hands out:\n"+table,
			"there is no [push_relay] table, or nothing in it: push is disabled")
	default:
		r.fail("Fill it in: with a field empty, push is disabled.", "[push_relay] lacks %s", sorted(missing))
	}
	return config, false
}

// checkHealth looks for one of the two services. GET /health is harmless and
// takes no token.
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

// checkAdmission asks the relay to forget a device that was never registered,
// which it does for whoever has a token that it takes.
func checkAdmission(ctx context.Context, r *report, client *bridge.Client) {
	madeUp := make([]byte, 32)
	rand.Read(madeUp)
	if err := client.Unregister(ctx, secret.New(hex.EncodeToString(madeUp))); err != nil {
		r.fail(bridgeAdvice(err), "%v", err)
		return
	}
	r.ok("the relay takes the token (asked to forget a phone that nobody registered)")
}

// bridgeAdvice is for errors of package bridge and pushauth.
func bridgeAdvice(err error) string {
	if errors.Is(err, pushauth.ErrInvalidClient) {
		return "Correct client_id and client_secret. A secret is shown once: if it is lost, the operator makes the client anew."
	}
	if errors.Is(err, bridge.ErrNotDelivered) {
		return "See what is said of each phone, above."
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
