package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sealpush/sealpush/examples/programtest"
	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/seal"
)

// mailFixture is a relay with mailboxes; in between, a test can lie.
type mailFixture struct {
	pairFixture
	mailboxes *relay.Mailboxes
	between   atomic.Pointer[func(next http.Handler, w http.ResponseWriter, r *http.Request)] // nil for nobody
}

func newMailFixture(t *testing.T) *mailFixture {
	t.Helper()
	f := &mailFixture{pairFixture: newPairFixture(t)}
	var err error
	if f.mailboxes, err = relay.NewMailboxes(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.mailboxes.Close) // before the server, which waits for its requests
	served := f.server.Config.Handler.(*http.ServeMux)
	served.HandleFunc("/mailboxes/", func(w http.ResponseWriter, r *http.Request) {
		if between := f.between.Load(); between != nil {
			(*between)(f.mailboxes, w, r)
			return
		}
		f.mailboxes.ServeHTTP(w, r)
	})
	return f
}

func (f *mailFixture) lie(between func(next http.Handler, w http.ResponseWriter, r *http.Request)) {
	f.between.Store(&between)
}

// pair starts the command as people do.
func (f *mailFixture) pair(t *testing.T, args ...string) (pair *programtest.Program, typed io.WriteCloser, process *os.Process) {
	t.Helper()
	cmd := tool(t, append([]string{"pair", "-relay-url", f.server.URL + "/relay", "-registry", f.registry, "-host", "db1"}, args...)...)
	typed, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pair = programtest.Start(t, cmd)
	return pair, typed, cmd.Process
}

// A webPhone does what the page does, by the protocol's text rather than by package pairing.
type webPhone struct {
	*relaytest.Phone
	key  seal.PrivateKey
	link struct {
		V                                     int
		Name, Mailbox, Key, Relay, Invitation string
	}
	origin string // of the mailboxes
}

// openPage reads the fragment of a link.
func openPage(t *testing.T, link string, suite seal.Suite) *webPhone {
	t.Helper()
	p := &webPhone{key: suite.GenerateKey()}
	p.Phone = relaytest.NewPhone(relaytest.WithPrivateKey(p.key))
	page, fragment, _ := strings.Cut(link, "/phone#")
	document, err := base64.RawURLEncoding.DecodeString(fragment)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(document, &p.link); err != nil || p.link.V != 1 {
		t.Fatalf("the link holds %s: %v", document, err)
	}
	if p.origin = p.link.Relay; p.origin == "" {
		p.origin = page
	}
	return p
}

// request is the phone's pairing request.
func (p *webPhone) request() string {
	return fmt.Sprintf(`{"name":"pocket","platform":"web","publicKey":%q,"suite":%q,"pushToken":%q}`, p.PublicKey(), p.PublicKey().Suite(), p.PushToken())
}

// sealed is a text that only the program behind the link can open.
func (p *webPhone) sealed(t *testing.T, text string) string {
	t.Helper()
	key, err := seal.ParsePublicKey(p.link.Key)
	if err != nil {
		t.Fatal(err)
	}
	box, err := seal.Seal(key, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return box
}

// do is one request to the mailbox.
func (p *webPhone) do(t *testing.T, method, part, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, p.origin+"/mailboxes/"+p.link.Mailbox+part, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func (p *webPhone) leave(t *testing.T, body string, want int) {
	t.Helper()
	if status, text := p.do(t, "PUT", "/request", body); status != want {
		t.Fatalf("leaving a request: %d %s, want %d", status, text, want)
	}
}

// answer waits for the answer and opens it.
func (p *webPhone) answer(t *testing.T) (said mailboxAnswer) {
	t.Helper()
	status, text := p.do(t, "GET", "/answer", "")
	if status != 200 {
		t.Fatalf("the answer: %d %s", status, text)
	}
	plaintext, err := seal.Open(p.key, text)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(plaintext, &said); err != nil || said.V != 1 || said.Name != "db1" || said.Mailbox != p.link.Mailbox {
		t.Errorf("the answer is %s: %v", plaintext, err)
	}
	return said
}

func TestPairThroughTheRelay(t *testing.T) {
	for _, suite := range seal.Suites() {
		t.Run(string(suite), func(t *testing.T) {
			f := newMailFixture(t)
			var mu sync.Mutex
			var seen []string // by the relay
			f.lie(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				mu.Lock()
				seen = append(seen, r.URL.String()+string(body))
				mu.Unlock()
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				next.ServeHTTP(w, r)
			})
			pair, typed, _ := f.pair(t, "-invitation", "come-in")
			address := link(t, pair)
			if !strings.HasPrefix(address, f.server.URL+"/phone#") {
				t.Fatalf("the link is %s", address)
			}
			pair.Await(t, "Only a browser on this machine can open it: "+regexp.QuoteMeta(f.server.URL))
			phone := openPage(t, address, suite)
			if phone.link.Name != "db1" || phone.link.Invitation != "come-in" || phone.link.Relay != "" {
				t.Errorf("the link holds %+v", phone.link)
			}
			phone.leave(t, phone.sealed(t, phone.request()), 204)
			pair.Await(t, `(?s)^Phone +pocket \(web\)\nFingerprint  `+phone.PublicKey().Fingerprint()+`\n.*Type yes`)
			if devices := f.devices(t); len(devices) != 0 {
				t.Errorf("%v is paired before the fingerprint is confirmed", devices)
			}
			typeLine(t, typed, "yes")
			if said := phone.answer(t); !said.Paired || said.Error != "" {
				t.Errorf("the phone is told %+v", said)
			}
			if code := pair.ExitCode(t); code != 0 {
				t.Errorf("exit code %d:\n%s", code, pair.Output())
			}
			devices := f.devices(t)
			if len(devices) != 1 || devices[0].Name != "pocket" || devices[0].PublicKey != phone.PublicKey() || devices[0].CreatedBy != pairedBy {
				t.Errorf("the registry has %v", devices)
			}
			if received, err := phone.Received(f.relay); err != nil || len(received) != 1 {
				t.Errorf("the phone received %v, %v", received, err)
			}
			phone.answer(t) // which was lost on its way, say
			phone.leave(t, phone.sealed(t, phone.request()), 409)
			mu.Lock()
			defer mu.Unlock()
			for _, text := range seen {
				for _, secret := range []string{phone.PushToken(), phone.PublicKey().String(), phone.link.Key, "pocket", "paired"} {
					if strings.Contains(text, secret) {
						t.Errorf("the relay sees %q in %s", secret, text)
					}
				}
			}
			if strings.Contains(pair.Output(), phone.PushToken()) {
				t.Errorf("prints the push token:\n%s", pair.Output())
			}
		})
	}
}

func TestAnythingButYesTellsThePhone(t *testing.T) {
	for name, answer := range map[string]string{"no": "no\n", "empty": "\n", "end of input": ""} {
		t.Run(name, func(t *testing.T) {
			f := newMailFixture(t)
			pair, typed, _ := f.pair(t)
			phone := openPage(t, link(t, pair), seal.X25519)
			phone.leave(t, phone.sealed(t, phone.request()), 204)
			pair.Await(t, "Type yes")
			io.WriteString(typed, answer)
			typed.Close()
			if said := phone.answer(t); said.Paired || said.Error != "the fingerprint was not confirmed on the other side" {
				t.Errorf("the phone is told %+v", said)
			}
			if code := pair.ExitCode(t); code != exitFailed {
				t.Errorf("exit code %d", code)
			}
			pair.Await(t, "so the phone is not paired: nothing is sent to it")
			if devices := f.devices(t); len(devices) != 0 || f.relay.Stats().Requests != 0 {
				t.Errorf("%d phones, %d requests to the relay", len(devices), f.relay.Stats().Requests)
			}
		})
	}
}

// Whoever has the link may be faster than the phone. The phone learns it, and so does the person, from the fingerprint.
func TestSomebodyElseFillsTheMailboxFirst(t *testing.T) {
	f := newMailFixture(t)
	pair, typed, _ := f.pair(t)
	address := link(t, pair)
	thief, phone := openPage(t, address, seal.X25519), openPage(t, address, seal.X25519)
	thief.leave(t, thief.sealed(t, thief.request()), 204)
	phone.leave(t, phone.sealed(t, phone.request()), 409)
	shown := pair.Await(t, `Fingerprint  (\S+)`)[1]
	if shown != thief.PublicKey().Fingerprint() || shown == phone.PublicKey().Fingerprint() {
		t.Errorf("shows fingerprint %s", shown)
	}
	typeLine(t, typed, "no")
	if code := pair.ExitCode(t); code != exitFailed || len(f.devices(t)) != 0 {
		t.Errorf("exit code %d, %d phones", code, len(f.devices(t)))
	}
}

// Whoever has the link learns that a phone came, and no more.
func TestSomebodyElseReadsTheMailbox(t *testing.T) {
	f := newMailFixture(t)
	pair, typed, _ := f.pair(t)
	address := link(t, pair)
	thief, phone := openPage(t, address, seal.X25519), openPage(t, address, seal.X25519)
	phone.leave(t, phone.sealed(t, phone.request()), 204)
	for method, part := range map[string]string{"GET": "/request", "PUT": "/answer", "DELETE": ""} {
		if status, body := thief.do(t, method, part, ""); status != 401 {
			t.Errorf("%s %s by somebody else: %d %s", method, part, status, body)
		}
	}
	pair.Await(t, "Type yes")
	typeLine(t, typed, "yes")
	status, box := thief.do(t, "GET", "/answer", "")
	if plaintext, err := seal.Open(thief.key, box); status != 200 || err == nil {
		t.Errorf("somebody else reads %d %s", status, plaintext)
	}
	if said := phone.answer(t); !said.Paired {
		t.Errorf("the phone is told %+v", said)
	}
	if code := pair.ExitCode(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, pair.Output())
	}
}

func TestWhatIsNotAPairingRequest(t *testing.T) {
	for name, c := range map[string]struct {
		message func(t *testing.T, p *webPhone) string
		want    string
	}{
		"garbage": {func(*testing.T, *webPhone) string { return "Z2FyYmFnZQ==" }, "what came is not sealed to this link"},
		"sealed to another key": {func(t *testing.T, p *webPhone) string {
			other := *p
			other.link.Key = seal.GenerateKey().Public().String()
			return other.sealed(t, p.request())
		}, "what came is not sealed to this link"},
		"changed by the relay": {func(t *testing.T, p *webPhone) string {
			box := []byte(p.sealed(t, p.request()))
			if box[100] != 'A' {
				box[100] = 'A'
			} else {
				box[100] = 'B'
			}
			return string(box)
		}, "what came is not sealed to this link"},
		"no JSON":       {func(t *testing.T, p *webPhone) string { return p.sealed(t, "hello") }, "is no pairing request: pairing: body must be a JSON object"},
		"without name":  {func(t *testing.T, p *webPhone) string { return p.sealed(t, `{"platform":"web"}`) }, "name must be a non-empty string"},
		"without token": {func(t *testing.T, p *webPhone) string { return p.sealed(t, `{"name":"n","platform":"web"}`) }, "pushToken must be"},
		"a key of low order": {func(t *testing.T, p *webPhone) string {
			return p.sealed(t, strings.Replace(p.request(), p.PublicKey().String(), strings.Repeat("A", 43)+"=", 1))
		}, "publicKey must be"},
		"another suite": {func(t *testing.T, p *webPhone) string {
			return p.sealed(t, strings.Replace(p.request(), `"x25519"`, `"rot13"`, 1))
		}, "suite must be"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newMailFixture(t)
			pair, _, _ := f.pair(t)
			phone := openPage(t, link(t, pair), seal.X25519)
			phone.leave(t, c.message(t, phone), 204)
			if code := pair.ExitCode(t); code != exitFailed || len(f.devices(t)) != 0 {
				t.Errorf("exit code %d, %d phones", code, len(f.devices(t)))
			}
			pair.Await(t, regexp.QuoteMeta(c.want))
			pair.Await(t, "Nothing is paired")
			if status, _ := phone.do(t, "GET", "/answer", ""); status != 404 {
				t.Errorf("the phone that waits is answered %d", status)
			}
		})
	}
}

// A relay can keep a phone from being paired. It cannot pair another one, and what it does is said.
func TestPairWithARelayThatLies(t *testing.T) {
	write := func(status int, body string) func(http.Handler, http.ResponseWriter, *http.Request) {
		return func(next http.Handler, w http.ResponseWriter, r *http.Request) {
			if r.Method == "GET" {
				w.WriteHeader(status)
				io.WriteString(w, body)
				return
			}
			next.ServeHTTP(w, r)
		}
	}
	for name, c := range map[string]struct {
		between func(http.Handler, http.ResponseWriter, *http.Request)
		want    string
	}{
		"a page":              {write(200, "<html>Welcome</html>"), "what came is not sealed to this link"},
		"nothing":             {write(200, ""), "what came is not sealed to this link"},
		"without end":         {write(200, strings.Repeat("A", 1<<20)), "what came is not sealed to this link"},
		"no such mailbox":     {write(404, ""), "the mailbox is gone: its ten minutes are over, or the relay was restarted"},
		"not the opener's":    {write(401, `{"error":"this \u001b[2J is not yours"}`), "does not hand over what is in the mailbox: the relay answered 401: this \ufffd"},
		"sent somewhere else": {write(302, ""), "the relay answered 302 Found"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newMailFixture(t)
			f.lie(c.between)
			pair, _, _ := f.pair(t)
			if code := pair.ExitCode(t); code != exitFailed || len(f.devices(t)) != 0 {
				t.Errorf("exit code %d, %d phones", code, len(f.devices(t)))
			}
			pair.Await(t, regexp.QuoteMeta(c.want))
			if strings.Contains(pair.Output(), "\x1b") {
				t.Errorf("prints control characters:\n%q", pair.Output())
			}
		})
	}
}

// A relay that is away for a moment is waited for.
func TestPairOutlastsTheRelaysFailures(t *testing.T) {
	f := newMailFixture(t)
	var polls atomic.Int32
	f.lie(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		if r.Method == "GET" && strings.HasSuffix(r.URL.Path, "/request") && polls.Add(1) == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(502)
			return
		}
		next.ServeHTTP(w, r)
	})
	pair, typed, _ := f.pair(t)
	phone := openPage(t, link(t, pair), seal.X25519)
	pair.Await(t, "Still waiting, but the relay answered 502 Bad Gateway")
	phone.leave(t, phone.sealed(t, phone.request()), 204)
	pair.Await(t, "Type yes")
	typeLine(t, typed, "yes")
	if code := pair.ExitCode(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, pair.Output())
	}
}

// A phone that cannot be told is paired all the same, since its fingerprint was confirmed.
func TestPairWhenTheAnswerCannotBeLeft(t *testing.T) {
	f := newMailFixture(t)
	f.lie(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/answer") {
			w.WriteHeader(500)
			return
		}
		next.ServeHTTP(w, r)
	})
	pair, typed, _ := f.pair(t)
	phone := openPage(t, link(t, pair), seal.X25519)
	phone.leave(t, phone.sealed(t, phone.request()), 204)
	pair.Await(t, "Type yes")
	typeLine(t, typed, "yes")
	if code := pair.ExitCode(t); code != 0 || len(f.devices(t)) != 1 {
		t.Errorf("exit code %d:\n%s", code, pair.Output())
	}
	pair.Await(t, "The phone could not be told, and goes on waiting: the relay answered 500")
}

func TestPairByPastedRequestWhileTheMailboxWaits(t *testing.T) {
	f := newMailFixture(t)
	pair, typed, _ := f.pair(t)
	phone := openPage(t, link(t, pair), seal.X25519)
	typeLine(t, typed, "yes")
	pair.Await(t, "This line is no pairing request: .*")
	typeLine(t, typed, phone.request())
	pair.Await(t, "Fingerprint  "+phone.PublicKey().Fingerprint())
	typeLine(t, typed, "yes")
	if code := pair.ExitCode(t); code != 0 || len(f.devices(t)) != 1 {
		t.Errorf("exit code %d:\n%s", code, pair.Output())
	}
	if status, _ := phone.do(t, "GET", "/answer", ""); status != 404 {
		t.Errorf("the mailbox is still there: %d", status)
	}
}

func TestHowThePhoneComes(t *testing.T) {
	f := newMailFixture(t)
	t.Run("to this machine, if it is asked for", func(t *testing.T) {
		pair, _, _ := f.pair(t, "-addr", "127.0.0.1:0")
		if address := link(t, pair); !strings.HasPrefix(address, f.server.URL+"/pair#") {
			t.Errorf("the link is %s", address)
		}
	})
	t.Run("to a page that is served elsewhere", func(t *testing.T) {
		pair, _, _ := f.pair(t, "-page", "https://phone.example.com")
		address := link(t, pair)
		if !strings.HasPrefix(address, "https://phone.example.com/phone#") || openPage(t, address, seal.X25519).link.Relay != f.server.URL {
			t.Errorf("the link is %s", address)
		}
	})
	t.Run("to this machine, if the relay has too many mailboxes", func(t *testing.T) {
		f.lie(func(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(503)
			io.WriteString(w, `{"error":"there are as many mailboxes as there may be"}`)
		})
		pair, _, _ := f.pair(t)
		link(t, pair)
		pair.Await(t, "The relay opens no mailbox, so the phone has to come to this machine: the relay answered 503: there are as many mailboxes")
	})
	t.Run("to this machine, if the relay knows no mailboxes", func(t *testing.T) {
		f.lie(func(_ http.Handler, w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, "<html>Welcome</html>")
		})
		pair, _, _ := f.pair(t)
		if address := link(t, pair); !strings.HasPrefix(address, f.server.URL+"/pair#") {
			t.Errorf("the link is %s", address)
		}
		expect(t, exitFailed, []string{"the relay serves no mailboxes at " + f.server.URL}, "pair", "-relay-url", f.server.URL, "-registry", f.registry,
			"-page", "https://phone.example.com")
	})
	expect(t, exitUsage, []string{"leave out -addr"}, "pair", "-relay-url", f.server.URL, "-registry", f.registry,
		"-page", "https://phone.example.com", "-addr", ":0")
	expect(t, exitUsage, []string{"-page takes"}, "pair", "-relay-url", f.server.URL, "-registry", f.registry, "-page", "phone.example.com")
}

// The key of a link to a mailbox is of X25519, which FIPS-only mode forbids.
func TestPairInFIPSOnlyMode(t *testing.T) {
	t.Setenv("GODEBUG", "fips140=only")
	f := newMailFixture(t)
	pair, _, _ := f.pair(t)
	if address := link(t, pair); !strings.HasPrefix(address, f.server.URL+"/pair#") {
		t.Errorf("the link is %s", address)
	}
	pair.Await(t, "The phone has to come to this machine, for .*FIPS-only mode")
	expect(t, exitFailed, []string{"FIPS-only mode", "xwing"}, "pair", "-relay-url", f.server.URL, "-registry", f.registry, "-page", "https://phone.example.com")
	expect(t, exitFailed, []string{"FIPS-only mode", "xwing"}, "phone", "-link", link(t, pair), "-state", t.TempDir())
}

func TestNobodyComesToTheMailbox(t *testing.T) {
	f := newMailFixture(t)
	var left atomic.Bool
	f.lie(func(next http.Handler, w http.ResponseWriter, r *http.Request) {
		if r.Method == "DELETE" {
			left.Store(true)
		}
		next.ServeHTTP(w, r)
	})
	expect(t, exitFailed, []string{"no phone came within 10ms"}, "pair", "-relay-url", f.server.URL, "-registry", f.registry, "-timeout", "10ms")
	if !left.Load() {
		t.Error("the mailbox is left behind")
	}
}

// The pairing API lets in pages of the relay's origin, which a link to it may be pasted into.
func TestPairingAPITakesTheRelaysPage(t *testing.T) {
	f := newPairFixture(t)
	pair, _, _ := f.pair(t)
	at := pair.Await(t, `"url":"([^"]+)","token":"([^"]+)"`)
	for _, tt := range []struct {
		origin string
		want   int
	}{{"https://evil.example", 403}, {"null", 403}, {f.server.URL, 201}} { // the last one ends the API
		origin, want := tt.origin, tt.want
		phone := relaytest.NewPhone()
		for _, method := range []string{"OPTIONS", "POST"} {
			req := httptest.NewRequest(method, at[1]+devicesPath, strings.NewReader(fmt.Sprintf(
				`{"name":"pocket","platform":"web","publicKey":%q,"pushToken":%q}`, phone.PublicKey(), phone.PushToken())))
			req.RequestURI = ""
			req.Header.Set("Origin", origin)
			req.Header.Set("Sec-Fetch-Site", "cross-site")
			if method == "OPTIONS" {
				req.Header.Set("Access-Control-Request-Method", "POST")
			} else {
				req.Header.Set("Authorization", "Bearer "+at[2])
			}
			resp, err := (&http.Client{Timeout: time.Minute}).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			allowed := resp.Header.Get("Access-Control-Allow-Origin")
			if method == "POST" && resp.StatusCode != want || (allowed == origin) != (want == 201) {
				t.Errorf("%s from %s: %s, allowed %q", method, origin, resp.Status, allowed)
			}
		}
	}
}
