package browsertest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/sealpush/sealpush/examples/programtest"
	"github.com/sealpush/sealpush/relay/webpush/webpushtest"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
	"github.com/sealpush/sealpush/webphone"
)

func base64url(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// pairTool starts sealpush pair and returns what is typed into it.
func pairTool(t *testing.T, s *site, registry string, args ...string) (*programtest.Program, io.Writer) {
	t.Helper()
	cmd := sealpush(t, append([]string{"pair", "-relay-url", s.URL + "/relay", "-registry", registry, "-host", "db1"}, args...)...)
	typed, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	return programtest.Start(t, cmd), typed
}

// startRelay runs sealpush relay -web and returns it, and the link with its invitation.
func startRelay(t *testing.T) (s *site, invitationLink string) {
	t.Helper()
	push := webpushtest.New(t)
	certificate := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(certificate, push.Certificate(), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := sealpush(t, "relay", "-web", "-addr", "127.0.0.1:0", "-state", t.TempDir(), "-show-invitation",
		"-push-service", strings.TrimPrefix(push.URL, "https://"), "-push-network", "127.0.0.0/8")
	cmd.Env = append(cmd.Env, "SSL_CERT_FILE="+certificate)
	link := programtest.Start(t, cmd).Await(t, `((http://\S+)/phone#\S+)`)
	return &site{push: push, Server: &httptest.Server{URL: link[2]}}, link[1]
}

// What somebody does who has nothing yet, with real processes: a relay, a phone, pairing, and the page of a failed command.
func TestFromNothingToTheLockScreen(t *testing.T) {
	s, invitation := startRelay(t)
	profile := newProfile(t)
	profile.allow(t, s.URL, "granted")
	p := &phone{profile.newTab(t, s.URL, subscription(t, s)), s}
	p.open(invitation)
	p.says("setup-for", "invites this phone")
	p.picture("setup-by-invitation")
	p.click("setup-go") // the link had the invitation
	p.visible("pair")
	p.await(`navigator.serviceWorker.controller !== null`)

	registry := filepath.Join(t.TempDir(), "devices.json")
	pair, typed := pairTool(t, s, registry)
	p.open(pair.Await(t, `^Link +(\S+)$`)[1])
	if address := eval[string](p.tab, `location.href`); address != s.URL+"/phone/" {
		t.Errorf("the link's secrets stay in the address: %s", address)
	}
	p.says("asked", "Pair with db1?")
	p.picture("asked")
	p.click("asked-yes")

	fingerprint := pair.Await(t, `^Fingerprint +(\S+)$`)[1]
	p.says("waiting-fingerprint", fingerprint)
	p.says("waiting-state", "Waiting for the daemon")
	p.picture("waiting")
	fmt.Fprintln(typed, "yes")
	p.says("state", "Paired with db1")
	p.says("own-daemons", "db1")
	p.hidden("waiting")
	p.hidden("asked")
	if code := pair.ExitCode(t); code != 0 {
		t.Errorf("sealpush pair ends with %d:\n%s", code, pair.Output())
	}
	p.push(s.next(t))
	if shown := p.notified(1)[0]; shown.Title != "Test alert on db1" {
		t.Errorf("shows %+v", shown)
	}

	run := programtest.Start(t, sealpush(t, "run", "-relay-url", s.URL+"/relay", "-registry", registry, "-host", "db1", "-name", "nightly-backup", "--",
		"sh", "-c", `exec >&2; echo "02:17:01 dumping 14 databases to /backup"; echo "02:17:40 customers: 1.2 GB"; echo "02:18:12 orders: 3.9 GB"
			echo "02:19:55 invoices: 0.8 GB"; echo "02:20:31 write /backup/data.tar: no space left on device"; exit 3`))
	if code := run.ExitCode(t); code != 3 {
		t.Errorf("sealpush run ends with %d:\n%s", code, run.Output())
	}
	p.push(s.next(t))
	found := false
	for _, shown := range p.notified(2) {
		found = found || shown.Title == "nightly-backup failed on db1" && strings.Contains(shown.Body, "no space left on device")
	}
	if !found {
		t.Errorf("shows %+v", p.notifications())
	}
	p.picture("lock-screen")
	p.pictureOf("compare")

	t.Run("the phone is the same after a reload", func(t *testing.T) {
		p.open(s.URL + "/phone/")
		p.says("own-fingerprint", fingerprint)
		p.says("own-daemons", "db1")
	})
}

// One code is enough: the link of sealpush pair can hold the relay's invitation, too.
func TestSetUpByThePairingLink(t *testing.T) {
	s := newSite(t)
	pair, typed := pairTool(t, s, filepath.Join(t.TempDir(), "devices.json"), "-invitation", invitation)
	profile := newProfile(t)
	profile.allow(t, s.URL, "granted")
	p := &phone{profile.newTab(t, s.URL, subscription(t, s)), s}
	p.open(pair.Await(t, `^Link +(\S+)$`)[1])
	p.says("setup-for", "db1 asks to pair with this phone")
	p.picture("setup-by-link")
	p.click("setup-go")
	p.click("asked-yes")
	p.says("waiting-fingerprint", pair.Await(t, `^Fingerprint +(\S+)$`)[1])
	fmt.Fprintln(typed, "yes")
	p.says("state", "Paired with db1")
}

// On an iPhone, the link is copied in Safari and pasted in the page on the home screen, which has no other field for it.
func TestLinkInPlaceOfTheInvitation(t *testing.T) {
	s := newSite(t)
	profile := newProfile(t)
	profile.allow(t, s.URL, "granted")
	p := &phone{profile.newTab(t, s.URL, subscription(t, s)), s}
	p.open(s.URL + "/phone/")
	paste := func(text string) {
		p.fill("invitation", text)
		eval[bool](p.tab, `document.getElementById("invitation").dispatchEvent(new InputEvent("input", { bubbles: true }))`)
	}
	key, id := seal.GenerateKey().Public().String(), strings.Repeat("ab", 16)
	for _, test := range []struct{ link, says string }{
		{s.URL + "/phone#rubbish!", "no pairing link"},
		{s.URL + "/phone", "no pairing link"},
		{s.URL + "/phone#" + base64url(fmt.Sprintf(`{"v":1,"name":"db1","mailbox":%q,"key":%q}`, id, key)), "has no invitation"},
	} {
		paste(test.link)
		p.click("setup-go")
		p.says("error", test.says)
		p.visible("setup")
	}
	paste(s.URL + "/phone#" + base64url(fmt.Sprintf(`{"v":1,"name":"db1","mailbox":%q,"key":%q,"relay":"https://relay.example","invitation":"of-another-relay"}`, id, key)))
	p.says("setup-for", "db1 asks to pair with this phone. Set it up first, at the relay relay.example.")
	paste(s.URL + "/phone#" + base64url(fmt.Sprintf(`{"v":1,"invitation":%q}`, invitation)))
	p.says("setup-for", "invites this phone")
	if value := eval[string](p.tab, `document.getElementById("invitation").value`); value != invitation {
		t.Errorf("the field has %q", value)
	}
	p.click("setup-go")
	p.visible("pair")
	p.says("state", "Ready for alerts")
}

// The owner of the daemons serves the page, and somebody else runs the relay: so whoever runs it cannot change the page.
func TestPageServedElsewhere(t *testing.T) {
	own := httptest.NewServer(webphone.Handler())
	defer own.Close()
	s := newSite(t, own.URL)
	pair, typed := pairTool(t, s, filepath.Join(t.TempDir(), "devices.json"), "-invitation", invitation, "-page", own.URL)
	profile := newProfile(t)
	profile.allow(t, own.URL, "granted")
	p := &phone{profile.newTab(t, own.URL, subscription(t, s)), s}
	p.open(pair.Await(t, `^Link +(\S+)$`)[1])
	p.says("setup-for", "db1 asks to pair with this phone. Set it up first, at the relay "+strings.TrimPrefix(s.URL, "http://")) // which gets the invitation
	p.click("setup-go")
	p.click("asked-yes")
	p.says("own-relay", strings.TrimPrefix(s.URL, "http://"))
	p.says("waiting-fingerprint", pair.Await(t, `^Fingerprint +(\S+)$`)[1])
	fmt.Fprintln(typed, "yes")
	p.says("state", "Paired with db1")
	p.push(s.next(t))
	if shown := p.notified(1)[0]; shown.Title != "Test alert on db1" {
		t.Errorf("shows %+v", shown)
	}
}

// A page that the relay's operator has not named gets nothing from it.
func TestPageOfAStranger(t *testing.T) {
	strange := httptest.NewServer(webphone.Handler())
	defer strange.Close()
	s := newSite(t)
	profile := newProfile(t)
	profile.allow(t, strange.URL, "granted")
	p := &phone{profile.newTab(t, strange.URL, subscription(t, s)), s}
	p.open(strange.URL + "/phone#" + base64url(fmt.Sprintf(`{"v":1,"invitation":%q,"relay":%q}`, invitation, s.URL)))
	p.click("setup-go")
	p.says("error", "could not be reached")
	p.visible("setup")
}

func TestFingerprintsThatDiffer(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	pair, typed := pairTool(t, s, filepath.Join(t.TempDir(), "devices.json"))
	p.open(pair.Await(t, `^Link +(\S+)$`)[1])
	p.click("asked-yes")
	pair.Await(t, `^Fingerprint +(\S+)$`)
	fmt.Fprintln(typed, "no")
	p.says("error", "The daemon did not pair this phone")
	p.hidden("waiting")
	p.says("own-daemons", "no daemon")
	p.picture("not-paired")
}

func TestPairByPaste(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	pair, typed := pairTool(t, s, filepath.Join(t.TempDir(), "devices.json"))
	pair.Await(t, "paste the phone's pairing request here")
	p.clickOn("#by-hand summary")
	p.picture("by-hand")
	line := p.request()
	if strings.Contains(line, "\n") {
		t.Errorf("the request has more than one line: %q", line)
	}
	fmt.Fprintln(typed, line)
	fingerprint := pair.Await(t, `^Fingerprint +(\S+)$`)[1]
	p.says("own-fingerprint", fingerprint)
	fmt.Fprintln(typed, "yes")
	if code := pair.ExitCode(t); code != 0 {
		t.Errorf("sealpush pair ends with %d:\n%s", code, pair.Output())
	}
	p.push(s.next(t))
	if shown := p.notified(1)[0]; shown.Title != "Test alert on db1" {
		t.Errorf("shows %+v", shown)
	}
}

// A daemon that the phone reaches, and that lets the page in.
func TestPairDirectly(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	d := newDaemon(t, s)
	api, err := pairing.Handler(d.registry, d.notifier.Test, pairing.WithOrigins(s.URL))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodOptions && r.Header.Get("Authorization") != "Bearer token-of-the-daemon" {
			w.Header().Set("Access-Control-Allow-Origin", s.URL)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		api.ServeHTTP(w, r)
	}))
	defer server.Close()
	document := fmt.Sprintf(`{"v":1,"name":"db1","url":%q,"token":"token-of-the-daemon"}`, server.URL)
	p.fill("link", "https://relay.example/pair#"+base64url(document))
	p.clickOn("#pair-form .main")
	p.says("asked", "Directly, at "+server.URL)
	p.click("asked-yes")
	p.says("state", "Paired with db1")
	p.push(d.page(failure("nightly-backup")))
	p.notified(1)
}

// mailboxOf is a daemon's mailbox that a test holds itself.
type mailboxOf struct {
	t    *testing.T
	site *site
	id   string
	key  seal.PrivateKey
}

func newMailbox(t *testing.T, s *site) *mailboxOf {
	t.Helper()
	m := &mailboxOf{t, s, strings.Repeat("0123456789abcdef", 2), seal.GenerateKey()}
	if status, _ := m.call("PUT", "", ""); status != 201 {
		t.Fatalf("the relay answers %d", status)
	}
	return m
}

func (m *mailboxOf) call(method, part, body string) (int, string) {
	m.t.Helper()
	req, err := http.NewRequestWithContext(m.t.Context(), method, m.site.URL+"/mailboxes/"+m.id+part, strings.NewReader(body))
	if err != nil {
		m.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.Repeat("secret", 5))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		m.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func (m *mailboxOf) link() string {
	return fmt.Sprintf(`{"v":1,"name":"db1","mailbox":%q,"key":%q}`, m.id, m.key.Public())
}

// request waits for the phone's.
func (m *mailboxOf) request() pairing.Request {
	m.t.Helper()
	for {
		status, box := m.call("GET", "/request", "")
		if status == 204 {
			continue
		}
		plaintext, err := seal.Open(m.key, box)
		if status != 200 || err != nil {
			m.t.Fatalf("the request: %d, %v", status, err)
		}
		request, err := pairing.ParseRequest(strings.NewReader(string(plaintext)))
		if err != nil {
			m.t.Fatal(err)
		}
		return request
	}
}

func (p *phone) openLink(link string) {
	p.t.Helper()
	p.fill("link", link)
	p.clickOn("#pair-form .main")
	p.click("asked-yes")
}

// What can be in a mailbox that is not the daemon's word.
func TestMailboxOfALiar(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	to := func(key seal.PublicKey, text string) string {
		box, err := seal.Seal(key, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return box
	}
	for _, test := range []struct {
		name   string
		answer func(own seal.PublicKey, id string) string
		says   string
	}{
		{"sealed to somebody else", func(_ seal.PublicKey, id string) string {
			return to(seal.GenerateKey().Public(), `{"v":1,"mailbox":"`+id+`","paired":true}`)
		}, "not the daemon's"},
		{"of another version", func(own seal.PublicKey, id string) string { return to(own, `{"v":2,"mailbox":"`+id+`","paired":true}`) }, "cannot be read"},
		{"without a verdict", func(own seal.PublicKey, id string) string {
			return to(own, `{"v":1,"mailbox":"`+id+`","paired":"true"}`)
		}, "cannot be read"},
		{"no", func(own seal.PublicKey, id string) string {
			return to(own, `{"v":1,"mailbox":"`+id+`","paired":false,"error":"<b>no</b>"}`)
		}, "did not pair this phone: <b>no</b>"},
		{"of an earlier pairing", func(own seal.PublicKey, _ string) string {
			return to(own, `{"v":1,"mailbox":"`+strings.Repeat("ab", 16)+`","paired":true,"name":"db1"}`)
		}, "of another pairing"},
		{"of any pairing", func(own seal.PublicKey, _ string) string { return to(own, `{"v":1,"paired":true,"name":"db1"}`) }, "of another pairing"},
	} {
		m := newMailbox(t, s)
		p.openLink(m.link())
		request := m.request()
		if status, text := m.call("PUT", "/answer", test.answer(request.PublicKey, m.id)); status != 204 {
			t.Fatalf("%s: %d %s", test.name, status, text)
		}
		p.says("error", test.says)
		p.says("own-daemons", "no daemon")
		m.call("DELETE", "", "")
		if eval[bool](p.tab, `document.getElementById("asked").checkVisibility()`) {
			p.click("asked-no")
		}
	}
	t.Run("somebody was there first", func(t *testing.T) {
		m := newMailbox(t, s)
		if status, _ := m.call("PUT", "/request", to(m.key.Public(), "mine")); status != 204 {
			t.Fatal(status)
		}
		p.openLink(m.link())
		p.says("error", "Somebody has answered this link already")
		m.call("DELETE", "", "")
	})
	t.Run("it has expired", func(t *testing.T) {
		m := newMailbox(t, s)
		m.call("DELETE", "", "")
		p.openLink(m.link())
		p.says("error", "This link has expired")
	})
	t.Run("the daemon goes away", func(t *testing.T) {
		m := newMailbox(t, s)
		p.openLink(m.link())
		m.request()
		p.visible("waiting")
		m.call("DELETE", "", "")
		p.says("error", "The daemon did not answer in time, or has stopped")
	})
	t.Run("the person stops waiting", func(t *testing.T) {
		m := newMailbox(t, s)
		p.openLink(m.link())
		m.request()
		p.click("waiting-stop")
		p.hidden("waiting")
		p.visible("asked")
		p.click("asked-no")
		p.hidden("asked")
		m.call("DELETE", "", "")
	})
	t.Run("what the relay saw of it", func(t *testing.T) {
		m := newMailbox(t, s)
		p.openLink(m.link())
		m.request()
		_, box := m.call("GET", "/request", "")
		var own struct{ PublicKey, PushToken string }
		if err := json.Unmarshal([]byte(p.request()), &own); err != nil {
			t.Fatal(err)
		}
		if raw, err := base64.StdEncoding.DecodeString(box); err != nil || strings.Contains(string(raw), own.PushToken) || strings.Contains(string(raw), own.PublicKey) {
			t.Errorf("%v: it has the phone's secrets in clear", err)
		}
	})
}

// A code that the camera sees is a link. What detects it belongs to the platform: Chromium has nothing for it on Linux, so
// the test stands in for that alone.
func TestScan(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	m := newMailbox(t, s)
	p.call(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `
			globalThis.codes = [];
			globalThis.BarcodeDetector = class {
				static async getSupportedFormats() { return ["qr_code"]; }
				async detect(video) { return video.videoWidth > 0 && codes.length ? [{ rawValue: codes.shift() }] : []; }
			};`})
		return err
	})
	p.open(s.URL + "/phone/")
	p.click("scan")
	p.visible("video")
	quoted, err := json.Marshal(s.URL + "/phone#" + base64url(m.link()))
	if err != nil {
		t.Fatal(err)
	}
	eval[bool](p.tab, `(() => { codes.push("https://example.com/menu"); return true; })()`)
	p.says("scan-state", "no pairing link")
	p.picture("scan")
	eval[bool](p.tab, `(() => { codes.push(`+string(quoted)+`); return true; })()`)
	p.says("asked", "Pair with db1?")
	p.hidden("scan-dialog")
	if eval[bool](p.tab, `document.getElementById("video").srcObject !== null`) {
		t.Error("the camera stays on")
	}
}

// A daemon of another relay can be paired, and the page says what that means.
func TestDaemonOfAnotherRelay(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	m := newMailbox(t, s)
	link := strings.TrimSuffix(m.link(), "}") + `,"relay":"https://other.example"}`
	p.fill("link", link)
	p.clickOn("#pair-form .main")
	p.says("asked-other", "set up at another relay")
	p.picture("other-relay")
	p.click("asked-no")
	p.fill("link", m.link())
	p.clickOn("#pair-form .main")
	p.visible("asked")
	p.hidden("asked-other")
}
