package relaytest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/seal"
)

const (
	device     = "8f3a1b5577990024"
	collapseID = "93bc5d02dc2a24b5365347573b6f5115"
)

var phoneKey = seal.GenerateKey()

func sealed(t testing.TB, plaintext []byte) string {
	t.Helper()
	ciphertext, err := seal.Seal(phoneKey.Public(), plaintext)
	if err != nil {
		t.Fatal(err)
	}
	return ciphertext
}

// envelope is a right one, with members set or (nil) taken away by pairs.
func envelope(t testing.TB, pairs ...any) string {
	t.Helper()
	members := map[string]any{
		"v": 1, "device": device, "ciphertext": sealed(t, []byte("hello")),
		"collapseId": collapseID, "priority": "time-sensitive", "event": false,
	}
	for i := 0; i < len(pairs); i += 2 {
		if members[pairs[i].(string)] = pairs[i+1]; pairs[i+1] == nil {
			delete(members, pairs[i].(string))
		}
	}
	body, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

type answer struct {
	status int
	header http.Header
	body   map[string]any
}

func request(t testing.TB, relay *relaytest.Relay, method, path, body string) answer {
	t.Helper()
	req, err := http.NewRequest(method, relay.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := relay.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a := answer{resp.StatusCode, resp.Header, map[string]any{}}
	if method == http.MethodHead {
		return a
	}
	if err := json.Unmarshal(raw, &a.body); err != nil {
		t.Fatalf("answered %q: %v", raw, err)
	}
	return a
}

func post(t testing.TB, relay *relaytest.Relay, body string) answer {
	t.Helper()
	return request(t, relay, http.MethodPost, "/", body)
}

// start serves a relay until the test ends.
func start(t testing.TB, opts ...relaytest.RelayOption) *relaytest.Relay {
	t.Helper()
	relay := relaytest.NewRelay(opts...)
	t.Cleanup(relay.Close)
	return relay
}

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
			if inbox[0].Device != device {
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
			want := relaytest.Envelope{Device: device, Ciphertext: ciphertext, CollapseID: collapseID, Priority: "time-sensitive"}
			if err != nil || e != want {
				t.Errorf("recorded %v, %v", e, err)
			}
			stats := relay.Stats()
			if want := (relaytest.Stats{Connections: 1, Requests: 1, MaxInFlight: 1}); stats != want {
				t.Errorf("stats %+v, want %+v", stats, want)
			}
		})
	}
}

func TestRelayAnswers(t *testing.T) {
	relay := start(t)
	long := strings.Repeat("A", 4*750) // 3000 characters
	tests := []struct {
		name         string
		method, path string
		body         string
		status       int
		error        string // a prefix
	}{
		{"no body", "POST", "/", "", 400, "body "},
		{"not JSON", "POST", "/", "device=8f3a", 400, "body "},
		{"cut short", "POST", "/", envelope(t)[:40], 400, "body "},
		{"something after", "POST", "/", envelope(t) + "{}", 400, "body "},
		{"an array", "POST", "/", "[" + envelope(t) + "]", 400, "body "},
		{"null", "POST", "/", "null", 400, "body "},
		{"white space around", "POST", "/", "\r\n " + envelope(t) + "\n", 202, ""},
		{"unknown members", "POST", "/", envelope(t, "ttl", 5, "Event", "x"), 202, ""},
		{"an unknown member twice", "POST", "/", `{"x":1,"x":{"v":2},` + envelope(t)[1:], 202, ""},

		{"no v", "POST", "/", envelope(t, "v", nil), 400, "v "},
		{"v is 2", "POST", "/", envelope(t, "v", 2), 400, "v "},
		{"v is text", "POST", "/", envelope(t, "v", "1"), 400, "v "},
		{"v is not an integer", "POST", "/", `{"v":1.0,` + strings.Replace(envelope(t)[1:], `"v":1`, `"w":1`, 1), 400, "v "},
		{"v twice", "POST", "/", `{"v":1,` + envelope(t)[1:], 400, "v occurs twice"},

		{"no device", "POST", "/", envelope(t, "device", nil), 400, "device "},
		{"device in another case", "POST", "/", envelope(t, "device", nil, "Device", device), 400, "device is missing"},
		{"device is a number", "POST", "/", envelope(t, "device", 1), 400, "device "},
		{"device of 15 digits", "POST", "/", envelope(t, "device", device[:15]), 400, "device "},
		{"device of 16 digits", "POST", "/", envelope(t, "device", device[:16]), 202, ""},
		{"device in upper case", "POST", "/", envelope(t, "device", strings.ToUpper(device)), 202, ""},
		{"device of 512 digits", "POST", "/", envelope(t, "device", strings.Repeat("a", 512)), 202, ""},
		{"device of 513 digits", "POST", "/", envelope(t, "device", strings.Repeat("a", 513)), 400, "device "},
		{"device not hex", "POST", "/", envelope(t, "device", device+"g"), 400, "device "},
		{"device with a space", "POST", "/", envelope(t, "device", device+" "), 400, "device "},
		{"device twice", "POST", "/", `{"device":"` + device + `",` + envelope(t)[1:], 400, "device occurs twice"},

		{"no ciphertext", "POST", "/", envelope(t, "ciphertext", nil), 400, "ciphertext "},
		{"ciphertext is null", "POST", "/", strings.Replace(envelope(t, "ciphertext", "@"), `"@"`, "null", 1), 400, "ciphertext "},
		{"ciphertext of 3000 characters", "POST", "/", envelope(t, "ciphertext", long), 202, ""},
		{"ciphertext of 3004 characters", "POST", "/", envelope(t, "ciphertext", long+"AAAA"), 400, "ciphertext "},
		{"ciphertext of nothing sealed", "POST", "/", envelope(t, "ciphertext", sealed(t, nil)), 202, ""},
		{"ciphertext shorter than a box", "POST", "/", envelope(t, "ciphertext", long[:60]), 400, "ciphertext "},
		{"ciphertext empty", "POST", "/", envelope(t, "ciphertext", ""), 400, "ciphertext "},
		{"ciphertext without padding", "POST", "/", envelope(t, "ciphertext", long[:95]), 400, "ciphertext "},
		{"ciphertext with a line break", "POST", "/", envelope(t, "ciphertext", long[:96]+"\n"), 400, "ciphertext "},
		{"ciphertext URL-safe", "POST", "/", envelope(t, "ciphertext", long[:92]+"__--"), 400, "ciphertext "},
		{"ciphertext with stray bits", "POST", "/", envelope(t, "ciphertext", long[:92]+"AAB="), 400, "ciphertext "},

		{"no collapse id", "POST", "/", envelope(t, "collapseId", nil), 400, "collapseId "},
		{"collapse id in upper case", "POST", "/", envelope(t, "collapseId", strings.ToUpper(collapseID)), 400, "collapseId "},
		{"collapse id of 31 digits", "POST", "/", envelope(t, "collapseId", collapseID[:31]), 400, "collapseId "},
		{"collapse id of 33 digits", "POST", "/", envelope(t, "collapseId", collapseID+"0"), 400, "collapseId "},

		{"no priority", "POST", "/", envelope(t, "priority", nil), 400, "priority "},
		{"passive", "POST", "/", envelope(t, "priority", "passive"), 202, ""},
		{"another priority", "POST", "/", envelope(t, "priority", "critical"), 400, "priority "},

		{"no event", "POST", "/", envelope(t, "event", nil), 400, "event "},
		{"an event", "POST", "/", envelope(t, "event", true), 202, ""},
		{"event is text", "POST", "/", envelope(t, "event", "true"), 400, "event "},
		{"event is a number", "POST", "/", envelope(t, "event", 0), 400, "event "},

		{"8192 bytes", "POST", "/", pad(envelope(t), 8192), 202, ""},
		{"8193 bytes", "POST", "/", pad(envelope(t), 8193), 413, "body "},
		{"a megabyte", "POST", "/", pad(envelope(t), 1<<20), 413, "body "},
		{"a query", "POST", "/?key=x", envelope(t), 202, ""},
		{"another path", "POST", "/push", envelope(t), 404, "nothing here"},
		{"GET", "GET", "/", "", 405, "method "},
		{"PUT", "PUT", "/", envelope(t), 405, "method "},
		{"GET elsewhere", "GET", "/favicon.ico", "", 404, "nothing here"},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			// A collapse id of its own, so that no case meets another's.
			body := strings.Replace(tt.body, collapseID, fmt.Sprintf("%032x", i), 1)
			got := request(t, relay, tt.method, tt.path, body)
			if got.status != tt.status {
				t.Fatalf("answered %d %v, want %d", got.status, got.body, tt.status)
			}
			if got.body["v"] != 1.0 || got.header.Get("Content-Type") != "application/json" {
				t.Errorf("not the protocol's shape: %v, %s", got.body, got.header.Get("Content-Type"))
			}
			problem, _ := got.body["error"].(string)
			if !strings.HasPrefix(problem, tt.error) || (tt.status == 202) != (problem == "") {
				t.Errorf("error %q, want %q…", problem, tt.error)
			}
			if strings.Contains(problem, device) {
				t.Errorf("the device token is in the error: %q", problem)
			}
			if allow := got.header.Get("Allow"); (allow == "POST") != (tt.status == 405) {
				t.Errorf("status %d with Allow %q", tt.status, allow)
			}
		})
	}
	if got := request(t, relay, http.MethodHead, "/", ""); got.status != 405 {
		t.Errorf("HEAD answered %d", got.status)
	}
}

func pad(body string, size int) string { return body + strings.Repeat(" ", size-len(body)) }

func TestRelayTellsABodyCutShort(t *testing.T) {
	relay := relaytest.NewUnstartedRelay()
	defer relay.Close()
	body := io.MultiReader(strings.NewReader(envelope(t)), &brokenReader{})
	w := httptest.NewRecorder()
	relay.ServeHTTP(w, httptest.NewRequest("POST", "/", body))
	if w.Code != 400 || !strings.Contains(w.Body.String(), "body ") {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
}

func TestRelayDoesNotWaitForASlowBodyForEver(t *testing.T) {
	for name, opts := range map[string][]relaytest.RelayOption{"HTTP/1.1": nil, "HTTP/2": {relaytest.WithTLS()}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, relay *relaytest.Relay) {
				body, slow := io.Pipe()
				defer slow.Close()
				go io.WriteString(slow, envelope(t)[:40])
				begin := time.Now()
				resp, err := relay.Client().Post(relay.URL, "application/json", body)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if waited := time.Since(begin); resp.StatusCode != 408 || waited != 10*time.Second {
					t.Errorf("answered %s after %v", resp.Status, waited)
				}
				if got := outcomeOf(t, relay); got != "forwarded" {
					t.Errorf("afterwards: %s", got)
				}
			}, opts...)
		})
	}
}

type brokenReader struct{}

func (*brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

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
