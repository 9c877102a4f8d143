package browsertest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
)

const unreadable = "A message that this phone cannot read"

// changed is a message with one of its members set to something else.
func changed(t *testing.T, message []byte, member string, value any) []byte {
	t.Helper()
	var members map[string]any
	if err := json.Unmarshal(message, &members); err != nil {
		t.Fatal(err)
	}
	members[member] = value
	text, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A box that does not open is said to be one: a browser takes the permission from a page that shows nothing.
func TestTamperedBox(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	d := newDaemon(t, s, p)
	message := d.page(failure("nightly-backup"))
	var members struct{ Ciphertext string }
	if err := json.Unmarshal(message, &members); err != nil {
		t.Fatal(err)
	}
	box := []byte(members.Ciphertext)
	if box[100]++; box[100] > 'y' {
		box[100] = 'A'
	}
	p.push(changed(t, message, "ciphertext", string(box)))
	shown := p.notified(1)[0]
	if shown.Title != unreadable || !strings.Contains(shown.Body, "cannot open the sealed box") {
		t.Errorf("shows %+v", shown)
	}
	p.says("list", unreadable)
	p.picture("tampered")

	p.push(message) // which nobody has changed
	p.notified(2)
	p.says("list", "nightly-backup failed")
}

// What a relay can push that is no alert for this phone: each is said, all under one notification and one entry.
func TestWhatIsNoMessage(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	d := newDaemon(t, s, p)
	message := d.page(failure("nightly-backup"))
	stranger, err := seal.Seal(seal.GenerateKey().Public(), []byte("hello"))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		message []byte
		why     string
	}{
		{"nothing", nil, "not what a relay sends"},
		{"a word", []byte("hello"), "not what a relay sends"},
		{"null", []byte("null"), "not what a relay sends"},
		{"a list", []byte("[]"), "not what a relay sends"},
		{"a page", []byte("<!doctype html><script>alert(1)</script>"), "not what a relay sends"},
		{"too much", bytes.Repeat([]byte(" "), 5000), "5000 bytes"},
		{"another version", changed(t, message, "v", 2), "another version"},
		{"no box", []byte(`{"v":1}`), "no box"},
		{"a box that is a number", changed(t, message, "ciphertext", 1), "no box"},
		{"another suite", changed(t, message, "suite", "xwing"), "sealed under suite"},
		{"an unknown suite", changed(t, message, "suite", "<b>x</b>"), "sealed under suite"},
		{"a suite that is a list", changed(t, message, "suite", []string{"x25519"}), "names no suite"},
		{"a stranger's box", changed(t, message, "ciphertext", stranger), "cannot open"},
		{"no base64", changed(t, message, "ciphertext", "%%%"), "cannot open"},
	} {
		p.push(test.message)
		if shown := p.notified(1)[0]; shown.Title != unreadable || !strings.Contains(shown.Body, test.why) {
			t.Errorf("%s: shows %+v", test.name, shown)
		}
	}
	p.says("list", "14 so far")
	if n := eval[int](p.tab, `store.alerts().then((all) => all.length)`); n != 1 {
		t.Errorf("keeps %d entries", n)
	}
}

// A relay can deliver an alert again, and cannot make a second one of it.
func TestReplay(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	d := newDaemon(t, s, p)
	message := d.page(failure("nightly-backup"))
	p.push(message)
	first := p.notified(1)[0]
	other := changed(t, message, "collapseId", strings.Repeat("ab", 16))
	for i, again := range [][]byte{message, other, changed(t, message, "priority", "passive")} {
		p.push(again)
		shown := p.notified(1)[0]
		if shown.Title != "Again: nightly-backup failed on db1" || shown.Tag != first.Tag || !shown.Data.Repeated {
			t.Errorf("replay %d shows %+v", i, shown)
		}
		if shown.Silent == nil || !*shown.Silent {
			t.Errorf("replay %d makes a sound", i)
		}
	}
	p.says("list", "Delivered 4 times")
	if n := eval[int](p.tab, `document.querySelectorAll("#list > li").length`); n != 1 {
		t.Errorf("lists %d alerts", n)
	}
	p.picture("replay")
	t.Run("nor when the list was cleared", func(t *testing.T) {
		p.click("clear")
		p.visible("none")
		p.push(message)
		if shown := p.notified(1)[0]; shown.Title != "Again: nightly-backup failed on db1" {
			t.Errorf("shows %+v", shown)
		}
	})
}

var flood = flag.Int("flood", 220, "how `many` alerts, and as many messages that are none, TestMany pushes")

// The phone keeps a bounded number of alerts, however many come, and rubbish takes no room from them.
func TestMany(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	request, err := pairing.ParseRequest(strings.NewReader(p.request()))
	if err != nil {
		t.Fatal(err)
	}
	job := func(i int) string { return fmt.Sprintf("job-%d", i) }
	const batch = 50 // at once
	var messages [][]byte
	for i := range *flood {
		alert := payload.NewFailure("db1", job(i))
		plaintext, err := alert.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		box, err := seal.Seal(request.PublicKey, plaintext)
		if err != nil {
			t.Fatal(err)
		}
		message, err := json.Marshal(map[string]any{"v": 1, "suite": "x25519", "ciphertext": box, "collapseId": fmt.Sprintf("%032x", i%20), "priority": "passive"})
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, message, []byte("rubbish"))
	}
	for some := range slices.Chunk(messages, batch) {
		p.push(some...)
	}
	if n := len(p.notifications()); n != 21 {
		t.Errorf("shows %d notifications of 20 collapse ids and of rubbish", n)
	}
	kept := eval[[]string](p.tab, `store.alerts().then((all) => all.map((r) => r.alert?.name ?? "rubbish"))`)
	if len(kept) != 200 || kept[0] != "rubbish" || kept[1] != job(*flood-1) || kept[199] != job(*flood-199) {
		t.Errorf("keeps %d: %v", len(kept), kept)
	}
	p.says("list", fmt.Sprint(*flood, " so far"))
	p.click("more")
	p.await(`document.querySelectorAll("#list > li").length === 200`)
}

// What an alert says is text, whatever it looks like.
func TestMarkupIsText(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	d := newDaemon(t, s, p)
	alert := failure("<img src=x onerror=alert(1)>\u202egpj.exe")
	alert.LogTail = []string{"<script>document.title='owned'</script>", "\x1b[31mred\x1b[0m", strings.Repeat("long", 300)}
	p.push(d.page(alert))
	p.says("list", "<img src=x onerror=alert(1)>")
	p.says("list", "<script>document.title='owned'</script>")
	if n := eval[int](p.tab, `document.querySelectorAll("#list img, #list script").length`); n != 0 {
		t.Errorf("the alert has become %d elements", n)
	}
	if shown := p.notified(1)[0]; strings.ContainsAny(shown.Title+shown.Body, "\u202e\x1b") || !strings.HasPrefix(shown.Title, "<img") {
		t.Errorf("shows %+v", shown)
	}
	p.picture("markup")
}

// A kind and a check that no version knows are shown as they stand, also when JavaScript has a meaning for them.
func TestWordsOfTheLanguage(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	request, err := pairing.ParseRequest(strings.NewReader(p.request()))
	if err != nil {
		t.Fatal(err)
	}
	for i, test := range []struct{ kind, check, title string }{
		{"constructor", "", "nightly: constructor on db1"},
		{"__proto__", "", "nightly: __proto__ on db1"},
		{"sla", "toString", "nightly: toString on db1"},
		{"sla", "", "nightly: service level on db1"},
	} {
		plaintext := fmt.Sprintf(`{"v":1,"kind":%q,"name":"nightly","success":false,"host":"db1","ts":%q,"sla_check":%q}`,
			test.kind, time.Now().UTC().Format(time.RFC3339), test.check)
		box, err := seal.Seal(request.PublicKey, []byte(plaintext))
		if err != nil {
			t.Fatal(err)
		}
		message, err := json.Marshal(map[string]any{"v": 1, "suite": "x25519", "ciphertext": box, "collapseId": strings.Repeat("0", 32), "priority": "passive"})
		if err != nil {
			t.Fatal(err)
		}
		p.push(message)
		if shown := p.notified(1)[0]; shown.Title != test.title {
			t.Errorf("%d: shows %+v", i, shown)
		}
	}
	if list := eval[string](p.tab, `document.getElementById("list").innerText`); strings.Contains(list, "function") || strings.Contains(list, "object") {
		t.Errorf("lists %s", list)
	}
}

// The message that a relay sends over its quota is no alert, and cannot say anything.
func TestDigest(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	p.push([]byte(`{"v":1,"collapseId":"digest","priority":"passive","kind":"digest","title":"Call this number"}`))
	if shown := p.notified(1)[0]; shown.Title != "More alerts than the relay forwards" || strings.Contains(shown.Body, "number") {
		t.Errorf("shows %+v", shown)
	}
	p.says("list", "This month's alerts are used up")
}

func TestLinkThatIsNone(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	encode := func(document string) string { return s.URL + "/phone#" + base64url(document) }
	key := seal.GenerateKey().Public().String()
	for _, test := range []struct{ name, link, says string }{
		{"nothing", "", "Paste a pairing link first"},
		{"a word", "hello world", "no pairing link"},
		{"an address", "https://example.com/", "no pairing link"},
		{"markup", "<script>alert(1)</script>", "no pairing link"},
		{"JSON that is none", `{"v":1`, "no pairing link"},
		{"base64 of no text", s.URL + "/phone#____", "no pairing link"},
		{"another version", encode(`{"v":2,"name":"d","url":"https://d.example"}`), "another version"},
		{"nothing in it", encode(`{"v":1,"name":"d"}`), "no pairing link"},
		{"null", encode(`null`), "no pairing link"},
		{"a list", encode(`[]`), "no pairing link"},
		{"a short mailbox", encode(`{"v":1,"name":"d","mailbox":"ab","key":"` + key + `"}`), "no pairing link"},
		{"a path as mailbox", encode(`{"v":1,"name":"d","mailbox":"../../subscriptions/aaaaaaaaaaaaaaa","key":"` + key + `"}`), "no pairing link"},
		{"no key", encode(`{"v":1,"name":"d","mailbox":"` + strings.Repeat("ab", 16) + `"}`), "no pairing link"},
		{"a relay in clear", encode(`{"v":1,"name":"d","relay":"http://relay.example","mailbox":"` + strings.Repeat("ab", 16) + `","key":"` + key + `"}`), "over https"},
		{"a script as address", encode(`{"v":1,"name":"d","url":"javascript:alert(1)","token":""}`), "no web address"},
		{"a file as address", encode(`{"v":1,"name":"d","url":"file:///etc/passwd","token":""}`), "no web address"},
		{"a token with a line break", encode(`{"v":1,"name":"d","url":"https://d.example","token":"a\nb"}`), "no pairing link"},
		{"too long", encode(`{"v":1,"name":"` + strings.Repeat("d", 9000) + `","url":"https://d.example","token":""}`), "too long"},
		{"an invitation", encode(`{"v":1,"invitation":"` + invitation + `"}`), "set up already"},
	} {
		p.fill("link", test.link)
		p.clickOn("#pair-form .main")
		p.says("link-error", test.says)
		if eval[bool](p.tab, `document.getElementById("asked").checkVisibility()`) {
			t.Errorf("%s: is offered", test.name)
		}
	}
	p.picture("no-link")
	t.Run("in the address", func(t *testing.T) {
		p.open(s.URL + "/phone/#rubbish!")
		p.says("error", "no pairing link")
		if hash := eval[string](p.tab, `location.href`); strings.Contains(hash, "rubbish") {
			t.Errorf("the address stays %s", hash)
		}
	})
}

// What stands where a daemon should.
func TestDaemonThatIsNone(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	for _, test := range []struct {
		name    string
		handler http.HandlerFunc
		says    string
	}{
		{"a web page", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.Write([]byte("<h1>It works!</h1>"))
		}, "with a web page where a pairing API was expected"},
		{"a page that is not found", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(404)
			w.Write([]byte("<h1>Not found</h1>"))
		}, "answered 404 with a web page"},
		{"without end", func(w http.ResponseWriter, r *http.Request) {
			for range 1000 {
				if _, err := w.Write(bytes.Repeat([]byte("x"), 4096)); err != nil {
					return
				}
			}
		}, "too long"},
		{"JSON of something else", func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(`{"hello":"world"}`)) }, "is no pairing API"},
		{"another key", func(w http.ResponseWriter, r *http.Request) {
			w.Write([]byte(`{"device":{"id":"1","fingerprint":"0000-0000-0000"},"created":true}`))
		}, "another fingerprint than this phone"},
		{"a wrong token", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(401)
			w.Write([]byte(`{"error":"no"}`))
		}, "does not know this link's token"},
		{"a refusal with markup", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(400)
			w.Write([]byte(`{"error":"<b>name</b> must be shorter"}`))
		}, "<b>name</b> must be shorter"},
		{"a redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, s.URL+"/subscriptions", http.StatusTemporaryRedirect)
		}, "could not be reached"},
		{"nobody", nil, "could not be reached"},
	} {
		daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Access-Control-Allow-Origin", s.URL)
			w.Header().Set("Access-Control-Allow-Headers", "Authorization, Content-Type")
			if r.Method != http.MethodOptions {
				test.handler(w, r)
			}
		}))
		if test.handler == nil {
			daemon.Close()
		}
		link := pairing.Link{Name: "not a daemon", URL: daemon.URL}
		p.fill("link", link.JSON())
		p.clickOn("#pair-form .main")
		p.says("asked", "not a daemon")
		p.click("asked-yes")
		p.says("error", test.says)
		p.hidden("waiting")
		p.says("own-daemons", "no daemon")
		if test.name == "a web page" {
			p.picture("no-daemon")
		}
		p.click("asked-no")
		daemon.Close()
	}
}
