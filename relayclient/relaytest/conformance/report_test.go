package conformance_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/relayclient/relaytest/conformance"
	"github.com/sealpush/sealpush/secret"
)

func exampleReport() conformance.Report {
	return conformance.Report{
		SealedRelay: "https://relay.example.com/",
		Duration:    3 * time.Second,
		Results: []conformance.Result{
			{Check: "accept-envelope", Part: conformance.SealedRelay, Level: conformance.Must, Verdict: conformance.Pass, Source: "relay protocol", Sentence: "One POST."},
			{Check: "status-400", Part: conformance.SealedRelay, Level: conformance.Open, Verdict: conformance.NotStated, Detail: "answered 422; want 400", Source: "fact", Sentence: "400."},
			{Check: "burst-100", Part: conformance.SealedRelay, Level: conformance.Must, Verdict: conformance.Fail, Detail: "answered 503", Source: "relay protocol", Sentence: "A burst."},
		},
	}
}

func TestReportAsText(t *testing.T) {
	var b strings.Builder
	if err := exampleReport().WriteText(&b); err != nil {
		t.Fatal(err)
	}
	want := `sealed relay https://relay.example.com/
  pass        MUST  accept-envelope
  not stated  open  status-400
              answered 422; want 400
  fail        MUST  burst-100
              answered 503
              relay protocol: "A burst."
1 passed, 1 failed, 1 not stated
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestReportAsTextTellsOfAWriterThatFails(t *testing.T) {
	if err := exampleReport().WriteText(failingWriter{}); !errors.Is(err, errDiskFull) {
		t.Errorf("got %v", err)
	}
}

var errDiskFull = errors.New("disk full")

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errDiskFull }

func TestReportAsJSON(t *testing.T) {
	encoded, err := json.Marshal(exampleReport())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"sealedRelay":"https://relay.example.com/"`, `"verdict":"not stated"`, `"level":"MUST"`, `"check":"burst-100"`, `"nanoseconds":3000000000`} {
		if !bytes.Contains(encoded, []byte(want)) {
			t.Errorf("%s is not in %s", want, encoded)
		}
	}
	var decoded conformance.Report
	if err := json.Unmarshal(encoded, &decoded); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(exampleReport(), decoded); diff != "" {
		t.Errorf("-sent +read\n%s", diff)
	}
}

func TestOnlyAMustThatFailsIsNotOK(t *testing.T) {
	report := exampleReport()
	if report.OK() {
		t.Error("OK with a check that failed")
	}
	report.Results = report.Results[:2]
	if !report.OK() {
		t.Error("not OK, though nothing failed")
	}
}

func TestPageIsUpToDate(t *testing.T) {
	const page = "../../../docs/conformance.md"
	var want bytes.Buffer
	if err := conformance.WriteMarkdown(&want); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	got = bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n")) // as git may check it out
	if !bytes.Equal(want.Bytes(), got) {
		t.Errorf("docs/conformance.md is out of date: sealpush conformance -list > docs/conformance.md")
	}
}

func TestChecksAreComplete(t *testing.T) {
	var names []string
	for _, c := range conformance.Checks() {
		if c.Name == "" || c.Sentence == "" || c.Does == "" || c.Source == "" {
			t.Errorf("%q says too little: %+v", c.Name, c)
		}
		if c.Level != conformance.Must && c.Level != conformance.Open {
			t.Errorf("%s has the level %q", c.Name, c.Level)
		}
		if slices.Contains(names, c.Name) {
			t.Errorf("two checks are called %s", c.Name)
		}
		names = append(names, c.Name)
	}
}

func TestIncompleteTargets(t *testing.T) {
	const word = "s3cr3t-pa55word"
	for name, target := range map[string]conformance.Target{
		"nothing":         {},
		"no scheme":       {URL: "relay.example.com/" + word},
		"not a URL":       {URL: "https://u:" + word + "@%"},
		"negative pace":   {URL: "https://relay.example.com", Pace: -1},
		"no credentials":  {Bridge: conformance.Bridge{TokenURL: "https://a.example", RelayURL: "https://b.example"}},
		"no token URL":    {Bridge: conformance.Bridge{RelayURL: "https://b.example", ClientID: "c", ClientSecret: secret.New(word)}},
		"bad bridge URLs": {Bridge: conformance.Bridge{TokenURL: "token", RelayURL: word, ClientID: "c", ClientSecret: secret.New(word)}},
	} {
		if _, err := conformance.Evaluate(t.Context(), target); err == nil || strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnreachableRelay(t *testing.T) {
	relay := relaytest.NewRelay()
	relay.Close()
	report, err := conformance.Evaluate(t.Context(), conformance.Target{URL: relay.URL})
	if !errors.Is(err, conformance.ErrUnreachable) || len(report.Results) != 1 || !report.OK() {
		t.Errorf("%v, %v", err, report.Results)
	}
}

// A wrong URL is not held against the relay.
func TestWrongTarget(t *testing.T) {
	for _, tt := range []struct {
		status int
		says   string
	}{
		{http.StatusFound, "redirects are not followed, correct the relay's URL"},
		{http.StatusPermanentRedirect, "redirects are not followed, correct the relay's URL"},
		{http.StatusUnauthorized, "correct the credentials in the relay's URL"},
		{http.StatusForbidden, "correct the credentials in the relay's URL"},
		{http.StatusNotFound, "nothing takes requests at this path, correct the relay's URL"},
		{http.StatusMethodNotAllowed, "nothing takes requests at this path, correct the relay's URL"},
	} {
		requests := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests++
			answer(w, tt.status, "not here")
		}))
		report, err := conformance.Evaluate(t.Context(), conformance.Target{URL: server.URL})
		server.Close()
		if !errors.Is(err, conformance.ErrUnreachable) || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), fmt.Sprint(tt.status)) {
			t.Errorf("%d: %v", tt.status, err)
		}
		if requests != 1 || len(report.Results) != 1 || !report.OK() {
			t.Errorf("%d: %d requests, %v", tt.status, requests, report.Results)
		}
	}
}

// Only the first request says something about the target: later, the same answer
// is the relay's fault.
func TestNotFoundLaterIsAFailure(t *testing.T) {
	report, err := reports(t, answersWhere(func(p *post) bool { return p.text("priority") == "passive" }, http.StatusNotFound, ""), takesAll)
	if err != nil || report.OK() {
		t.Errorf("%v, %d failed", err, report.Count(conformance.Fail))
	}
}

func TestWrongTokenService(t *testing.T) {
	service := relaytest.NewBridgeService(relaytest.WithHashRounds(1))
	defer service.Close()
	right := conformance.Bridge{TokenURL: service.TokenURL, RelayURL: service.RelayURL, ClientID: "suite", ClientSecret: service.AddClient("suite")}
	elsewhere, stranger := right, right
	elsewhere.TokenURL += "/elsewhere"
	stranger.ClientSecret = secret.New("another-secret")
	for says, bridge := range map[string]conformance.Bridge{
		"correct the token service's URL":    elsewhere,
		"correct the client's id and secret": stranger,
	} {
		report, err := conformance.Evaluate(t.Context(), conformance.Target{Bridge: bridge})
		if !errors.Is(err, conformance.ErrUnreachable) || !strings.Contains(err.Error(), says) || len(report.Results) != 1 {
			t.Errorf("%v, %v", err, report.Results)
		}
	}
}

func TestRelayThatOnlyLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		target := serveInBubble(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		}), nil)
		start := time.Now()
		report, err := conformance.Evaluate(t.Context(), target)
		if !errors.Is(err, conformance.ErrUnreachable) || !report.OK() {
			t.Errorf("%v, %v", err, report)
		}
		if waited := time.Since(start); waited != 28*time.Second { // four times, within the 30 s of MaxWait
			t.Errorf("waited for %v", waited)
		}
	})
}

func TestPacingIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewUnstartedRelay()
		t.Cleanup(relay.Close)
		calls := 0
		target := serveInBubble(t, brokenRelay{before: func(w http.ResponseWriter, p *post) bool {
			calls++ // in the first checks, which are not about a 429
			w.Header().Set("Retry-After", "2")
			return calls%3 == 0 && calls < 150 && answer(w, http.StatusTooManyRequests, "slower")
		}}.over(relay), nil)
		target.Pace = 20 * time.Millisecond
		report, err := conformance.Evaluate(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range report.Results {
			if r.Verdict == conformance.Fail {
				t.Errorf("%s: %s", r.Check, r.Detail)
			}
		}
	})
}

func TestEndOfContext(t *testing.T) {
	relay := relaytest.NewRelay()
	defer relay.Close()
	over := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bytes.Contains([]byte(r.Header.Get("User-Agent")), []byte("conformance")) && relay.Stats().Requests > 20 {
			cancel(over)
		}
		relay.ServeHTTP(w, r)
	}))
	defer server.Close()
	report, err := conformance.Evaluate(ctx, conformance.Target{URL: server.URL})
	if !errors.Is(err, over) || len(report.Results) == 0 || len(report.Results) == len(conformance.Checks()) {
		t.Errorf("%v, %d results", err, len(report.Results))
	}
}

// A relay wired to Apple's push service knows that the devices do not exist.
func TestDeadDevicesAreAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewUnstartedRelay(relaytest.WithoutPolicy())
		t.Cleanup(relay.Close)
		target := serveInBubble(t, brokenRelay{after: func(_ *post, a *httptest.ResponseRecorder) {
			if a.Code == http.StatusAccepted {
				a.Code = http.StatusGone
				a.Body = bytes.NewBufferString(`{"v":1,"error":"device token is dead","reason":"BadDeviceToken"}`)
			}
		}}.over(relay), nil)
		report, err := conformance.Evaluate(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		var unseen []string
		for _, r := range report.Results {
			if r.Verdict == conformance.Fail {
				t.Errorf("%s: %s", r.Check, r.Detail)
			}
			if r.Verdict == conformance.NotStated {
				unseen = append(unseen, r.Check)
			}
		}
		want := []string{
			"dedup-repeat", "dedup-nodes",
			"rate-limit-429", "rate-limit-retry-after", "rate-limit-per-device",
		}
		if diff := cmp.Diff(want, unseen); diff != "" {
			t.Errorf("not stated: -want +got\n%s", diff)
		}
	})
}

// The contract has no word for what became of an envelope.
func TestOutcomesInOtherWordsAreNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		relay := relaytest.NewUnstartedRelay()
		t.Cleanup(relay.Close)
		target := serveInBubble(t, brokenRelay{after: func(_ *post, a *httptest.ResponseRecorder) {
			if a.Code == http.StatusAccepted {
				a.Body = bytes.NewBufferString(`{"outcome":"queued"}`)
			}
		}}.over(relay), nil)
		report, err := conformance.Evaluate(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range report.Results {
			want := conformance.Pass
			if strings.HasPrefix(r.Check, "dedup-") || r.Check == "answer-accepted" {
				want = conformance.NotStated
			}
			if r.Verdict != want {
				t.Errorf("%s: %s, want %s: %s", r.Check, r.Verdict, want, r.Detail)
			}
		}
	})
}

// takesPlain accepts an envelope as the suite posts it to see whether any is accepted.
func takesPlain(w http.ResponseWriter, r *http.Request) bool {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	var e struct {
		V                            int
		Device, Ciphertext, Priority string
	}
	return json.Unmarshal(body, &e) == nil && r.Method == http.MethodPost && e.V == 1 && e.Priority == "time-sensitive" &&
		len(e.Device) == 64 && e.Ciphertext != "" && takes(w)
}

// A long answer is cut short, and what was wanted of it is still there to read.
func TestALongAnswerLeavesRoomForWhatWasWanted(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if takesPlain(w, r) {
			return
		}
		w.WriteHeader(http.StatusNotImplemented)
		io.WriteString(w, strings.Repeat("<p>Not implemented.</p>", 100))
	}))
	defer server.Close()
	report, err := conformance.Evaluate(t.Context(), conformance.Target{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for check, want := range map[string]string{
		"accept-passive": "want 2xx", "refuse-not-json": "want a 4xx", "status-400": "want 400", "status-405": "want 405",
		"answer-refused": `want {"v":1,"error":…}`,
	} {
		i := slices.IndexFunc(report.Results, func(r conformance.Result) bool { return r.Check == check })
		if i < 0 || !strings.Contains(report.Results[i].Detail, want) || len(report.Results[i].Detail) > 250 {
			t.Errorf("%s: %v", check, report.Results[i])
		}
	}
}

// A client in use has phones that must not ring for the suite.
func TestNoSecondPushToPhonesInUse(t *testing.T) {
	service := relaytest.NewBridgeService(relaytest.WithHashRounds(1))
	defer service.Close()
	f := newBridgeFixture(service, nil)
	registered := false
	target := f.serve(t, brokenBridge{relay: brokenRelay{before: func(_ http.ResponseWriter, p *post) bool {
		if p.URL.Path == "/push" && !registered {
			registered = true
			register(t, service, f.client, "somebody's phone")
		}
		return false
	}}})
	report, err := conformance.Evaluate(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	if !report.OK() {
		t.Error("phones in use are no failure")
	}
	if n := len(service.Pushes(f.client)); n != 1 {
		t.Errorf("pushed %d times to a phone in use", n)
	}
	if devices := service.Devices(f.client); len(devices) != 1 {
		t.Errorf("left %d devices, want the phone", len(devices))
	}
}

func register(t *testing.T, service *relaytest.BridgeService, client, device string) {
	body := fmt.Sprintf(`{"device_token":%q,"platform":"ios"}`, device)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, service.RelayURL+"/register", strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return
	}
	req.Header.Set("Authorization", "Bearer "+service.Token(client))
	res, err := http.DefaultClient.Do(req)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Errorf("%v, %v", res, err)
		return
	}
	res.Body.Close()
}

func TestNoSecretInAReport(t *testing.T) {
	const password = "pa55word-of-the-relay"
	f := newBridgeFixture(relaytest.NewBridgeService(relaytest.WithHashRounds(1)), nil)
	defer f.service.Close()
	// A server that quotes all that it is sent, and is right about nothing else.
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if takesPlain(w, r) {
			return
		}
		user, pass, _ := r.BasicAuth()
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintln(w, user, pass, r.Header, r.URL)
		io.Copy(w, io.LimitReader(r.Body, 4096))
	}))
	defer echo.Close()
	quoting := brokenRelay{after: func(p *post, a *httptest.ResponseRecorder) {
		if p.URL.Path != "/token" || accessToken(a.Body.Bytes()) == "" {
			a.Code = http.StatusTeapot
			fmt.Fprintf(a.Body, "%s %s", p.Header.Get("Authorization"), p.body)
		}
	}}
	target := f.serve(t, brokenBridge{token: quoting, relay: quoting})
	target.URL = strings.Replace(echo.URL, "http://", "http://daemon:"+password+"@", 1) + "/?key=" + password
	report, err := conformance.Evaluate(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := report.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	if report.Duration <= 0 {
		t.Error("the report took no time")
	}
	pointedAt, err := json.Marshal(target)
	if err != nil {
		t.Fatal(err)
	}
	shown := text.String() + string(encoded) + string(pointedAt) + fmt.Sprintf("%v %+v %#v %v %#v", report, report, report, target, target)
	for _, secret := range []string{password, f.secret.Reveal(), f.latest(), strings.Split(f.latest(), ".")[2]} {
		if secret == "" || strings.Contains(shown, secret) {
			t.Errorf("%.12q… is shown", secret)
		}
	}
}
