package webpush_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relay/webpush"
	"github.com/sealpush/sealpush/relay/webpush/webpushtest"
	"github.com/sealpush/sealpush/secret"
)

func await(t *testing.T, s *webpushtest.Service) webpushtest.Message {
	t.Helper()
	m, err := s.Await(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestEnvelopeReachesTheBrowser(t *testing.T) {
	s := newSetup(t)
	subscription := s.service.Subscribe()
	token, _ := s.subscribe(t, subscription)
	for name, test := range map[string]struct {
		id, priority, suite string
		size                int
		urgency             string
	}{
		"time-sensitive": {"00000000000000000000000000000001", "time-sensitive", "x25519", 68, "high"},
		"passive":        {"00000000000000000000000000000002", "passive", "xwing", 1520, "normal"},
		"the largest":    {"00000000000000000000000000000003", "time-sensitive", "sixteen-of-suite", 3800, "high"},
	} {
		t.Run(name, func(t *testing.T) {
			a := request(t, s.relay, http.MethodPost, "/", "", envelope(token, test.id, test.priority, test.suite, test.size))
			if a.status != http.StatusAccepted || a.text("outcome") != "forwarded" {
				t.Fatalf("%d %v", a.status, a.body)
			}
			m := await(t, s.service)
			want := fmt.Sprintf(`{"v":1,"suite":%q,"ciphertext":%q,"collapseId":%q,"priority":%q}`,
				test.suite, strings.Repeat("A", test.size), test.id, test.priority)
			if string(m.Plaintext) != want {
				t.Errorf("the browser read %s", m.Plaintext)
			}
			if m.Endpoint != subscription.Endpoint || m.TTL != 10*time.Minute || m.Urgency != test.urgency || len(m.Topic) != 32 {
				t.Errorf("sent to %s with TTL %v, urgency %q and topic %q", m.Endpoint, m.TTL, m.Urgency, m.Topic)
			}
			if m.VAPID.PublicKey != s.key.PublicKey() || m.VAPID.Subject != contact {
				t.Errorf("by %+v", m.VAPID)
			}
			if m.Header.Get("Content-Length") != "4096" {
				t.Errorf("its size shows: %s bytes", m.Header.Get("Content-Length"))
			}
		})
	}
}

// A message takes the place of one about the same alert, and of no other.
func TestTopicsAreOfCollapseIDs(t *testing.T) {
	s := newSetup(t)
	unlimited := newRelay(t, s.forwarder, relay.WithoutPolicy())
	token, _ := s.subscribe(t, s.service.Subscribe())
	topics := map[string]int{}
	for _, id := range []int{1, 2, 1, 3} {
		page(t, unlimited, token, id, "passive")
		topics[await(t, s.service).Topic]++
	}
	if len(topics) != 3 {
		t.Errorf("topics %v", topics)
	}
}

func TestDigest(t *testing.T) {
	s := newSetup(t)
	token, _ := s.subscribe(t, s.service.Subscribe())
	r := newRelay(t, s.forwarder, relay.WithPolicy(relay.Policy{MonthlyQuota: 1}))
	for id, want := range []string{"forwarded", "digested"} {
		if a := page(t, r, token, id, "time-sensitive"); a.text("outcome") != want {
			t.Errorf("page %d: %v", id, a.body)
		}
	}
	await(t, s.service)
	m := await(t, s.service)
	if want := `{"v":1,"collapseId":"digest","priority":"passive","kind":"digest"}`; string(m.Plaintext) != want || m.Urgency != "normal" {
		t.Errorf("%s, urgency %s", m.Plaintext, m.Urgency)
	}
}

func TestAnswersOfThePushService(t *testing.T) {
	for status, want := range map[int]struct {
		status     int
		reason     string
		retryAfter string
	}{
		http.StatusTemporaryRedirect:     {502, "", ""},
		http.StatusBadRequest:            {502, "", ""},
		http.StatusForbidden:             {502, "", ""},
		http.StatusNotFound:              {410, "Unregistered", ""},
		http.StatusGone:                  {410, "Unregistered", ""},
		http.StatusRequestEntityTooLarge: {502, "PayloadTooLarge", ""},
		http.StatusTooManyRequests:       {429, "", "7"},
		http.StatusInternalServerError:   {502, "", ""},
		http.StatusServiceUnavailable:    {502, "", ""},
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			s := newSetup(t)
			token, _ := s.subscribe(t, s.service.Subscribe())
			s.service.Fail(status)
			a := page(t, s.relay, token, 1, "passive")
			if a.status != want.status || a.text("reason") != want.reason || a.header.Get("Retry-After") != want.retryAfter {
				t.Errorf("%d %v, Retry-After %q", a.status, a.body, a.header.Get("Retry-After"))
			}
			s.service.Fail(0)
			again := page(t, s.relay, token, 1, "passive")
			if alive := want.status != http.StatusGone; alive != (again.status == http.StatusAccepted) {
				t.Errorf("after it: %d %v", again.status, again.body)
			}
		})
	}
}

// Apple asks for no new VAPID token within an hour, and no push service takes one of
// a day.
func TestTokensAreUsedAgain(t *testing.T) {
	s := newSetup(t)
	unlimited := newRelay(t, s.forwarder, relay.WithoutPolicy())
	token, _ := s.subscribe(t, s.service.Subscribe())
	send := func() string {
		t.Helper()
		if a := page(t, unlimited, token, 1, "passive"); a.status != http.StatusAccepted {
			t.Fatalf("%d %v", a.status, a.body)
		}
		return await(t, s.service).Header.Get("Authorization")
	}
	first := send()
	if send() != first {
		t.Error("a new token for the next message")
	}
	s.service.Fail(http.StatusForbidden)
	page(t, unlimited, token, 1, "passive")
	s.service.Fail(0)
	second := send()
	if second == first {
		t.Error("a token that was refused is used again")
	}
	if send() != second {
		t.Error("a new token for each message after that")
	}
}

func TestTokensAreRenewed(t *testing.T) {
	now := time.Now()
	var tokens webpush.Tokens
	for _, step := range []struct {
		after time.Duration
		want  string
	}{
		{0, "fresh 0"}, {5 * time.Hour, "fresh 0"}, {6 * time.Hour, "fresh 2"}, {11 * time.Hour, "fresh 2"},
		{-time.Hour, "fresh 4"}, // the clock was set back
		{4 * time.Hour, "fresh 4"},
	} {
		at := now.Add(step.after)
		if got := tokens.Token("push.example", fmt.Sprintf("fresh %d", tokens.Calls()), at); got != step.want {
			t.Errorf("after %v: %s, want %s", step.after, got, step.want)
		}
	}
	for n := range 2500 {
		tokens.Token(fmt.Sprintf("host-%d", n), "fresh", now)
	}
	if kept := tokens.Kept(); kept > 1000 {
		t.Errorf("%d tokens are kept", kept)
	}
}

// A subscription that is no more is not asked for again, and its browser can bring
// another one for the same device token.
func TestGoneAndBack(t *testing.T) {
	s := newSetup(t)
	old := s.service.Subscribe()
	token, password := s.subscribe(t, old)
	s.service.Gone(old)
	if a := page(t, s.relay, token, 1, "passive"); a.status != http.StatusGone || a.text("reason") != "Unregistered" {
		t.Fatalf("gone: %d %v", a.status, a.body)
	}
	s.service.Fail(http.StatusTeapot)
	if a := page(t, s.relay, token, 2, "passive"); a.status != http.StatusGone {
		t.Errorf("asked the push service once more: %d %v", a.status, a.body)
	}
	s.service.Fail(0)
	fresh := s.service.Subscribe()
	a := request(t, s.subscriptions, http.MethodPost, "/subscriptions", password, toJSON(t, fresh, `"deviceToken":"`+token+`"`))
	if a.status != http.StatusOK || a.text("deviceToken") != token || a.text("secret") != "" {
		t.Fatalf("re-subscribed: %d %v", a.status, a.body)
	}
	if a := page(t, s.relay, token, 3, "passive"); a.status != http.StatusAccepted {
		t.Fatalf("after it: %d %v", a.status, a.body)
	}
	if m := await(t, s.service); m.Endpoint != fresh.Endpoint {
		t.Errorf("sent to %s", m.Endpoint)
	}
}

func TestDeviceTokens(t *testing.T) {
	s := newSetup(t)
	token, _ := s.subscribe(t, s.service.Subscribe())
	if len(token) != 64 || strings.ToLower(token) != token {
		t.Errorf("the device token is %q", token)
	}
	if a := page(t, s.relay, strings.ToUpper(token), 1, "passive"); a.status != http.StatusAccepted {
		t.Errorf("in upper case: %d %v", a.status, a.body)
	}
	if a := page(t, s.relay, token, 1, "passive"); a.text("outcome") != "coalesced" {
		t.Errorf("in lower case it is another phone: %d %v", a.status, a.body)
	}
	for name, other := range map[string]struct {
		token string
		want  int
	}{
		"unknown":     {strings.Repeat("0", 64), http.StatusGone},
		"too short":   {token[1:], http.StatusBadRequest},
		"too long":    {token + "0", http.StatusBadRequest},
		"not hex":     {"g" + token[1:], http.StatusBadRequest},
		"no token":    {"", http.StatusBadRequest},
		"an endpoint": {"https://fcm.googleapis.com/x", http.StatusBadRequest},
	} {
		if a := page(t, s.relay, other.token, 2, "passive"); a.status != other.want {
			t.Errorf("%s: %d %v, want %d", name, a.status, a.body, other.want)
		}
	}
}

// apple takes what a test gives it, like a forwarder to Apple.
type apple struct {
	mu   sync.Mutex
	took []string
}

func (a *apple) Device(token string) (string, error) {
	if len(token) < 16 {
		return "", errors.New("must be 16 to 512 hex digits")
	}
	return strings.ToLower(token), nil
}

func (a *apple) take(what string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.took = append(a.took, what)
	return nil
}

func (a *apple) Forward(_ context.Context, e relay.Envelope) error { return a.take(e.Device.Reveal()) }

type digestingApple struct{ apple }

func (a *digestingApple) ForwardDigest(_ context.Context, device secret.Text) error {
	return a.take("digest " + device.Reveal())
}

// One relay serves browsers and Apple's phones, whose tokens look alike.
func TestBothKindsOfPhones(t *testing.T) {
	other := &digestingApple{}
	s := newSetup(t, webpush.WithFallback(other))
	r := newRelay(t, s.forwarder, relay.WithPolicy(relay.Policy{MonthlyQuota: 1}))
	token, _ := s.subscribe(t, s.service.Subscribe())
	long, short := strings.Repeat("ab", 32), strings.Repeat("cd", 16)
	for _, device := range []string{token, long, short} {
		for id, want := range []string{"forwarded", "digested"} {
			if a := page(t, r, device, id, "passive"); a.text("outcome") != want {
				t.Errorf("%s: %d %v", device, a.status, a.body)
			}
		}
	}
	want := fmt.Sprint([]string{long, "digest " + long, short, "digest " + short})
	if got := fmt.Sprint(other.took); got != want || len(s.service.Messages()) != 2 {
		t.Errorf("the other took %s, browsers %d", got, len(s.service.Messages()))
	}
	if a := page(t, r, "ab", 1, "passive"); a.status != http.StatusBadRequest || !strings.Contains(a.text("error"), "16 to 512") {
		t.Errorf("no token of either: %d %v", a.status, a.body)
	}
}

// A token that a browser has had does not become one of Apple's.
func TestEndedSubscriptionIsNotOfTheFallback(t *testing.T) {
	other := &apple{}
	s := newSetup(t, webpush.WithFallback(other))
	subscription := s.service.Subscribe()
	token, _ := s.subscribe(t, subscription)
	s.service.Gone(subscription)
	for id := range 2 {
		if a := page(t, s.relay, token, id, "passive"); a.status != http.StatusGone {
			t.Errorf("%d %v", a.status, a.body)
		}
	}
	if len(other.took) != 0 {
		t.Errorf("the fallback took %d", len(other.took))
	}
	if err := s.forwarder.ForwardDigest(t.Context(), secret.New(strings.Repeat("0", 64))); err == nil {
		t.Error("a fallback without digests sent one")
	}
}

// broken is a store whose database does not answer.
type broken struct{ webpush.Store }

func (broken) Get(context.Context, string) (webpush.Stored, error) {
	return webpush.Stored{}, errors.New("no database")
}

func TestStoreThatIsNotReached(t *testing.T) {
	other := &apple{}
	f := newForwarder(t, webpush.GenerateKey(), broken{}, webpush.WithFallback(other))
	if a := page(t, newRelay(t, f), strings.Repeat("ab", 32), 1, "passive"); a.status != http.StatusBadGateway || len(other.took) != 0 {
		t.Errorf("%d %v", a.status, a.body)
	}
}

// Another relay's key is refused by the push service, and nothing says where the
// browser is.
func TestErrorsHoldNoSecrets(t *testing.T) {
	s := newSetup(t)
	subscription := s.service.Subscribe()
	token, _ := s.subscribe(t, subscription)
	var log bytes.Buffer
	logged := func(f relay.Forwarder) *relay.Relay {
		return newRelay(t, f, relay.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	}
	page(t, logged(s.forwarder), token, 1, "passive")
	failing := map[string]*webpush.Forwarder{
		"another key":  newForwarder(t, webpush.GenerateKey(), s.store, webpush.WithPushService(strings.TrimPrefix(s.service.URL, "https://")), loopback),
		"not allowed":  newForwarder(t, s.key, s.store, loopback),
		"not public":   newForwarder(t, s.key, s.store, webpush.WithPushService(strings.TrimPrefix(s.service.URL, "https://"))),
		"wrong client": s.forwarder,
	}
	s.service.Fail(http.StatusForbidden)
	for name, f := range failing {
		log.Reset()
		if a := page(t, logged(f), token, 2, "passive"); a.status != http.StatusBadGateway {
			t.Errorf("%s: %d %v", name, a.status, a.body)
		}
		path := strings.TrimPrefix(subscription.Endpoint, s.service.URL)
		for _, word := range []string{path, token, subscription.Keys.Auth} {
			if strings.Contains(log.String(), word) {
				t.Errorf("%s: the log has %q: %s", name, word, &log)
			}
		}
		if log.Len() == 0 {
			t.Errorf("%s: nothing in the log", name)
		}
	}
}

func TestOptionsThatAreRefused(t *testing.T) {
	key, store := webpush.GenerateKey(), webpush.NewMemoryStore()
	refused := func(name string, err error) {
		t.Helper()
		if err == nil || !strings.HasPrefix(err.Error(), "webpush: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := webpush.New(nil, contact, store)
	refused("no key", err)
	_, err = webpush.New(key, contact, nil)
	refused("no store", err)
	for _, contact := range []string{"", "ops@example.com", "mailto:ops", "mailto:mailto", "http://example.com", "https://", "https://user:pass@example.com",
		"https://localhost", "https://relay", "https://relay.local", "mailto:root@localhost", "mailto:https:a@example.com", "mailto:ops@example.com?x"} {
		_, err = webpush.New(key, contact, store)
		refused("contact "+contact, err)
	}
	for _, service := range []string{"", "*", "*.", "https://push.example.com", "Push.example.com", "push.example.com/x", "push.example.com:443",
		"push.example.com:", "a b", "*.*.example.com", "u@push.example.com", "*.127.0.0.1"} {
		_, err = webpush.New(key, contact, store, webpush.WithPushService(service))
		refused("service "+service, err)
	}
	_, err = webpush.New(key, contact, store, nil)
	refused("nil option", err)
	_, err = webpush.New(key, contact, store, webpush.WithFallback(nil))
	refused("nil fallback", err)
	_, err = webpush.New(key, contact, store, webpush.WithTLSConfig(nil))
	refused("nil TLS", err)
	for _, text := range []string{"", "A", strings.Repeat("A", 43), key.PublicKey(), key.Private().Reveal() + "="} {
		_, err = webpush.ParseKey(secret.New(text))
		refused("key", err)
	}
	again, err := webpush.ParseKey(key.Private())
	if err != nil || again.PublicKey() != key.PublicKey() {
		t.Errorf("a key read again: %v, %v", again, err)
	}
}

// counting is a state that counts what it is asked.
type counting struct {
	relay.State
	updates atomic.Int64
}

func (c *counting) Update(ctx context.Context, now time.Time, key string, change relay.ChangeFunc) error {
	c.updates.Add(1)
	return c.State.Update(ctx, now, key, change)
}

// Whoever posts for device tokens that there are not costs the relay a look-up, and leaves nothing in its state.
func TestUnknownDeviceTokensLeaveNothing(t *testing.T) {
	memory, err := relay.NewMemoryState(10)
	if err != nil {
		t.Fatal(err)
	}
	for name, opts := range map[string][]webpush.Option{"alone": nil, "with Apple": {webpush.WithFallback(&apple{})}} {
		s := newSetup(t, opts...)
		state := &counting{State: memory}
		r := newRelay(t, s.forwarder, relay.WithState(state))
		ended, known := s.service.Subscribe(), s.service.Subscribe()
		endedToken, _ := s.subscribe(t, ended)
		token, _ := s.subscribe(t, known)
		s.service.Gone(ended)
		page(t, r, endedToken, 1, "passive")
		before := state.updates.Load()
		for id := range 50 {
			if a := page(t, r, endedToken, id, "passive"); a.status != http.StatusGone || a.text("reason") != "Unregistered" {
				t.Errorf("%s: ended: %d %v", name, a.status, a.body)
			}
			if len(opts) > 0 {
				continue // the other push service knows its own
			}
			if a := page(t, r, fmt.Sprintf("%064x", id), id, "passive"); a.status != http.StatusGone {
				t.Errorf("%s: unknown: %d %v", name, a.status, a.body)
			}
		}
		if got := state.updates.Load(); got != before {
			t.Errorf("%s: %d calls of the state", name, got-before)
		}
		if a := page(t, r, token, 1, "passive"); a.status != http.StatusAccepted || state.updates.Load() == before {
			t.Errorf("%s: a known one: %d %v", name, a.status, a.body)
		}
	}
}
