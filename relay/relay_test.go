package relay_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

func TestRelayAnswers(t *testing.T) {
	relay := start(t)
	long := strings.Repeat("A", 3800)
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
		{"v is 1.0", "POST", "/", strings.Replace(envelope(t), `"v":1`, `"v":1.0`, 1), 202, ""},
		{"v is 1e0", "POST", "/", strings.Replace(envelope(t), `"v":1`, `"v":1e0`, 1), 202, ""},
		{"v is 1.5", "POST", "/", strings.Replace(envelope(t), `"v":1`, `"v":1.5`, 1), 400, "v "},
		{"v is true", "POST", "/", envelope(t, "v", true), 400, "v "},
		{"v twice, the last is right", "POST", "/", `{"v":2,` + envelope(t)[1:], 202, ""},
		{"v twice, the last is wrong", "POST", "/", strings.TrimSuffix(envelope(t), "}") + `,"v":2}`, 400, "v "},
		{"a byte order mark", "POST", "/", "\ufeff" + envelope(t), 202, ""},
		{"two byte order marks", "POST", "/", "\ufeff\ufeff" + envelope(t), 400, "body "},

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
		{"device twice", "POST", "/", `{"device":"x",` + envelope(t)[1:], 202, ""},

		{"suite x25519", "POST", "/", envelope(t, "suite", "x25519"), 202, ""},
		{"suite of 16 characters", "POST", "/", envelope(t, "suite", "a-234567890-2345"), 202, ""},
		{"suite a-", "POST", "/", envelope(t, "suite", "a-"), 202, ""},
		{"suite 0", "POST", "/", envelope(t, "suite", "0"), 202, ""},
		{"suite of 17 characters", "POST", "/", envelope(t, "suite", "a-234567890-23456"), 400, "suite "},
		{"suite -a", "POST", "/", envelope(t, "suite", "-a"), 400, "suite "},
		{"suite X25519", "POST", "/", envelope(t, "suite", "X25519"), 400, "suite "},
		{"suite a_b", "POST", "/", envelope(t, "suite", "a_b"), 400, "suite "},
		{"suite empty", "POST", "/", envelope(t, "suite", ""), 400, "suite "},
		{"suite null", "POST", "/", strings.Replace(envelope(t, "suite", "@"), `"@"`, "null", 1), 400, "suite "},
		{"suite is a number", "POST", "/", envelope(t, "suite", 25519), 400, "suite "},
		{"suite is an object", "POST", "/", envelope(t, "suite", map[string]int{}), 400, "suite "},
		{"suite and ciphertext wrong", "POST", "/", envelope(t, "suite", "", "ciphertext", ""), 400, "suite "},
		{"device and suite wrong", "POST", "/", envelope(t, "suite", "", "device", ""), 400, "device "},
		{"xwing of 1520 characters", "POST", "/", envelope(t, "suite", "xwing", "ciphertext", long[:1520]), 202, ""},
		{"xwing of 1516 characters", "POST", "/", envelope(t, "suite", "xwing", "ciphertext", long[:1516]), 400, "ciphertext "},
		{"unknown suite of 68 characters", "POST", "/", envelope(t, "suite", "later", "ciphertext", long[:68]), 202, ""},
		{"unknown suite of 64 characters", "POST", "/", envelope(t, "suite", "later", "ciphertext", long[:64]), 400, "ciphertext "},

		{"no ciphertext", "POST", "/", envelope(t, "ciphertext", nil), 400, "ciphertext "},
		{"ciphertext is null", "POST", "/", strings.Replace(envelope(t, "ciphertext", "@"), `"@"`, "null", 1), 400, "ciphertext "},
		{"ciphertext of 3800 characters", "POST", "/", envelope(t, "ciphertext", long), 202, ""},
		{"ciphertext of 3804 characters", "POST", "/", envelope(t, "ciphertext", long+"AAAA"), 400, "ciphertext "},
		{"ciphertext of 68 characters", "POST", "/", envelope(t, "ciphertext", long[:68]), 202, ""},
		{"ciphertext of 64 characters", "POST", "/", envelope(t, "ciphertext", sealed(t, nil)), 400, "ciphertext "},
		{"ciphertext empty", "POST", "/", envelope(t, "ciphertext", ""), 400, "ciphertext "},
		{"ciphertext without padding", "POST", "/", envelope(t, "ciphertext", long[:95]), 400, "ciphertext "},
		{"ciphertext with a line break", "POST", "/", envelope(t, "ciphertext", long[:96]+"\n"), 400, "ciphertext "},
		{"ciphertext URL-safe", "POST", "/", envelope(t, "ciphertext", long[:92]+"__--"), 400, "ciphertext "},
		{"ciphertext with stray bits", "POST", "/", envelope(t, "ciphertext", long[:92]+"AAB="), 202, ""},

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
			if allow := got.header.Get("Allow"); (allow == "GET, HEAD, POST") != (tt.status == 405) {
				t.Errorf("status %d with Allow %q", tt.status, allow)
			}
		})
	}
	for _, method := range []string{http.MethodGet, http.MethodHead} {
		req, err := http.NewRequestWithContext(t.Context(), method, relay.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := relay.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") ||
			(len(page) > 0) != (method == http.MethodGet) {
			t.Errorf("%s answered %s with %q, %v", method, resp.Status, page, err)
		}
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

func TestRelayCapsTheCiphertext(t *testing.T) {
	relay := start(t, relaytest.WithRelay(relay.WithMaxCiphertext(3000)))
	for size, want := range map[int]int{3000: 202, 3004: 400} {
		got := post(t, relay, envelope(t, "ciphertext", strings.Repeat("A", size), "collapseId", id(size)))
		if problem, _ := got.body["error"].(string); got.status != want || (want == 400) != strings.Contains(problem, "ciphertext") {
			t.Errorf("%d characters: answered %d %v", size, got.status, got.body)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	forwarder := relay.WithForwarder(forwarderFunc(nil))
	for name, opts := range map[string][]relay.Option{
		"nothing to forward to":    nil,
		"a nil forwarder":          {relay.WithForwarder(nil)},
		"a nil option":             {forwarder, nil},
		"a nil state":              {forwarder, relay.WithState(nil)},
		"a cap below the floor":    {forwarder, relay.WithMaxCiphertext(2996)},
		"a cap that Apple refuses": {forwarder, relay.WithMaxCiphertext(3804)},
		"a quota without digests":  {forwarder, relay.WithPolicy(relay.Policy{MonthlyQuota: 1})},
	} {
		if _, err := relay.New(opts...); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := relay.NewMemoryState(0); err == nil {
		t.Error("a state without room: taken")
	}
}
