package relaytest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relayclient/relaytest"
)

func TestRelayForwards(t *testing.T) {
	servers := map[string][]relaytest.RelayOption{
		"loopback":           nil,
		"loopback with TLS":  {relaytest.WithTLS()},
		"in memory":          {relaytest.InMemory()},
		"in memory with TLS": {relaytest.InMemory(), relaytest.WithTLS()},
	}
	for name, opts := range servers {
		t.Run(name, func(t *testing.T) {
			relay := start(t, opts...)
			ciphertext := sealed(t, []byte("nobody in between reads this"))
			before := time.Now()
			got := post(t, relay, envelope(t, "ciphertext", ciphertext))
			if got.status != 202 || got.body["outcome"] != "forwarded" || got.body["v"] != 1.0 {
				t.Errorf("answered %d %v", got.status, got.body)
			}

			inbox := relay.Inbox(strings.ToUpper(device))
			if len(inbox) != 1 {
				t.Fatalf("%d messages, want 1", len(inbox))
			}
			if inbox[0].Device.Reveal() != device {
				t.Error("the device token is not the one posted")
			}
			if other := relay.Inbox(device + "00"); len(other) != 0 {
				t.Errorf("another device got %v", other)
			}
			requests := relay.Requests()
			if len(requests) != 1 || requests[0].Time.Before(before.Add(-time.Second)) {
				t.Fatalf("recorded %v", requests)
			}
			e, err := requests[0].Envelope()
			if err != nil || e.Device.Reveal() != device || e.Ciphertext != ciphertext || e.CollapseID != collapseID || e.Priority != "time-sensitive" {
				t.Errorf("recorded %v, %v", e, err)
			}
			stats := relay.Stats()
			if want := (relaytest.Stats{Connections: 1, Requests: 1, MaxInFlight: 1}); stats != want {
				t.Errorf("stats %+v, want %+v", stats, want)
			}
		})
	}
}

func TestRelayMounted(t *testing.T) {
	relay := relaytest.NewUnstartedRelay()
	defer relay.Close()
	if relay.URL != "" || relay.Client() != nil {
		t.Error("an unstarted relay has an address")
	}
	mux := http.NewServeMux()
	mux.Handle("/relay", http.StripPrefix("/relay", relay))
	server := httptest.NewServer(mux)
	defer server.Close()
	resp, err := server.Client().Post(server.URL+"/relay", "application/json", strings.NewReader(envelope(t)))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 202 || len(relay.Inbox(device)) != 1 {
		t.Errorf("answered %s, inbox %v", resp.Status, relay.Inbox(device))
	}

	relay.Start()
	if got := post(t, relay, envelope(t, "device", device+"ff")); got.status != 202 {
		t.Errorf("answered %d once started", got.status)
	}
}

func TestRelayInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewRelay(relaytest.InMemory())
		defer relay.Close()
		go func() {
			advance(time.Hour) // in the bubble's time
			post(t, relay, envelope(t))
		}()
		start := time.Now()
		if _, err := relay.WaitInbox(t.Context(), device, 1); err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(start); waited != time.Hour {
			t.Errorf("the message came after %v", waited)
		}
	})
}

func TestRelayKeepsTheLatest(t *testing.T) {
	relay := start(t, relaytest.WithHistory(3))
	for i := range 10 {
		post(t, relay, envelope(t, "collapseId", fmt.Sprintf("%032x", i)))
	}
	var ids []string
	for _, r := range relay.Requests() {
		e, err := r.Envelope()
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, strings.TrimLeft(e.CollapseID, "0"))
	}
	if got := strings.Join(ids, " "); got != "7 8 9" {
		t.Errorf("requests kept: %s", got)
	}
	if got := len(relay.Inbox(device)); got != 3 {
		t.Errorf("%d messages kept", got)
	}
	if got := relay.Stats().Requests; got != 10 {
		t.Errorf("%d requests counted", got)
	}

	bare := start(t, relaytest.WithoutRequests())
	post(t, bare, envelope(t))
	if len(bare.Requests()) != 0 || len(bare.Inbox(device)) != 1 || bare.Stats().Requests != 1 {
		t.Errorf("without requests: %d kept, %d messages, %+v", len(bare.Requests()), len(bare.Inbox(device)), bare.Stats())
	}

	none := start(t, relaytest.WithHistory(0))
	post(t, none, envelope(t))
	if len(none.Requests()) != 0 || len(none.Inbox(device)) != 0 {
		t.Error("a relay without history kept something")
	}
}

// What a relay hands out holds device tokens; none may slip into a log.
func TestNothingPrintsADeviceToken(t *testing.T) {
	relay := start(t)
	post(t, relay, envelope(t))
	recorded := relay.Requests()[0]
	e, err := recorded.Envelope()
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []any{relay, recorded, &recorded, e, &e, relay.Inbox(device), relay.Inbox(device)[0]} {
		text := fmt.Sprintf("%v %+v %#v %s %d %x", v, v, v, v, v, v)
		encoded, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		for _, shown := range []string{text, string(encoded)} {
			if strings.Contains(shown, device) || bytes.Contains([]byte(shown), fmt.Appendf(nil, "%x", device)) {
				t.Errorf("%T shows its device token: %s", v, shown)
			}
		}
	}
}
