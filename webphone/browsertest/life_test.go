package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/chromedp"

	"github.com/sealpush/sealpush/relay/webpush/webpushtest"
)

func TestOffline(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	d := newDaemon(t, s, p)
	p.push(d.page(failure("nightly-backup")))
	second := d.page(failure("second"))
	s.away.Store(true)
	p.open(s.URL + "/phone/")
	p.says("list", "nightly-backup failed")
	p.stopWorker()
	p.push(second) // what was on its way, opened by a worker that starts without a network
	p.says("list", "second failed")
	p.click("trial")
	p.says("trial-state", "opened and shown")
	p.picture("offline")
	s.away.Store(false)
	p.open(s.URL + "/phone/")
	p.hidden("silent")
}

func TestPermissionRefused(t *testing.T) {
	s := newSite(t)
	profile := newProfile(t)
	profile.allow(t, s.URL, "denied")
	p := &phone{profile.newTab(t, s.URL, subscription(t, s)), s}
	p.open(s.URL + "/phone")
	p.visible("denied")
	p.hidden("setup")
	p.picture("denied")
	t.Run("and given after all", func(t *testing.T) {
		profile.allow(t, s.URL, "granted")
		p.visible("setup")
		p.setUp()
		p.hidden("denied")
	})
	t.Run("and taken away again", func(t *testing.T) {
		profile.allow(t, s.URL, "denied")
		p.visible("denied")
		p.says("state", "Notifications are off")
	})
}

// An alert that comes while notifications are off is kept, and is no alert that cannot be read.
func TestAlertWithoutPermission(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	d := newDaemon(t, s, p)
	p.profile.allow(t, s.URL, "denied")
	p.visible("denied")
	p.deliver(d.page(failure("nightly-backup")))
	p.await(`store.alerts().then((all) => all.length === 1 && all[0].alert.name === "nightly-backup")`)
	p.click("trial")
	p.says("error", "The test failed")
	p.await(`store.alerts().then((all) => all.length === 2 && all.every((r) => r.alert))`)
}

func TestWrongInvitation(t *testing.T) {
	s := newSite(t)
	profile := newProfile(t)
	profile.allow(t, s.URL, "granted")
	p := &phone{profile.newTab(t, s.URL, subscription(t, s)), s}
	p.open(s.URL + "/phone")
	p.fill("invitation", "of-another-relay-or-of-nobody")
	p.click("setup-go")
	p.says("error", "The relay does not know this invitation")
	p.picture("wrong-invitation")
	if phone := eval[bool](p.tab, `store.phone().then((phone) => phone !== null)`); phone {
		t.Error("there is a phone all the same")
	}
	p.fill("invitation", invitation)
	p.click("setup-go")
	p.visible("pair")
	p.hidden("error")
}

// An endpoint that a relay does not let anybody name: it is the relay that refuses, and the page that says so.
func TestSubscriptionToAnInternalAddress(t *testing.T) {
	s := newSite(t)
	profile := newProfile(t)
	profile.allow(t, s.URL, "granted")
	inside := s.push.Subscribe()
	inside.Endpoint = "https://10.0.0.1/admin"
	text, err := json.Marshal(inside)
	if err != nil {
		t.Fatal(err)
	}
	p := &phone{profile.newTab(t, s.URL, string(text)), s}
	p.open(s.URL + "/phone")
	p.fill("invitation", invitation)
	p.click("setup-go")
	p.says("error", "does not know the push service")
}

// A browser that was subscribed for another relay subscribes for this one.
func TestSubscribedForAnotherRelay(t *testing.T) {
	s := newSite(t)
	profile := newProfile(t)
	profile.allow(t, s.URL, "granted")
	p := &phone{profile.newTab(t, s.URL, subscription(t, s)), s}
	p.open(s.URL + "/phone")
	eval[bool](p.tab, `(() => { localStorage.setItem("to another relay", "yes"); localStorage.setItem("subscribed", "yes"); return true; })()`)
	p.setUp()
}

func TestNoPushService(t *testing.T) {
	s := newSite(t)
	profile := newProfile(t)
	profile.allow(t, s.URL, "granted")
	p := &phone{profile.newTab(t, s.URL, subscription(t, s)), s}
	p.open(s.URL + "/phone")
	eval[bool](p.tab, `(() => { localStorage.setItem("no push service", "yes"); return true; })()`)
	p.fill("invitation", invitation)
	p.click("setup-go")
	p.says("error", "could not subscribe at its push service")
}

// Over http there is nothing that a phone needs, and the page says so.
func TestInsecurePage(t *testing.T) {
	s := newSite(t)
	profile := newProfile(t)
	origin := strings.Replace(s.URL, "127.0.0.1", "phone.example", 1)
	b := profile.newTab(t, origin, subscription(t, s))
	b.open(origin + "/phone")
	b.says("unfit", "must be served over https")
	b.hidden("setup")
	b.picture("insecure")
	if b.complaints != nil {
		t.Errorf("the page complains: %v", b.complaints)
	}
}

// On an iPhone, a page in Safari cannot be paged: one on the home screen can.
func TestIPhone(t *testing.T) {
	s := newSite(t)
	profile := newProfile(t)
	b := profile.newTab(t, s.URL, subscription(t, s))
	b.call(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetUserAgentOverride, emulation.SetUserAgentOverrideParams{
			UserAgent: "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1",
		})
		return err
	})
	b.open(s.URL + "/phone#" + base64url(`{"v":1,"invitation":"`+invitation+`"}`))
	b.says("ios", "Add to Home Screen")
	b.visible("ios-copy")
	b.hidden("setup")
	b.hidden("unfit")
	b.picture("iphone")
}

// Whoever taps the notification sees the alert.
func TestNotificationIsTapped(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	d := newDaemon(t, s, p)
	p.push(d.page(failure("first")), d.page(failure("second")))
	inWorker[bool](p.tab, `registration.getNotifications().then((all) => {
		const event = new NotificationEvent("notificationclick", { notification: all.find((n) => n.title.startsWith("first")) });
		event.waitUntil = (work) => work.catch(() => {}); // without a tap, a window may not be focused
		dispatchEvent(event);
		return true;
	})`)
	p.await(`document.querySelector("#list .shown h3")?.textContent === "first failed"`)
	if shown := p.notified(1); shown[0].Title != "second failed on db1" {
		t.Errorf("shows %+v", shown)
	}
}

func TestStorageCleared(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	d := newDaemon(t, s, p)
	message := d.page(failure("nightly-backup"))
	p.call(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, storage.ClearDataForOrigin, storage.ClearDataForOriginParams{Origin: s.URL, StorageTypes: "indexeddb"})
		return err
	})
	p.push(message)
	if shown := p.notified(1)[0]; !strings.Contains(shown.Title, "cannot read") || !strings.Contains(shown.Body, "Its key is gone") {
		t.Errorf("shows %+v", shown)
	}
	p.open(s.URL + "/phone/")
	p.visible("lost")
	p.visible("setup")
	p.picture("lost")
	p.setUp()
	p.hidden("lost")
	d.pair(p)
	p.push(message) // which was sealed to the key that is gone
	p.says("list", unreadable)
}

// quoted is a text as JavaScript has it.
func quoted(text []byte) string {
	literal, _ := json.Marshal(string(text))
	return string(literal)
}

// What a full disk, or a browser that keeps nothing, costs: not the alert.
func TestStorageFails(t *testing.T) {
	s := newSite(t)
	const full = `IDBObjectStore.prototype.add = IDBObjectStore.prototype.put = () => { throw new DOMException("The quota is used up.", "QuotaExceededError"); }`

	t.Run("while the phone is set up", func(t *testing.T) {
		profile := newProfile(t)
		profile.allow(t, s.URL, "granted")
		p := &phone{profile.newTab(t, s.URL, subscription(t, s)), s}
		p.open(s.URL + "/phone")
		eval[bool](p.tab, `(() => {
			const enroll = relay.enroll;
			relay.enroll = async (...all) => globalThis.given = await enroll(...all);
			`+full+`;
			return true;
		})()`)
		p.fill("invitation", invitation)
		p.click("setup-go")
		p.says("error", "This browser could not keep the key")
		p.visible("setup")
		if status := eval[int](p.tab, `relay.forget({ ...given, relay: location.origin }).then(() => 204, (err) => err.status)`); status != 404 {
			t.Errorf("the relay keeps a phone that there is not: %d", status)
		}
	})
	t.Run("while alerts come", func(t *testing.T) {
		p := newPhone(t, s)
		d := newDaemon(t, s, p)
		first, second := d.page(failure("first")), d.page(failure("second"))
		p.push(first)
		inWorker[bool](p.tab, `(async () => { `+full+`; await receive(`+quoted(second)+`); await receive("rubbish"); return true; })()`)
		found := false
		for _, shown := range p.notified(3) {
			found = found || shown.Title == "second failed on db1" && strings.Contains(shown.Body, "no space left")
		}
		if !found {
			t.Errorf("shows %+v", p.notifications())
		}
		if list := eval[string](p.tab, `document.getElementById("list").innerText`); !strings.Contains(list, "first failed") || strings.Contains(list, "second") {
			t.Errorf("lists %s", list)
		}
	})
}

// A browser whose storage fails, or never answers, as in some private windows and on full disks.
func TestStorageThatIsNone(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	message := newDaemon(t, s, p).page(failure("nightly-backup"))
	for _, test := range []struct{ name, open, says string }{
		{"fails", `const request = { error: new DOMException("no", "UnknownError") }; setTimeout(() => request.onerror()); return request;`, "torage of this browser cannot be used: no"},
		{"throws", `throw new DOMException("denied", "SecurityError");`, "torage of this browser cannot be used: denied"},
		{"never answers", `return {};`, "torage of this browser does not answer"},
	} {
		t.Run(test.name, func(t *testing.T) {
			broken := `
				const timer = setTimeout;
				globalThis.setTimeout = (f, ms) => timer(f, ms / 50); // so that nobody waits for it here
				IDBFactory.prototype.open = () => { ` + test.open + ` };`
			inWorker[bool](p.tab, `(async () => { `+broken+`; await receive(`+quoted(message)+`); return true; })()`)
			if shown := p.notified(1)[0]; shown.Title != unreadable || !strings.Contains(shown.Body, test.says) {
				t.Errorf("the worker shows %+v", shown)
			}
			other := p.profile.newTab(t, s.URL, "{}")
			other.call(func(ctx context.Context, target *chromedp.Target) error {
				_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: "{" + broken + "}"})
				return err
			})
			other.open(s.URL + "/phone/")
			other.says("error", test.says)
		})
	}
}

// The worker's part that opens boxes has to be loaded again, and the server takes the request and says nothing: it is
// said that there was a message.
func TestProgramThatDoesNotCome(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	d := newDaemon(t, s, p)
	first, second := d.page(failure("first")), d.page(failure("second"))
	s.stuck.Store(true)
	inWorker[bool](p.tab, `(async () => {
		for (const name of await caches.keys()) {
			const cache = await caches.open(name);
			for (const request of await cache.keys()) if (request.url.endsWith(".wasm")) await cache.delete(request);
		}
		const timeout = AbortSignal.timeout;
		AbortSignal.timeout = (ms) => timeout.call(AbortSignal, ms / 50); // so that nobody waits for it here
		const fetched = fetch;
		globalThis.fetch = (url, options) => fetched(url, { ...options, cache: "no-store" });
		await receive(`+quoted(first)+`);
		return true;
	})()`)
	if shown := p.notified(1)[0]; shown.Title != unreadable || !strings.Contains(shown.Body, "could not be loaded") {
		t.Errorf("shows %+v", shown)
	}
	s.stuck.Store(false)
	p.push(second)
	p.says("list", "second failed")
}

func TestForget(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	d := newDaemon(t, s, p)
	p.push(d.page(failure("nightly-backup")))
	p.click("forget")
	p.visible("forget-dialog")
	p.says("forget-dialog", "cannot be undone")
	p.picture("forget")
	p.clickOn("#forget-dialog [value=no]")
	p.visible("phone")
	p.click("forget")
	p.clickOn("#forget-dialog [value=yes]")
	p.visible("setup")
	p.hidden("phone")
	p.notified(0)
	if kept := eval[int](p.tab, `store.alerts().then((all) => all.length)`); kept != 0 {
		t.Errorf("keeps %d alerts", kept)
	}
	outcomes, err := d.notifier.Notify(t.Context(), failure("next"))
	if err != nil || outcomes[0].Err == nil || !strings.Contains(outcomes[0].Err.Error(), "410") {
		t.Errorf("the daemon still reaches it: %+v, %v", outcomes, err)
	}
}

// A browser that changes its address tells the relay, and the daemon knows nothing of it.
func TestSubscriptionChange(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	d := newDaemon(t, s, p)
	fresh := s.push.Subscribe()
	renewed := changeSubscription(t, p, fresh)
	if renewed != fresh.Endpoint {
		t.Errorf("keeps %q", renewed)
	}
	d.page(failure("nightly-backup"))
	messages := s.push.Messages()
	if got := messages[len(messages)-1].Endpoint; got != fresh.Endpoint {
		t.Errorf("the alert went to %s", got)
	}

	t.Run("the relay cannot be told", func(t *testing.T) {
		s.away.Store(true)
		changeSubscription(t, p, s.push.Subscribe())
		if shown := p.notified(1)[0]; shown.Title != "Alerts may not reach this phone" {
			t.Errorf("shows %+v", shown)
		}
	})
}

// changeSubscription gives the worker what a browser gives it with a new subscription, and returns the endpoint that the
// phone knows itself by then.
func changeSubscription(t *testing.T, p *phone, fresh webpushtest.Subscription) string {
	t.Helper()
	text, err := json.Marshal(fresh)
	if err != nil {
		t.Fatal(err)
	}
	inWorker[bool](p.tab, fmt.Sprintf(`(async () => {
		const given = %s;
		const event = new ExtendableEvent("pushsubscriptionchange");
		event.newSubscription = { ...given, toJSON: () => given };
		let work;
		event.waitUntil = (promise) => { work = promise; };
		dispatchEvent(event);
		await work;
		return true;
	})()`, text))
	return eval[string](p.tab, `store.endpoint()`)
}

// The relay forgot the phone, as after the loss of its database.
func TestRelayThatForgot(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	eval[bool](p.tab, `store.setEndpoint("https://push.example/old").then(() => store.phone()).then((phone) => relay.forget(phone)).then(() => true)`)
	p.open(s.URL + "/phone/")
	p.says("silent", "The relay does not know this phone any more")
	p.picture("silent")
}

// A page that is open learns that another is served from now on.
func TestNewerVersion(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	p.hidden("newer")
	s.newer.Store(true)
	eval[bool](p.tab, `navigator.serviceWorker.getRegistration().then((r) => r.update()).then(() => true)`)
	p.visible("newer")
	p.picture("newer")
	p.reloads(func() { p.click("reload") })
	p.hidden("newer")
	p.says("state", "Ready for alerts")
}

// From the push to the notification, with a worker that has to be started: reported, and no test is decided by it.
func TestColdStart(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	d := newDaemon(t, s, p)
	var cold, warm []time.Duration
	measure := func(name string) time.Duration {
		message := d.page(failure(name))
		eval[bool](p.tab, `(() => { globalThis.shownAt = 0;
			navigator.serviceWorker.addEventListener("message", () => { shownAt = Date.now(); }, { once: true }); return true; })()`)
		start := time.Now()
		p.push(message)
		return time.UnixMilli(eval[int64](p.tab, `shownAt`)).Sub(start.Truncate(time.Millisecond))
	}
	for i := range 5 {
		p.stopWorker()
		p.await(`navigator.serviceWorker.ready.then(() => true)`)
		cold = append(cold, measure(fmt.Sprintf("cold-%d", i)))
		warm = append(warm, measure(fmt.Sprintf("warm-%d", i)))
	}
	t.Logf("from the push to the notification: %v with a cold worker, %v with a warm one", cold, warm)
}

// The page asks nobody but its own origin for anything, and the browser refuses nothing of it.
func TestNoThirdParty(t *testing.T) {
	s := newSite(t)
	profile := newProfile(t)
	profile.allow(t, s.URL, "granted")
	p := &phone{profile.newTab(t, s.URL, subscription(t, s)), s}
	var urls []string
	if err := chromedp.Listen(p.ctx, func(event any) {
		if sent, ok := event.(*network.EventRequestWillBeSent); ok {
			p.mu.Lock()
			urls = append(urls, sent.Request.URL)
			p.mu.Unlock()
		}
	}); err != nil {
		t.Fatal(err)
	}
	p.open(s.URL + "/phone")
	p.setUp()
	p.click("trial")
	p.says("trial-state", "opened and shown")
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(urls) < 10 {
		t.Errorf("saw %d requests", len(urls))
	}
	for _, url := range urls {
		if !strings.HasPrefix(url, s.URL+"/") && url != "about:blank" {
			t.Errorf("asks for %s", url)
		}
	}
	if p.complaints != nil {
		t.Errorf("the browser complains: %v", p.complaints)
	}
}

// The key cannot be read out of what is stored.
func TestSeedIsNotStoredInClear(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	kept := eval[map[string]any](p.tab, `(async () => {
		const db = await new Promise((resolve) => { const r = indexedDB.open("sealpush"); r.onsuccess = () => resolve(r.result); });
		const get = db.transaction("settings").objectStore("settings").get("phone");
		const record = await new Promise((resolve) => { get.onsuccess = () => resolve(get.result); });
		const exported = await crypto.subtle.exportKey("raw", record.key).then(() => "exported", (err) => err.name);
		const { seed, secret, deviceToken } = await store.phone();
		const text = String.fromCharCode(...new Uint8Array(record.sealed)) + JSON.stringify(record);
		return { exported, extractable: record.key.extractable,
			clear: text.includes(String.fromCharCode(...seed)) || text.includes(secret) || text.includes(deviceToken), length: seed.length };
	})()`)
	if kept["exported"] != "InvalidAccessError" || kept["extractable"] != false || kept["clear"] != false || kept["length"] != 32.0 {
		t.Errorf("%v", kept)
	}
}
