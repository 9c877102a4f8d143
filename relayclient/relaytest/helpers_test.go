package relaytest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

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

// inBubble runs a test against a relay in memory, whose clock is the bubble's.
func inBubble(t *testing.T, f func(t *testing.T, relay *relaytest.Relay), opts ...relaytest.RelayOption) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewRelay(append(opts, relaytest.InMemory())...)
		defer relay.Close()
		f(t, relay)
	})
}

func id(n int) string { return fmt.Sprintf("%032x", n) }
