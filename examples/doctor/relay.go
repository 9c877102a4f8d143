package main

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/sealpush/sealpush/internal/answer"
	"github.com/sealpush/sealpush/relayclient"
)

// checkRelay asks a relay for sealed alerts without paging anybody: it posts an
// envelope with nothing in it, which every relay has to refuse (relay protocol,
// "Responses"). It says whether that shows what answers there not to be a relay.
func checkRelay(ctx context.Context, r *report, relayURL string) (otherServer bool) {
	r.begin("Relay for sealed alerts")
	client, err := relayclient.New(relayURL)
	if err != nil {
		r.fail("Correct -relay or $"+relayVariable+".", "%v", err)
		return false
	}
	client.Close()
	target, err := url.Parse(strings.TrimSpace(relayURL))
	if err != nil {
		r.fail("Correct -relay or $"+relayVariable+".", "not a URL") // the cause quotes it
		return false
	}
	r.ok("the URL can be used: %s://%s%s", target.Scheme, target.Host, notShown(target))

	target.Fragment, target.RawFragment = "", ""
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), strings.NewReader("{}"))
	if err != nil {
		r.fail("Correct -relay or $"+relayVariable+".", "not a URL that can be posted to")
		return false
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "sealpush") // credentials in the URL become a header
	if a, ok := reach(r, req, answer.URLSecrets(target)...); ok {
		judgeRelay(r, a, target.User != nil)
		return a.status/100 == 2
	}
	return false
}

// notShown names the parts of the URL that may be secrets, as answer.URLSecrets has it.
func notShown(u *url.URL) string {
	switch path, query := len(u.Path) > len("/"), u.RawQuery != ""; {
	case path && query:
		return " (path and query not shown)"
	case path:
		return " (path not shown)"
	case query:
		return " (query not shown)"
	}
	return ""
}

// judgeRelay reads the answer to an empty envelope.
func judgeRelay(r *report, a reply, credentials bool) {
	const asked = "a malformed envelope"
	switch {
	case a.status/100 == 2:
		r.fail("This is some other server: no relay accepts that. Correct the relay's URL.", "accepts %s: %v", asked, a)
	case a.status == http.StatusUnauthorized && !credentials:
		r.fail("The relay wants credentials: put them into its URL, as https://user:password@host/path.", "answers %v", a)
	case a.status == http.StatusUnauthorized:
		r.fail("The relay does not take the credentials in its URL: correct them. "+
			"Special characters in them must be percent-encoded.", "answers %v", a)
	case a.status == http.StatusForbidden:
		r.fail("The relay does not let this machine in: ask its operator (an address filter, an admission policy).", "answers %v", a)
	case a.status == http.StatusTooManyRequests:
		r.warn(statusAdvice(a, "the relay's URL"), "answers %v", a)
	case a.status == http.StatusBadRequest, a.status == http.StatusUnprocessableEntity:
		r.ok("refuses %s, as a relay does: %v", asked, a)
	case statusAdvice(a, "") != "":
		r.fail(statusAdvice(a, "the relay's URL"), "answers %v", a)
	default:
		r.warn("A relay refuses that with 400. Page a phone with -page to see whether this is one.", "answers %s with %v", asked, a)
	}
}
