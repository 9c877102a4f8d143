package apns_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relay/apns"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/secret"
)

func newForwarder(t *testing.T, service *apple, key *apns.Key) *apns.Forwarder {
	t.Helper()
	f, err := apns.New(key, topic, apns.WithHost(service.URL), apns.WithHTTPClient(service.Client()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Close)
	return f
}

// post seals a test alert to a phone, posts it, and returns status, header and
// body of the answer.
func post(t *testing.T, relay *relaytest.Relay, phone *relaytest.Phone, size int) (int, http.Header, map[string]any) {
	t.Helper()
	plaintext := []byte(`{"v":1,"kind":"test","name":"test","success":true,"host":"db1.example","ts":"2026-01-01T00:00:00+00:00"}`)
	plaintext = append(plaintext, bytes.Repeat([]byte(" "), max(0, size-len(plaintext)))...)
	ciphertext, err := seal.Seal(phone.PublicKey(), plaintext)
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := json.Marshal(map[string]any{
		"v": 1, "device": phone.PushToken(), "ciphertext": ciphertext,
		"collapseId": payload.NewCollapseID(), "priority": "time-sensitive", "event": false,
	})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := relay.Client().Post(relay.URL, "application/json", bytes.NewReader(envelope))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, body
}

func startRelay(t *testing.T, f relay.Forwarder, opts ...relaytest.RelayOption) *relaytest.Relay {
	t.Helper()
	relay := relaytest.NewRelay(append(opts, relaytest.WithRelay(relay.WithForwarder(f)))...)
	t.Cleanup(relay.Close)
	return relay
}

func TestForwardThroughAppleToThePhone(t *testing.T) {
	key, private := newKey(t)
	service := newApple(t, &private.PublicKey)
	relay := startRelay(t, newForwarder(t, service, key))
	phone := relaytest.NewPhone()
	for _, size := range []int{0, seal.X25519.MaxPlaintext(3000)} { // the largest fits 4096 bytes
		if status, _, body := post(t, relay, phone, size); status != 202 || body["outcome"] != "forwarded" {
			t.Fatalf("%d bytes: answered %d %v", size, status, body)
		}
	}
	delivered, _, _ := service.seen()
	if len(delivered) != 2 {
		t.Fatalf("%d messages delivered", len(delivered))
	}
	for _, d := range delivered {
		got, err := phone.Open(apns.Message{Device: secret.New(d.device), Header: d.header, Payload: d.payload})
		if err != nil || got.Alert.Host != "db1.example" {
			t.Errorf("the phone read %v, %v", got, err)
		}
		if got := d.header.Get("apns-priority"); got != "10" {
			t.Errorf("priority %s", got)
		}
	}
}

func TestOneConnectionAndOneTokenForMany(t *testing.T) {
	key, private := newKey(t)
	service := newApple(t, &private.PublicKey)
	relay := startRelay(t, newForwarder(t, service, key))
	post(t, relay, relaytest.NewPhone(), 0)
	var group sync.WaitGroup
	for range 100 {
		group.Go(func() {
			if status, _, body := post(t, relay, relaytest.NewPhone(), 0); status != 202 {
				t.Errorf("answered %d %v", status, body)
			}
		})
	}
	group.Wait()
	delivered, connections, tokens := service.seen()
	if len(delivered) != 101 || connections != 1 || tokens != 1 {
		t.Errorf("%d delivered over %d connections with %d tokens, want 101, 1 and 1", len(delivered), connections, tokens)
	}
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		status     int
		reason     string
		want       int
		retryAfter string
	}{
		{410, "Unregistered", 410, ""},
		{410, "ExpiredToken", 410, ""},
		{410, "", 502, ""},
		{400, "BadDeviceToken", 410, ""},
		{400, "DeviceTokenNotForTopic", 410, ""},
		{429, "TooManyRequests", 429, ""},
		{429, "TooManyProviderTokenUpdates", 502, ""},
		{400, "BadTopic", 502, ""},
		{403, "ExpiredProviderToken", 502, ""},
		{403, "InvalidProviderToken", 502, ""},
		{404, "BadPath", 502, ""},
		{413, "PayloadTooLarge", 502, ""},
		{500, "InternalServerError", 502, ""},
		{503, "ServiceUnavailable", 502, ""},
		{302, "", 502, ""},
		{204, "", 502, ""},
	}
	key, private := newKey(t)
	service := newApple(t, &private.PublicKey)
	relay := startRelay(t, newForwarder(t, service, key), quiet)
	phone := relaytest.NewPhone()
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.status, tt.reason), func(t *testing.T) {
			service.script(func(w http.ResponseWriter) bool {
				refuse(w, tt.status, tt.reason)
				return true
			})
			status, header, body := post(t, relay, phone, 0)
			reason, _ := body["reason"].(string)
			if status != tt.want || reason != tt.reason || header.Get("Retry-After") != tt.retryAfter {
				t.Errorf("answered %d %v, Retry-After %q", status, body, header.Get("Retry-After"))
			}
		})
	}
	t.Run("how long Apple says", func(t *testing.T) {
		service.script(func(w http.ResponseWriter) bool {
			w.Header().Set("Retry-After", "7")
			refuse(w, 429, "TooManyRequests")
			return true
		})
		if _, header, _ := post(t, relay, phone, 0); header.Get("Retry-After") != "7" {
			t.Errorf("Retry-After %q", header.Get("Retry-After"))
		}
	})
	t.Run("what is no reason", func(t *testing.T) {
		for _, answer := range []string{`{"reason":"x\nlevel=INFO"}`, `{"reason":5}`, `<html>`, `{"reason":"` + strings.Repeat("a", 5000)} {
			service.script(func(w http.ResponseWriter) bool {
				w.WriteHeader(500)
				io.WriteString(w, answer)
				return true
			})
			if status, _, body := post(t, relay, phone, 0); status != 502 || body["reason"] != nil {
				t.Errorf("%.20s: answered %d %v", answer, status, body)
			}
		}
	})
	if delivered, _, _ := service.seen(); len(delivered) != 0 {
		t.Errorf("%d delivered", len(delivered))
	}
	service.script(nil)
	if status, _, body := post(t, relay, phone, 0); status != 202 {
		t.Errorf("once Apple took them again: %d %v", status, body)
	}
}

// What is wrong in the relay's own set-up is not the phone's fault.
func TestAnotherTeamsKey(t *testing.T) {
	_, private := newKey(t)
	other, _ := newKey(t)
	service := newApple(t, &private.PublicKey)
	relay := startRelay(t, newForwarder(t, service, other), quiet)
	if status, _, body := post(t, relay, relaytest.NewPhone(), 0); status != 502 || body["reason"] != "InvalidProviderToken" {
		t.Errorf("answered %d %v", status, body)
	}
}

func TestNothingShowsASecret(t *testing.T) {
	key, private := newKey(t)
	service := newApple(t, &private.PublicKey)
	f := newForwarder(t, service, key)
	phone := relaytest.NewPhone()
	var log bytes.Buffer
	relay := startRelay(t, f, relaytest.WithRelay(relay.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))
	post(t, relay, phone, 0) // a provider token is made
	service.Close()
	status, _, body := post(t, relay, phone, 0)
	if status != 502 || !strings.Contains(log.String(), "level=WARN") {
		t.Errorf("answered %d, logged %q", status, log.String())
	}
	type holder struct {
		key apns.Key
		f   *apns.Forwarder
	}
	shown := fmt.Sprint(body) + log.String()
	for _, v := range []any{key, *key, f, holder{*key, f}} {
		shown += fmt.Sprintf("%v %+v %#v %s %d", v, v, v, v, v)
	}
	for name, secret := range map[string]string{
		"device token": phone.PushToken(), "provider token": "eyJ", "private key": decimal(t, private),
	} {
		if strings.Contains(shown, secret) {
			t.Errorf("shows a %s: %s", name, shown)
		}
	}
}

// quoting is a transport of the caller's that quotes the request in its error.
type quoting struct{}

func (quoting) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("cannot send %s with %s: %w", r.URL.Path, r.Header.Get("Authorization"), io.ErrUnexpectedEOF)
}

func TestTransportThatQuotesTheRequest(t *testing.T) {
	key, _ := newKey(t)
	f, err := apns.New(key, topic, apns.WithHTTPClient(&http.Client{Transport: quoting{}}))
	if err != nil {
		t.Fatal(err)
	}
	const token = "8f3a1b5577990024"
	err = f.ForwardDigest(t.Context(), secret.New(token))
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the cause is lost: %v", err)
	}
	for ; err != nil; err = errors.Unwrap(err) {
		if text := err.Error(); strings.Contains(text, token) || strings.Contains(text, "eyJ") {
			t.Errorf("it says %s", text)
		}
	}
}

func TestForwardEndsWithItsContext(t *testing.T) {
	key, private := newKey(t)
	service := newApple(t, &private.PublicKey)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := newForwarder(t, service, key).Forward(ctx, relay.Envelope{Device: secret.New(strings.Repeat("ab", 32))})
	failure, ok := errors.AsType[*relay.ForwardError](err)
	if !ok || !errors.Is(err, context.Canceled) || failure.Status != 0 {
		t.Errorf("got %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	key, _ := newKey(t)
	tests := map[string]struct {
		key   *apns.Key
		topic string
		opts  []apns.Option
	}{
		"no key":       {nil, topic, nil},
		"no topic":     {key, "", nil},
		"no client":    {key, topic, []apns.Option{apns.WithHTTPClient(nil)}},
		"http":         {key, topic, []apns.Option{apns.WithHost("http://api.push.apple.com")}},
		"a bare name":  {key, topic, []apns.Option{apns.WithHost("api.push.apple.com")}},
		"a path":       {key, topic, []apns.Option{apns.WithHost(apns.Sandbox + "/3")}},
		"not a URL":    {key, topic, []apns.Option{apns.WithHost("https://a b")}},
		"credentials":  {key, topic, []apns.Option{apns.WithHost("https://u:p@api.push.apple.com")}},
		"no host name": {key, topic, []apns.Option{apns.WithHost("https://")}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if f, err := apns.New(tt.key, tt.topic, tt.opts...); err == nil {
				t.Errorf("made %v", f)
			}
		})
	}
}

// The names are those of "Sending notification requests to APNs" in Apple's
// documentation.
func TestHosts(t *testing.T) {
	key, _ := newKey(t)
	for want, opts := range map[string][]apns.Option{
		"APNs forwarder for com.example.pager at https://api.push.apple.com":         nil,
		"APNs forwarder for com.example.pager at https://api.sandbox.push.apple.com": {apns.WithHost(apns.Sandbox + "/")},
	} {
		if f, err := apns.New(key, topic, opts...); err != nil || fmt.Sprint(f) != want {
			t.Errorf("%v, %v; want %s", f, err, want)
		}
	}
}

// decimal is how fmt would print a private key.
func decimal(t *testing.T, private *ecdsa.PrivateKey) string {
	t.Helper()
	raw, err := private.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return new(big.Int).SetBytes(raw).String()
}

var quiet = relaytest.WithRelay(relay.WithLogger(slog.New(slog.DiscardHandler)))
