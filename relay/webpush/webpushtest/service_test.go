package webpushtest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/sealpush/sealpush/relay/webpush/webpushtest"
)

// post sends what is not a message and returns the status of the answer.
func post(t *testing.T, s *webpushtest.Service, endpoint string, change func(http.Header), size int) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, bytes.NewReader(make([]byte, size)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Encoding", "aes128gcm")
	req.Header.Set("TTL", "600")
	if change != nil {
		change(req.Header)
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestServiceRefusesWhatIsNoMessage(t *testing.T) {
	s := webpushtest.New(t)
	subscription := s.Subscribe()
	set := func(name, value string) func(http.Header) {
		return func(header http.Header) { header.Set(name, value) }
	}
	for name, test := range map[string]struct {
		endpoint string
		change   func(http.Header)
		size     int
		want     int
	}{
		"unknown subscription": {s.URL + "/push/other", nil, 200, http.StatusNotFound},
		"too large":            {subscription.Endpoint, nil, 4097, http.StatusRequestEntityTooLarge},
		"no encoding":          {subscription.Endpoint, set("Content-Encoding", ""), 200, http.StatusBadRequest},
		"no TTL":               {subscription.Endpoint, set("TTL", ""), 200, http.StatusBadRequest},
		"wrong topic":          {subscription.Endpoint, set("Topic", "a b"), 200, http.StatusBadRequest},
		"wrong urgency":        {subscription.Endpoint, set("Urgency", "huge"), 200, http.StatusBadRequest},
		"no VAPID":             {subscription.Endpoint, nil, 200, http.StatusUnauthorized},
		"wrong VAPID":          {subscription.Endpoint, set("Authorization", "vapid t=a.b.c, k=d"), 200, http.StatusForbidden},
	} {
		if got := post(t, s, test.endpoint, test.change, test.size); got != test.want {
			t.Errorf("%s: %d, want %d", name, got, test.want)
		}
	}
	s.Fail(http.StatusServiceUnavailable)
	if got := post(t, s, subscription.Endpoint, nil, 200); got != http.StatusServiceUnavailable {
		t.Errorf("told to fail: %d", got)
	}
	s.Fail(0)
	s.Gone(subscription)
	if got := post(t, s, subscription.Endpoint, nil, 200); got != http.StatusGone {
		t.Errorf("gone: %d", got)
	}
	if got := s.Messages(); len(got) != 0 {
		t.Errorf("messages: %v", got)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := s.Await(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("awaited nothing: %v", err)
	}
}

// A page posts a subscription as the browser writes it.
func TestSubscriptionIsWrittenAsByABrowser(t *testing.T) {
	text, err := json.Marshal(webpushtest.New(t).Subscribe())
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	keys, _ := got["keys"].(map[string]any)
	expires, written := got["expirationTime"]
	if len(got) != 3 || got["endpoint"] == "" || expires != nil || !written || len(keys) != 2 || len(keys["p256dh"].(string)) != 87 || len(keys["auth"].(string)) != 22 {
		t.Errorf("%s", text)
	}
}
