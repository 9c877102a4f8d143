package apns_test

import (
	"crypto/ecdsa"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// An apple is a push service that refuses what Apple's would, over HTTP/2.
type apple struct {
	*httptest.Server
	public        *ecdsa.PublicKey
	keyID, teamID string
	topic         string

	mu          sync.Mutex
	connections int
	delivered   []delivery
	tokens      map[string]bool // provider tokens seen
	answer      func(w http.ResponseWriter) bool
}

type delivery struct {
	device  string
	header  http.Header
	payload []byte
}

func newApple(t *testing.T, public *ecdsa.PublicKey) *apple {
	t.Helper()
	a := &apple{public: public, keyID: keyID, teamID: teamID, topic: topic, tokens: map[string]bool{}}
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(a.serve))
	a.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.connections++
		}
	}
	a.EnableHTTP2 = true
	a.StartTLS()
	t.Cleanup(a.Close)
	return a
}

// script answers instead of the service until it returns false.
func (a *apple) script(answer func(w http.ResponseWriter) bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = answer
}

func (a *apple) seen() (delivered []delivery, connections, tokens int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.delivered, a.connections, len(a.tokens)
}

func (a *apple) serve(w http.ResponseWriter, r *http.Request) {
	payload, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.answer != nil && a.answer(w) {
		return
	}
	if status, reason := a.check(r, payload); status != http.StatusOK {
		refuse(w, status, reason)
		return
	}
	a.delivered = append(a.delivered, delivery{r.URL.Path[len("/3/device/"):], r.Header, payload})
}

func refuse(w http.ResponseWriter, status int, reason string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"reason":%q}`, reason)
}

var devicePath = regexp.MustCompile(`^/3/device/([0-9a-f]+)$`)

func (a *apple) check(r *http.Request, payload []byte) (status int, reason string) {
	path := devicePath.FindStringSubmatch(r.URL.Path)
	token, bearer := r.Header.Get("authorization"), "bearer "
	switch {
	case r.ProtoMajor != 2:
		return 505, "HTTPVersionNotSupported"
	case r.Method != http.MethodPost:
		return 405, "MethodNotAllowed"
	case path == nil:
		return 404, "BadPath"
	case len(path[1]) != 64:
		return 400, "BadDeviceToken"
	case len(token) < len(bearer) || token[:len(bearer)] != bearer:
		return 403, "MissingProviderToken"
	case r.Header.Get("apns-topic") == "":
		return 400, "MissingTopic"
	case r.Header.Get("apns-topic") != a.topic:
		return 400, "TopicDisallowed"
	case r.Header.Get("apns-push-type") != "alert":
		return 400, "InvalidPushType"
	case r.Header.Get("apns-priority") != "10" && r.Header.Get("apns-priority") != "5":
		return 400, "BadPriority"
	case len(r.Header.Get("apns-collapse-id")) > 64:
		return 400, "BadCollapseId"
	case len(payload) == 0:
		return 400, "PayloadEmpty"
	case len(payload) > 4096:
		return 413, "PayloadTooLarge"
	}
	expires, err := strconv.ParseInt(r.Header.Get("apns-expiration"), 10, 64)
	if err != nil || time.Until(time.Unix(expires, 0)) < 9*time.Minute {
		return 400, "BadExpirationDate"
	}
	var notification struct {
		APS map[string]any `json:"aps"`
	}
	if err := json.Unmarshal(payload, &notification); err != nil || notification.APS["alert"] == nil {
		return 400, "PayloadEmpty"
	}
	claims := jwt.MapClaims{}
	_, err = jwt.ParseWithClaims(token[len(bearer):], claims, func(t *jwt.Token) (any, error) {
		if t.Header["kid"] != a.keyID {
			return nil, jwt.ErrTokenUnverifiable
		}
		return a.public, nil
	}, jwt.WithValidMethods([]string{"ES256"}), jwt.WithIssuedAt(), jwt.WithIssuer(a.teamID))
	if err != nil {
		return 403, "InvalidProviderToken"
	}
	if issued, err := claims.GetIssuedAt(); err != nil || issued == nil || time.Since(issued.Time) > time.Hour {
		return 403, "ExpiredProviderToken"
	}
	a.tokens[token] = true
	return http.StatusOK, ""
}
