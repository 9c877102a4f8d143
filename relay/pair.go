package relay

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/sealpush/sealpush/internal/requestbody"
)

//go:embed pair.html
var pairPage string

// PairPage is the landing page of pairing links, which an operator mounts at /pair of the relay's origin (live
// protocol, "Pairing links"). Its script reads the fragment of the address, which browsers do not send, shows whose
// link it is, and offers to open it in the app. The page loads nothing and sends nothing, which its
// Content-Security-Policy sees to.
//
// It takes GET and HEAD. A relay without it still follows the protocol.
func PairPage() http.Handler {
	policy := "default-src 'none'; script-src " + hashOf("script") + "; style-src " + hashOf("style") +
		"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	return static("text/html; charset=utf-8", pairPage, http.Header{
		"Content-Security-Policy": {policy},
		"Referrer-Policy":         {"no-referrer"},
	})
}

// hashOf is the CSP source of the page's one inline element of a name (CSP Level 3, section 2.3.1).
func hashOf(element string) string {
	_, rest, _ := strings.Cut(pairPage, "<"+element+">")
	content, _, _ := strings.Cut(rest, "</"+element+">")
	sum := sha256.Sum256([]byte(content))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// AppSiteAssociation lets iPhones open pairing links in an app without showing [PairPage]. An operator mounts it at
// /.well-known/apple-app-site-association. An app is named as Apple does, by team and bundle id, for example
// ABCDE12345.com.example.app, and must name the relay's host in its own entitlements.
//
// A relay whose operator has no app of their own leaves the route unserved, so that it answers 404: the page's button
// works without it.
func AppSiteAssociation(appIDs ...string) (http.Handler, error) {
	if len(appIDs) == 0 {
		return nil, errors.New("relay: AppSiteAssociation needs an app id; leave the route unserved where there is no app")
	}
	valid := regexp.MustCompile(`^[A-Z0-9]{10}\.[A-Za-z0-9.-]{1,155}$`)
	for _, id := range appIDs {
		if !valid.MatchString(id) {
			return nil, fmt.Errorf("relay: app id %q: it must be a team id of ten characters, a dot and a bundle id", id)
		}
	}
	type component map[string]string
	type detail struct {
		AppIDs     []string    `json:"appIDs"`
		Components []component `json:"components"`
	}
	var document struct {
		AppLinks struct {
			Details []detail `json:"details"`
		} `json:"applinks"`
	}
	document.AppLinks.Details = []detail{{appIDs, []component{{"/": "/pair"}}}}
	text, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	return static("application/json", string(text), nil), nil
}

// static serves a text that is always the same.
func static(contentType, text string, header http.Header) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		announceIdle(w, req)
		h := w.Header()
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			requestbody.CloseAfter(w, req)
			http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
			return
		}
		for name, values := range header {
			h[name] = values
		}
		h.Set("Content-Type", contentType)
		h.Set("Content-Length", strconv.Itoa(len(text)))
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "max-age=3600")
		w.Write([]byte(text)) // to HEAD, the server sends none of it
	})
}
