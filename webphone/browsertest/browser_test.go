package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/serviceworker"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// patience bounds what a test waits for one thing. It decides nothing unless the thing does not happen.
const patience = 30 * time.Second

// A profile is a browser of its own, with a directory of its own: what one person has.
type profile struct{ ctx context.Context }

func newProfile(t *testing.T) profile {
	t.Helper()
	return openProfile(t, t.TempDir())
}

// openProfile starts the browser over a directory. It ends with the test.
func openProfile(t *testing.T, dir string) profile {
	t.Helper()
	var failed error
	for range 3 { // on a busy machine it ends at once, now and then
		p, err := tryProfile(t, dir)
		if err == nil {
			return p
		}
		failed = err
	}
	t.Fatalf("chromium does not start: %v", failed)
	return profile{}
}

func tryProfile(t *testing.T, dir string) (profile, error) {
	opts := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.NoSandbox, // tests run as root in containers
		chromedp.DisableGPU,
		chromedp.UserDataDir(dir),
		chromedp.WindowSize(1280, 900),
		chromedp.Flag("lang", "en"),
		chromedp.Flag("use-fake-device-for-media-stream", true), // a camera
		chromedp.Flag("use-fake-ui-for-media-stream", true),
		chromedp.Flag("host-resolver-rules", "MAP phone.example 127.0.0.1"),
		chromedp.WSURLReadTimeout(time.Minute),
	)
	alloc, cancelAlloc := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel := chromedp.NewContext(alloc, chromedp.WithErrorf(t.Logf))
	// A browser lives as long as the context that it is started with, so that one must not have a deadline.
	starting := time.AfterFunc(2*time.Minute, cancelAlloc)
	err := chromedp.Do(ctx)
	starting.Stop()
	if err != nil {
		cancel()
		cancelAlloc()
		return profile{}, err
	}
	t.Cleanup(func() {
		chromedp.Cancel(ctx)
		cancel()
		cancelAlloc()
	})
	return profile{ctx}, nil
}

// allow sets what the person has answered about notifications: granted, denied or prompt.
func (p profile) allow(t *testing.T, origin string, answer browser.PermissionSetting) {
	t.Helper()
	_, err := chromedp.CallBrowser(p.ctx, browser.SetPermission, browser.SetPermissionParams{
		Permission: &browser.PermissionDescriptor{Name: "notifications"}, Setting: answer, Origin: origin,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A tab shows the page.
type tab struct {
	t       *testing.T
	ctx     context.Context
	profile profile
	origin  string

	mu           sync.Mutex
	registration serviceworker.RegistrationID
	complaints   []string // exceptions, and what the browser refused or warned of
}

// newTab opens a tab in which PushManager.subscribe returns the subscription, a JSON object as of toJSON.
func (p profile) newTab(t *testing.T, origin, subscription string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(p.ctx)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, profile: p, origin: origin}
	if err := chromedp.Listen(ctx, b.hear); err != nil {
		t.Fatal(err)
	}
	b.call(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument,
			page.AddScriptToEvaluateOnNewDocumentParams{Source: suppliedSubscription(subscription)})
		if err == nil {
			_, err = cdp.Call(ctx, target, serviceworker.Enable, cdp.Empty{})
		}
		return err
	})
	return b
}

// suppliedSubscription is a script that stands in for the browser's way to a push service, and for nothing else.
func suppliedSubscription(subscription string) string {
	return `(() => {
	if (!globalThis.PushManager || !navigator.serviceWorker) return;
	globalThis.shown = 0; // how often the worker has said that it has shown something
	navigator.serviceWorker.addEventListener("message", (event) => { if (event.data?.type === "alerts") shown++; });
	const given = ` + subscription + `;
	const made = () => ({ ...given, expirationTime: null, toJSON: () => ({ ...given, expirationTime: null }),
		unsubscribe: async () => { localStorage.removeItem("subscribed"); localStorage.removeItem("to another relay"); return true; } });
	PushManager.prototype.subscribe = async function (options) {
		if (!options.userVisibleOnly || options.applicationServerKey.length !== 65) throw new TypeError("subscribe: bad options");
		if (Notification.permission !== "granted") throw new DOMException("denied", "NotAllowedError");
		if (localStorage.getItem("to another relay")) throw new DOMException("other key", "InvalidStateError");
		if (localStorage.getItem("no push service")) throw new DOMException("Registration failed - push service error", "AbortError");
		localStorage.setItem("subscribed", "yes");
		return made();
	};
	PushManager.prototype.getSubscription = async () => localStorage.getItem("subscribed") ? made() : null;
})();`
}

func (b *tab) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch event := event.(type) {
	case *serviceworker.EventWorkerRegistrationUpdated:
		for _, r := range event.Registrations {
			if !r.IsDeleted && r.ScopeURL == b.origin+"/phone/" {
				b.registration = r.RegistrationID
			}
		}
	case *runtime.EventExceptionThrown:
		b.complaints = append(b.complaints, fmt.Sprint(event.ExceptionDetails.Text, " ", event.ExceptionDetails.Exception.Description))
	}
}

func (b *tab) call(f func(context.Context, *chromedp.Target) error) {
	b.t.Helper()
	b.do(chromedp.Func(f))
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("%v\n%s", err, b.state())
	}
}

// state is what the page shows, for a test that fails.
func (b *tab) state() string {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`document.body.innerText`))
	if err != nil {
		return err.Error()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return "the page shows:\n" + text + "\n" + strings.Join(b.complaints, "\n")
}

// open loads a URL and waits until the page has drawn itself.
func (b *tab) open(url string) {
	b.t.Helper()
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url))
	b.await(`document.documentElement.dataset.ready === "true"`)
}

// reloads waits until what is done has loaded the page anew. An expression that is evaluated meanwhile fails.
func (b *tab) reloads(do func()) {
	b.t.Helper()
	eval[bool](b, `globalThis.before = true`)
	do()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for {
		ready, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`globalThis.before === undefined && document.documentElement.dataset.ready === "true"`))
		if err == nil && ready {
			return
		}
		if ctx.Err() != nil {
			b.t.Fatalf("the page is not loaded anew: %v\n%s", err, b.state())
		}
	}
}

// eval returns the value of an expression, which may be a promise.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", expression, err, b.state())
	}
	return v
}

// await waits until an expression, which may be a promise, is true.
func (b *tab) await(expression string) {
	b.t.Helper()
	loop := `(async () => {
		const end = performance.now() + ` + fmt.Sprint(patience.Milliseconds()-5000) + `;
		while (!(await (` + expression + `))) {
			if (performance.now() > end) return false;
			await new Promise((resolve) => setTimeout(resolve, 30));
		}
		return true;
	})()`
	if !eval[bool](b, loop) {
		b.t.Fatalf("it does not come to this: %s\n%s", expression, b.state())
	}
}

// visible waits until an element of an id is shown.
func (b *tab) visible(id string) {
	b.t.Helper()
	b.await(`(() => { const e = document.getElementById("` + id + `"); return e !== null && e.checkVisibility(); })()`)
}

func (b *tab) hidden(id string) {
	b.t.Helper()
	b.await(`!document.getElementById("` + id + `")?.checkVisibility()`)
}

// text waits until an element of an id says something that contains a text.
func (b *tab) says(id, text string) {
	b.t.Helper()
	quoted, _ := json.Marshal(text)
	b.await(`document.getElementById("` + id + `").innerText.includes(` + string(quoted) + `)`)
}

func (b *tab) click(id string) {
	b.t.Helper()
	b.clickOn("#" + id)
}

// clickOn clicks the first element of a selector with the mouse, once it is there to be clicked. The page may grow between
// the look at where the element is and the click, which then hits something else: so it clicks until the element is hit.
func (b *tab) clickOn(selector string) {
	b.t.Helper()
	quoted, _ := json.Marshal(selector)
	for range 10 {
		b.await(`(() => {
			const e = document.querySelector(` + string(quoted) + `);
			if (!e?.checkVisibility() || e.disabled) return false;
			e.scrollIntoView({ block: "center", behavior: "instant" });
			const { x, y, width, height } = e.getBoundingClientRect();
			globalThis.target = [x + width / 2, y + height / 2];
			globalThis.hit = false;
			e.addEventListener("click", () => { globalThis.hit = true; }, { capture: true, once: true });
			return e.contains(document.elementFromPoint(...target));
		})()`)
		at := eval[[]float64](b, `target`)
		b.do(chromedp.MouseClickXY(at[0], at[1]))
		if b.wasHit() {
			return
		}
	}
	b.t.Fatalf("no click hits %s\n%s", selector, b.state())
}

// wasHit reports whether the last click hit its element. A page that has been left for another since then cannot say, so it
// was hit.
func (b *tab) wasHit() bool {
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	hit, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`globalThis.hit !== false`))
	return err != nil || hit
}

// fill types a text into a field, in place of what is in it.
func (b *tab) fill(id, text string) {
	b.t.Helper()
	b.visible(id)
	quoted, _ := json.Marshal(text)
	eval[bool](b, `(() => { document.getElementById("`+id+`").value = `+string(quoted)+`; return true; })()`)
}

// deliver hands the worker a message, as the browser's push service does.
func (b *tab) deliver(message []byte) {
	b.t.Helper()
	b.mu.Lock()
	registration := b.registration
	b.mu.Unlock()
	b.call(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, serviceworker.DeliverPushMessage, serviceworker.DeliverPushMessageParams{
			Origin: b.origin, RegistrationID: registration, Data: string(message),
		})
		return err
	})
}

// push delivers messages and waits until the worker has shown something for each.
//
// Nobody must ask for the notifications meanwhile: Chromium forgets one that is asked for before it is on the screen.
func (b *tab) push(messages ...[]byte) {
	b.t.Helper()
	before := eval[int](b, "shown")
	for _, message := range messages {
		b.deliver(message)
	}
	b.await(fmt.Sprintf("shown >= %d", before+len(messages)))
}

// A notification is one that the browser shows.
type notification struct {
	Title, Body, Tag string
	Silent           *bool
	Data             struct{ Stale, Repeated bool }
}

func (b *tab) notifications() []notification {
	b.t.Helper()
	return eval[[]notification](b, `navigator.serviceWorker.ready.then((r) => r.getNotifications())
		.then((all) => all.map(({title, body, tag, silent, data}) => ({title, body, tag, silent, data})))`)
}

// notified returns the notifications that are shown, of which there must be so many.
func (b *tab) notified(n int) []notification {
	b.t.Helper()
	shown := b.notifications()
	if len(shown) != n {
		b.t.Fatalf("shows %d notifications, not %d: %+v\n%s", len(shown), n, shown, b.state())
	}
	return shown
}

// stopWorker ends the worker, so that the next push starts it.
func (b *tab) stopWorker() {
	b.t.Helper()
	b.call(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, serviceworker.StopAllWorkers, cdp.Empty{})
		return err
	})
}

// inWorker runs a script in the service worker and returns its value, which may be a promise.
func inWorker[T any](b *tab, script string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	for {
		eval[bool](b, `navigator.serviceWorker.ready.then((r) => { r.active.postMessage({}); return true; })`) // starts it
		infos, err := chromedp.CallBrowser(ctx, target.GetTargets, target.GetTargetsParams{})
		if err != nil {
			b.t.Fatal(err)
		}
		for _, info := range infos.TargetInfos {
			if info.Type == "service_worker" && strings.HasPrefix(info.URL, b.origin) {
				worker, stop := chromedp.NewContext(ctx, chromedp.WithTargetID(info.TargetID))
				defer stop()
				v, err := chromedp.Run(worker, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
				if err != nil {
					b.t.Fatalf("in the worker: %v", err)
				}
				return v
			}
		}
		if ctx.Err() != nil {
			b.t.Fatal("there is no worker")
		}
	}
}

// A look is how the page is seen.
type look struct {
	width  int64
	scheme string
}

var looks = []look{{360, "light"}, {360, "dark"}, {1280, "light"}, {1280, "dark"}}

func (b *tab) see(l look) {
	b.t.Helper()
	b.call(func(ctx context.Context, target *chromedp.Target) error {
		scale := 1.0
		if l.width < 600 {
			scale = 2
		}
		_, err := cdp.Call(ctx, target, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
			Width: l.width, Height: 780, DeviceScaleFactor: scale, Mobile: l.width < 600,
		})
		if err != nil {
			return err
		}
		scheme := l.scheme
		_, err = cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}

// audit is what a page must be to be read by everybody (WCAG 2.2, levels A and AA): every control has a name, no id stands
// twice, headings leave out no level, and text has a contrast of 4.5 to 1.
const audit = `(() => {
	const wrong = [];
	const visible = (e) => e.checkVisibility({ visibilityProperty: true });
	const all = [...document.querySelectorAll("body *")].filter(visible);
	for (const e of all.filter((e) => e.matches("button, input, select, summary, a, video, [role=region], [role=group], dialog"))) {
		const by = e.getAttribute("aria-labelledby");
		const name = [e.getAttribute("aria-label"), by && document.getElementById(by)?.textContent, ...[...(e.labels ?? [])].map((l) => l.textContent),
			e.matches("button, summary, a") ? e.textContent : ""].find((t) => t?.trim());
		if (!name) wrong.push("no name: " + e.outerHTML.slice(0, 100));
	}
	const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
	for (const id of new Set(ids)) if (ids.filter((other) => other === id).length > 1) wrong.push("id twice: " + id);
	let level = 0;
	for (const h of all.filter((e) => /^H[1-6]$/.test(e.tagName))) {
		if (Number(h.tagName[1]) > level + 1) wrong.push("a heading leaves out a level: " + h.textContent);
		level = Number(h.tagName[1]);
	}
	const rgb = (color) => color.match(/[\d.]+/g).map(Number);
	const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
		.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = (e) => {
		for (; e; e = e.parentElement) {
			const color = rgb(getComputedStyle(e).backgroundColor);
			if (color.length < 4 || color[3] === 1) return color;
		}
		return [255, 255, 255];
	};
	const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let t; (t = texts.nextNode());) {
		const e = t.parentElement;
		if (t.data.trim() === "" || !visible(e) || e.closest(".hidden, :disabled, script")) continue;
		const [one, two] = [light(rgb(getComputedStyle(e).color)), light(behind(e))];
		const contrast = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
		if (contrast < 4.5) wrong.push("contrast " + contrast.toFixed(2) + ": " + t.data.trim().slice(0, 60));
	}
	return wrong;
})()`

// picture takes the state of the page in every look, where the tests were told to, and sees that it can be read.
func (b *tab) picture(name string) {
	b.t.Helper()
	for _, l := range looks {
		b.see(l)
		if over := eval[int](b, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); over > 0 {
			b.t.Errorf("%s at %d px: %d px are beyond the right edge", name, l.width, over)
		}
		for _, complaint := range eval[[]string](b, audit) {
			b.t.Errorf("%s at %d px, %s: %s", name, l.width, l.scheme, complaint)
		}
		if *screenshots == "" {
			continue
		}
		shot, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
		if err != nil {
			b.t.Fatal(err)
		}
		file := filepath.Join(*screenshots, fmt.Sprintf("%s-%d-%s.png", name, l.width, l.scheme))
		if err := os.WriteFile(file, shot, 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
	b.see(looks[2])
}

// pictureOf takes one element of the page, 1280 px wide and light, for the documents.
func (b *tab) pictureOf(id string) {
	b.t.Helper()
	if *screenshots == "" {
		return
	}
	shot, err := chromedp.Run(b.ctx, chromedp.Screenshot(chromedp.ID(id)))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*screenshots, "only-"+id+".png"), shot, 0o644); err != nil {
		b.t.Fatal(err)
	}
}
