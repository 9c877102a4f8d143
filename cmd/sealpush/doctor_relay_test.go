package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/relayclient/relaytest"
)

func TestAnswersOfARelay(t *testing.T) {
	ago := func(d time.Duration) http.Header {
		return http.Header{"Date": {time.Now().Add(-d).UTC().Format(http.TimeFormat)}}
	}
	for name, c := range map[string]struct {
		answer relaytest.Answer
		exit   int
		says   []string
	}{
		"no credentials":    {relaytest.Answer{Status: 401}, 1, []string{"FAIL  answers 401 Unauthorized", "put them into its URL"}},
		"not let in":        {relaytest.Answer{Status: 403}, 1, []string{"does not let this machine in"}},
		"wrong path":        {relaytest.Answer{Status: 404, Body: "no such page"}, 1, []string{"404 Not Found: no such page", "correct the path of the relay's URL"}},
		"only for browsers": {relaytest.Answer{Status: 405}, 1, []string{"The server has nothing at this path"}},
		"moved": {relaytest.Answer{Status: 308, Header: http.Header{"Location": {"https://new.example/elsewhere"}}}, 1,
			[]string{"leads to https://new.example: set the relay's URL"}},
		"moved to nowhere": {relaytest.Answer{Status: 302}, 1, []string{"Redirects are not followed: correct"}},
		"a web page":       {relaytest.Answer{Status: 200, Body: "<html>"}, 1, []string{"accepts a malformed envelope: 200 OK: <html>", "some other server"}},
		"overloaded":       {relaytest.Answer{Status: 503}, 1, []string{"FAIL  answers 503", "does not work"}},
		"rate limited":     {relaytest.Answer{Status: 429}, 0, []string{"warn  answers 429", "Wait"}},
		"strange":          {relaytest.Answer{Status: 418}, 0, []string{"warn  answers a malformed envelope with 418", "with -page"}},
		"hangs up":         {relaytest.Answer{Drop: true}, 1, []string{"FAIL  no answer", "The connection broke"}},
		"clock behind":     {relaytest.Answer{Status: 400, Header: ago(-time.Hour)}, 1, []string{"FAIL  this machine's clock is", "behind the server's", "(NTP)"}},
		"clock ahead":      {relaytest.Answer{Status: 400, Header: ago(5 * time.Minute)}, 0, []string{"warn  this machine's clock is", "ahead of the server's"}},
	} {
		t.Run(name, func(t *testing.T) {
			relay := relaytest.NewRelay()
			defer relay.Close()
			relay.Script(1, c.answer)
			expectDoctor(t, c.exit, c.says, "-relay-url", relay.URL)
		})
	}
}

func TestHiddenPartsOfTheURLAreNamed(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	for below, says := range map[string]string{
		"/wrong":           " (path not shown)\n",
		"/?key=word":       " (query not shown)\n",
		"/wrong?key=wrong": " (path and query not shown)\n",
		"/":                "\n",
		"":                 "\n",
	} {
		if out, _ := doctor(t, "-relay-url", relay.URL+below); !strings.Contains(out, relay.URL+says) {
			t.Errorf("of %q it does not say %q, but\n%s", below, says, out)
		}
	}
}

func TestRelaysThatCannotBeAsked(t *testing.T) {
	tls := relaytest.NewRelay(relaytest.WithTLS())
	defer tls.Close()
	plain := relaytest.NewRelay()
	defer plain.Close()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	wrongCredentials := relaytest.NewRelay()
	defer wrongCredentials.Close()
	wrongCredentials.Script(1, relaytest.Answer{Status: 401})
	for name, c := range map[string]struct {
		url, says string
	}{
		"not a URL":         {"relay.example", "Correct -relay-url"},
		"no such host":      {"http://relay.invalid/", "FAIL  no answer"},
		"nobody listens":    {"http://" + free.Addr().String(), "start the server"},
		"unknown authority": {tls.URL, "Install the certificate authority"},
		"no TLS":            {strings.Replace(plain.URL, "http:", "https:", 1), "does not speak TLS"},
		"wrong credentials": {strings.Replace(wrongCredentials.URL, "//", "//operator:hunter2@", 1), "does not accept the credentials in its URL"},
	} {
		t.Run(name, func(t *testing.T) {
			expectDoctor(t, 1, []string{"FAIL", c.says}, "-relay-url", c.url)
		})
	}
}

func TestPhoneThatTheRelayRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		says   string
	}{
		"gone":         {410, "The app was deleted"},
		"rate limited": {429, "Wait"},
		"refused":      {400, "pair the phone again if it is the token"},
		"broken":       {502, "does not work"},
	} {
		t.Run(name, func(t *testing.T) {
			setup := newSetup(t)
			// The first request is the check, the second the page.
			setup.relay.Script(1, relaytest.Answer{})
			setup.relay.Script(1, relaytest.Answer{Status: c.status})
			expectDoctor(t, 1, []string{"FAIL  phone", c.says}, "-page", "-relay-url", setup.relay.URL, "-registry", setup.registry)
		})
	}
}

// The doctor promises a ring only where the relay says that it forwarded.
func TestPhoneThatDoesNotRing(t *testing.T) {
	for name, c := range map[string]struct{ body, says string }{
		"digested":       {`{"v":1,"outcome":"digested"}`, "in a month"},
		"suppressed":     {`{"v":1,"outcome":"suppressed"}`, "treats it as a repetition"},
		"coalesced":      {`{"v":1,"outcome":"coalesced"}`, "treats it as a repetition"},
		"does not say":   {`{"v":1}`, "does not say what becomes of it"},
		"says otherwise": {`thank you`, "does not say what becomes of it"},
	} {
		t.Run(name, func(t *testing.T) {
			setup := newSetup(t)
			setup.relay.Script(1, relaytest.Answer{})
			setup.relay.Script(1, relaytest.Answer{Status: 202, Body: c.body})
			args := []string{"-page", "-relay-url", setup.relay.URL, "-registry", setup.registry}
			expectDoctor(t, 0, []string{"warn  phone", c.says}, args...)
			setup.relay.Script(1, relaytest.Answer{})
			setup.relay.Script(1, relaytest.Answer{Status: 202, Body: c.body})
			if out, _ := doctor(t, args...); strings.Contains(out, "should be on the phone") {
				t.Errorf("it promises a ring:\n%s", out)
			}
		})
	}
}

// What takes anything is no relay, and need not learn whom it could page.
func TestOtherServerIsNotPaged(t *testing.T) {
	setup := newSetup(t)
	setup.relay.Script(relaytest.Always, relaytest.Answer{Status: 200, Body: `{"v":1,"outcome":"forwarded"}`})
	expectDoctor(t, 1, []string{"some other server", "nobody was paged"}, "-page", "-relay-url", setup.relay.URL, "-registry", setup.registry)
	if n := setup.relay.Stats().Requests; n != 1 {
		t.Errorf("%d requests, want the check's alone", n)
	}
}

func TestRelayAtAnotherPath(t *testing.T) {
	relay := relaytest.NewUnstartedRelay()
	defer relay.Close()
	mux := http.NewServeMux()
	mux.Handle("/relay", http.StripPrefix("/relay", relay))
	mux.Handle("/bridge/", http.NotFoundHandler()) // to which /bridge is redirected
	server := httptest.NewServer(mux)
	defer server.Close()
	expectDoctor(t, 1, []string{"FAIL  answers 307", "at another path", "Set the relay's URL to " + server.URL + "/relay.\n"}, "-relay-url", server.URL+"/bridge")
	expectDoctor(t, 1, []string{"FAIL  answers 404", "at another path", "Set the relay's URL to " + server.URL + "/relay.\n"}, "-relay-url", server.URL)
	withPassword := strings.Replace(server.URL, "//", "//operator:hunter2@", 1)
	out, _ := doctor(t, "-relay-url", withPassword+"/push")
	if !strings.Contains(out, "Set the relay's URL to "+server.URL+"/relay, with the credentials") || strings.Contains(out, "hunter2") {
		t.Errorf("it says\n%s", out)
	}
}

// -relay-url $RELAY_URL, of a variable that is not set, must not look like a good run.
func TestEmptyFlags(t *testing.T) {
	for _, name := range []string{"-relay-url", "-registry", "-bridge"} {
		expectDoctor(t, exitUsage, []string{name + " is empty"}, name, "")
	}
}
