package webpush_test

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relay/webpush"
	"github.com/sealpush/sealpush/relay/webpush/webpushtest"
	"github.com/sealpush/sealpush/secret"
)

const (
	contact    = "mailto:ops@example.com"
	invitation = "an-invitation-of-the-operator"
	collapseID = "93bc5d02dc2a24b5365347573b6f5115"
)

var loopback = webpush.WithPrivateNetworks(netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128"))

// A setup is a relay whose push service is on the loopback interface.
type setup struct {
	service       *webpushtest.Service
	key           *webpush.Key
	store         webpush.Store
	forwarder     *webpush.Forwarder
	relay         *relay.Relay
	subscriptions *webpush.Subscriptions
}

func newSetup(t *testing.T, opts ...webpush.Option) *setup {
	t.Helper()
	s := &setup{service: webpushtest.New(t), key: webpush.GenerateKey(), store: webpush.NewMemoryStore()}
	s.forwarder = newForwarder(t, s.key, s.store, append([]webpush.Option{
		webpush.WithPushService(strings.TrimPrefix(s.service.URL, "https://")), loopback,
		webpush.WithTLSConfig(&tls.Config{RootCAs: s.service.CertPool()}),
	}, opts...)...)
	s.relay = newRelay(t, s.forwarder)
	s.subscriptions = newSubscriptions(t, s.forwarder, webpush.WithClientAddress(newAddresses()))
	return s
}

func newForwarder(t *testing.T, key *webpush.Key, store webpush.Store, opts ...webpush.Option) *webpush.Forwarder {
	t.Helper()
	f, err := webpush.New(key, contact, store, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

func newRelay(t *testing.T, f relay.Forwarder, opts ...relay.Option) *relay.Relay {
	t.Helper()
	r, err := relay.New(append([]relay.Option{relay.WithForwarder(f)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func newSubscriptions(t *testing.T, f *webpush.Forwarder, opts ...webpush.SubscriptionsOption) *webpush.Subscriptions {
	t.Helper()
	s, err := webpush.NewSubscriptions(f, secret.New(invitation), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// An answer is what a handler answered.
type answer struct {
	status int
	header http.Header
	body   map[string]any
}

func (a answer) text(member string) string {
	text, _ := a.body[member].(string)
	return text
}

// request asks a handler. Header is pairs of name and value.
func request(t *testing.T, h http.Handler, method, path, bearer, body string, header ...string) answer {
	t.Helper()
	r := httptest.NewRequest(method, "https://relay.example"+path, strings.NewReader(body))
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	a := answer{status: w.Code, header: w.Header()}
	if w.Body.Len() > 0 {
		if err := json.Unmarshal(w.Body.Bytes(), &a.body); err != nil {
			t.Errorf("%s %s: %d with %q", method, path, w.Code, w.Body)
		}
	}
	return a
}

// toJSON is a subscription as a page posts it, with more members, each `"name":value`.
func toJSON(t *testing.T, s webpushtest.Subscription, members ...string) string {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(string(text), "}") + strings.Join(append([]string{""}, members...), ",") + "}"
}

// subscribe subscribes as a page does.
func (s *setup) subscribe(t *testing.T, to webpushtest.Subscription) (token, password string) {
	t.Helper()
	a := request(t, s.subscriptions, http.MethodPost, "/subscriptions", invitation, toJSON(t, to))
	if a.status != http.StatusCreated {
		t.Fatalf("subscribe: %d %v", a.status, a.body)
	}
	return a.text("deviceToken"), a.text("secret")
}

// page posts an alert as a daemon does, under a collapse id of its own.
func page(t *testing.T, h http.Handler, token string, id int, priority string) answer {
	t.Helper()
	return request(t, h, http.MethodPost, "/", "", envelope(token, fmt.Sprintf("%032x", id), priority, "x25519", 68))
}

func envelope(token, id, priority, suite string, size int) string {
	return fmt.Sprintf(`{"v":1,"device":%q,"suite":%q,"ciphertext":%q,"collapseId":%q,"priority":%q,"event":false}`,
		token, suite, strings.Repeat("A", size), id, priority)
}
