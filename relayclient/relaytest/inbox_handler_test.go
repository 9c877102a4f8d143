package relaytest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sealpush/sealpush/relay/apns"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

type fetchAnswer struct {
	status   int
	header   http.Header
	Messages []apns.Message // of which JSON leaves the device token out
	Next     string
	Error    string
}

// fetch asks an inbox as a phone in another process does.
func fetch(ctx context.Context, relay *relaytest.Relay, token, after string) fetchAnswer {
	req := httptest.NewRequestWithContext(ctx, "GET", "/inbox?after="+url.QueryEscape(after), nil)
	req.Header.Set("Authorization", "Bearer "+token)
	return serve(relay, req)
}

func serve(relay *relaytest.Relay, req *http.Request) fetchAnswer {
	recorder := httptest.NewRecorder()
	relay.InboxHandler().ServeHTTP(recorder, req)
	answer := fetchAnswer{status: recorder.Code, header: recorder.Header()}
	if err := json.Unmarshal(recorder.Body.Bytes(), &answer); err != nil {
		panic(fmt.Sprintf("answered %q: %v", recorder.Body, err))
	}
	return answer
}

// collapseIDs are those of the messages, in their order.
func collapseIDs(messages []apns.Message) []string {
	ids := []string{}
	for _, m := range messages {
		ids = append(ids, m.Header.Get("apns-collapse-id"))
	}
	return ids
}

func TestInboxHandlerHandsOutEachMessageOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, relay *relaytest.Relay) {
		for n := range 2 {
			post(t, relay, envelope(t, "collapseId", id(n)))
		}
		post(t, relay, envelope(t, "device", device+"ff"))

		first := fetch(t.Context(), relay, strings.ToUpper(device), "")
		if diff := cmp.Diff([]string{id(0), id(1)}, collapseIDs(first.Messages)); first.status != 200 || diff != "" {
			t.Errorf("answered %d (-want +got)\n%s", first.status, diff)
		}
		for i, m := range relay.Inbox(device) {
			m.Device = secret.Text{}
			if diff := cmp.Diff(m, first.Messages[i]); diff != "" {
				t.Errorf("message %d (-want +got)\n%s", i, diff)
			}
		}
		post(t, relay, envelope(t, "collapseId", id(2)))
		second := fetch(t.Context(), relay, device, first.Next)
		if diff := cmp.Diff([]string{id(2)}, collapseIDs(second.Messages)); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}

func TestInboxHandlerWaits(t *testing.T) {
	t.Run("for a message", func(t *testing.T) {
		inBubble(t, func(t *testing.T, relay *relaytest.Relay) {
			answered := make(chan fetchAnswer, 1)
			go func() { answered <- fetch(t.Context(), relay, device, "") }()
			synctest.Wait()
			post(t, relay, envelope(t, "device", device+"ff")) // somebody else's
			synctest.Wait()
			if len(answered) > 0 {
				t.Error("answered with nothing to tell")
			}
			post(t, relay, envelope(t))
			if got := <-answered; len(got.Messages) != 1 {
				t.Errorf("answered %+v", got)
			}
		})
	})
	t.Run("25 seconds at most", func(t *testing.T) {
		inBubble(t, func(t *testing.T, relay *relaytest.Relay) {
			start := time.Now()
			got := fetch(t.Context(), relay, device, "")
			if waited := time.Since(start); got.status != 200 || got.Messages == nil || len(got.Messages) != 0 || waited != 25*time.Second {
				t.Errorf("after %v answered %+v", waited, got)
			}
			post(t, relay, envelope(t))
			if got = fetch(t.Context(), relay, device, got.Next); len(got.Messages) != 1 {
				t.Errorf("then answered %+v", got)
			}
		})
	})
	t.Run("not for a phone that hung up", func(t *testing.T) {
		inBubble(t, func(t *testing.T, relay *relaytest.Relay) {
			ctx, cancel := context.WithCancel(t.Context())
			answered := make(chan fetchAnswer, 1)
			go func() { answered <- fetch(ctx, relay, device, "") }()
			synctest.Wait()
			start := time.Now()
			cancel()
			if <-answered; time.Since(start) != 0 {
				t.Errorf("waited %v more", time.Since(start))
			}
		})
	})
	t.Run("not for a relay that is closed", func(t *testing.T) {
		inBubble(t, func(t *testing.T, relay *relaytest.Relay) {
			answered := make(chan fetchAnswer, 1)
			go func() { answered <- fetch(t.Context(), relay, device, "") }()
			synctest.Wait()
			relay.Close()
			for _, got := range []fetchAnswer{<-answered, fetch(t.Context(), relay, device, "")} {
				if got.status != 503 || got.Error != "the relay is closed" {
					t.Errorf("answered %+v", got)
				}
			}
		})
	})
}

func TestInboxHandlerKeepsTheLastMessageOfAClosedRelay(t *testing.T) {
	inBubble(t, func(t *testing.T, relay *relaytest.Relay) {
		post(t, relay, envelope(t))
		relay.Close()
		if got := fetch(t.Context(), relay, device, ""); len(got.Messages) != 1 {
			t.Errorf("answered %+v", got)
		}
	})
}

func TestInboxHandlerGoesOnWhereItCan(t *testing.T) {
	relay := start(t, relaytest.WithoutPolicy(), relaytest.WithHistory(150))
	other := start(t)
	post(t, other, envelope(t))
	next := fetch(t.Context(), other, device, "").Next
	for n := range 400 {
		post(t, relay, envelope(t, "collapseId", id(n)))
	}
	t.Run("from the oldest that is kept, a hundred at a time", func(t *testing.T) {
		var got []string
		after := ""
		for range 2 {
			answer := fetch(t.Context(), relay, device, after)
			if after = answer.Next; len(answer.Messages) > 100 {
				t.Errorf("%d messages at once", len(answer.Messages))
			}
			got = append(got, collapseIDs(answer.Messages)...)
		}
		if len(got) != 150 || got[0] != id(250) || got[149] != id(399) {
			t.Errorf("%d messages, %v", len(got), got)
		}
	})
	t.Run("from the start after another relay", func(t *testing.T) {
		if got := fetch(t.Context(), relay, device, next); len(got.Messages) == 0 || collapseIDs(got.Messages)[0] != id(250) {
			t.Errorf("answered %+v", got)
		}
	})
}

func TestInboxHandlerRefuses(t *testing.T) {
	relay := start(t)
	with := func(method, authorization, query string) *http.Request {
		req := httptest.NewRequestWithContext(t.Context(), method, "/inbox"+query, nil)
		if authorization != "" {
			req.Header.Set("Authorization", authorization)
		}
		return req
	}
	tests := map[string]struct {
		req    *http.Request
		status int
		header string // that must be there
	}{
		"no token":          {with("GET", "", ""), 401, "WWW-Authenticate"},
		"another scheme":    {with("GET", "Basic "+device, ""), 401, "WWW-Authenticate"},
		"not hex":           {with("GET", "Bearer ../../etc/passwd", ""), 401, "WWW-Authenticate"},
		"too short":         {with("GET", "Bearer 8f3a", ""), 401, "WWW-Authenticate"},
		"too long":          {with("GET", "Bearer "+strings.Repeat("a", 513), ""), 401, "WWW-Authenticate"},
		"after not a mark":  {with("GET", "Bearer "+device, "?after=17"), 400, ""},
		"after is negative": {with("GET", "Bearer "+device, "?after=X--1"), 400, ""},
		"another method":    {with("DELETE", "Bearer "+device, ""), 405, "Allow"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := serve(relay, tt.req)
			if got.status != tt.status || got.Error == "" || strings.Contains(got.Error, device) {
				t.Errorf("answered %+v", got)
			}
			if tt.header != "" && got.header.Get(tt.header) == "" {
				t.Errorf("no %s in %v", tt.header, got.header)
			}
		})
	}
}
