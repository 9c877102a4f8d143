package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/sealpush/sealpush/internal/answer"
	"github.com/sealpush/sealpush/pushauth"
	"github.com/sealpush/sealpush/relayclient/bridge"
)

// refreshMargin is with how little left a token is fetched anew (bridge push,
// "JWT Acquisition").
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
	if err != nil {
		r.fail(bridgeAdvice(err), "%v", err)
		return false
	}
	checkLifetime(r, token)
	checkShape(r, token.Value.Reveal(), config)
	return true
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

// checkShape reads the token's claims, unverified: the signature is the relay's
// business. Relays take RS256 alone, and find the key by its id.
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
