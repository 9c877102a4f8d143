package slogpage_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"testing/slogtest"
	"testing/synctest"
	"time"

	slogpage "github.com/sealpush/sealpush/integrations/slog"
	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relayclient"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

// A world is a relay with one paired phone, and a logger that pages it.
type world struct {
	t     *testing.T
	relay *relaytest.Relay
	phone *relaytest.Phone
	pages *slogpage.Handler
	log   *slog.Logger
	lines *bytes.Buffer
}

func newWorld(t *testing.T, opts ...slogpage.Option) *world {
	t.Helper()
	w := &world{t: t, relay: relaytest.NewRelay(relaytest.InMemory(), relaytest.WithRelay(relay.WithoutPolicy())), phone: relaytest.NewPhone(), lines: new(bytes.Buffer)}
	t.Cleanup(w.relay.Close)
	store, err := pairing.OpenFile(t.TempDir() + "/devices.json")
	if err != nil {
		t.Fatal(err)
	}
	registry, err := pairing.NewRegistry(store)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := registry.Pair(t.Context(), pairing.Request{Name: "phone", Platform: "ios", PushToken: secret.New(w.phone.PushToken()), PublicKey: w.phone.PublicKey()}, "test"); err != nil {
		t.Fatal(err)
	}
	plain := slog.NewTextHandler(w.lines, nil)
	client, err := relayclient.New(w.relay.URL, relayclient.WithHTTPClient(w.relay.Client()), relayclient.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatal(err)
	}
	notifier, err := relayclient.NewNotifier(client, registry, "node-a")
	if err != nil {
		t.Fatal(err)
	}
	if w.pages, err = slogpage.New(notifier, plain, append([]slogpage.Option{slogpage.WithName("app")}, opts...)...); err != nil {
		t.Fatal(err)
	}
	w.log = slog.New(w.pages)
	return w
}

// close ends the handler and returns what the phone shows.
func (w *world) close() []payload.Alert {
	w.t.Helper()
	if err := w.pages.Close(w.t.Context()); err != nil {
		w.t.Error(err)
	}
	received, err := w.phone.Received(w.relay)
	if err != nil {
		w.t.Error(err)
	}
	var alerts []payload.Alert
	for _, notification := range received {
		alerts = append(alerts, notification.Alert)
	}
	return alerts
}

func TestErrorsPage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.log.Warn("not yet")
		w.log.With("tenant", "blue").WithGroup("db").Error("connection lost", "attempt", 3, "error", errors.New("EOF"))
		alerts := w.close()
		if len(alerts) != 1 {
			t.Fatalf("%d pages", len(alerts))
		}
		tail := strings.Join(alerts[0].LogTail, "\n")
		if alerts[0].Name != "app" || alerts[0].Host != "node-a" || alerts[0].FailReason != "connection lost" ||
			!strings.Contains(tail, "tenant=blue db.attempt=3 db.error=EOF") || !strings.Contains(tail, "at handler_test.go:") {
			t.Errorf("the phone shows %+v", alerts[0])
		}
		if strings.Count(w.lines.String(), "\n") != 2 {
			t.Errorf("the wrapped handler got %q", w.lines)
		}
	})
}

func TestTheSameMessageCoalesces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		fail := func(message string) { w.log.Error(message) }
		for range 100 {
			fail("disk full")
		}
		w.log.Error("disk full") // from another place
		fail("disk on fire")
		time.Sleep(slogpage.DefaultInterval)
		fail("disk full")
		alerts := w.close()
		if len(alerts) != 4 {
			t.Fatalf("%d pages, want 4", len(alerts))
		}
		ids := map[string]int{}
		for _, alert := range alerts {
			ids[alert.RunID]++
		}
		if len(ids) != 3 || ids[alerts[0].RunID] != 2 {
			t.Errorf("run ids %v", ids)
		}
		if tail := strings.Join(alerts[3].LogTail, "\n"); !strings.Contains(tail, "99 more since") {
			t.Errorf("the last page does not count the others: %q", tail)
		}
	})
}

func TestLoggingNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, slogpage.WithQueue(2))
		hold := make(chan struct{})
		w.relay.Script(1, relaytest.Answer{Hold: hold})
		start := time.Now()
		for i := range 50 {
			w.log.Error("error " + strings.Repeat("x", i))
			synctest.Wait()
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("logging took %v", took)
		}
		close(hold)
		if alerts := w.close(); len(alerts) != 3 { // one under way, two in the queue
			t.Errorf("%d pages", len(alerts))
		}
		if !strings.Contains(w.lines.String(), "dropped=47") {
			t.Errorf("the log does not say what was dropped:\n%s", w.lines)
		}
	})
}

func TestWhatIsLoggedWhilePagingNeverPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.relay.Close() // every page fails, and the client logs that
		client, err := relayclient.New(w.relay.URL, relayclient.WithHTTPClient(w.relay.Client()), relayclient.WithLogger(w.log))
		if err != nil {
			t.Fatal(err)
		}
		phone := pairing.Device{ID: "phone", PushToken: secret.New(w.phone.PushToken()), PublicKey: w.phone.PublicKey()}
		client.Send(t.Context(), relayclient.Push{Alert: payload.NewTest("h")}, []pairing.Device{phone})
		client.Send(t.Context(), relayclient.Push{}, []pairing.Device{phone}) // refused, at Error
		if !strings.Contains(w.lines.String(), "level=ERROR") {
			t.Fatalf("the client logged no error: %q", w.lines)
		}
		if err := w.pages.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n := len(w.relay.Requests()); n != 0 {
			t.Errorf("%d pages about pages", n)
		}
	})
}

func TestCloseGivesUpWhenTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		hold := make(chan struct{})
		w.relay.Script(1, relaytest.Answer{Hold: hold})
		w.log.Error("disk full")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := w.pages.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		close(hold)
		if alerts := w.close(); len(alerts) != 1 {
			t.Errorf("%d pages", len(alerts))
		}
		w.log.Error("too late") // is handed on
		if !strings.Contains(w.lines.String(), "too late") {
			t.Error("a record after Close is lost")
		}
	})
}

func TestBadOptions(t *testing.T) {
	w := newWorld(t)
	defer w.close()
	if _, err := slogpage.New(nil, slog.DiscardHandler); err == nil {
		t.Error("no notifier")
	}
	for name, opt := range map[string]slogpage.Option{
		"nil": nil, "level": slogpage.WithLevel(nil), "name": slogpage.WithName(""), "long name": slogpage.WithName(strings.Repeat("x", 257)), "replace": slogpage.WithReplaceAttr(nil), "interval": slogpage.WithInterval(0), "queue": slogpage.WithQueue(0),
	} {
		if _, err := slogpage.New(&relayclient.Notifier{}, slog.DiscardHandler, opt); err == nil {
			t.Errorf("%s taken", name)
		}
	}
}

// The handler is one as log/slog asks of handlers, when what it wraps is.
func TestSlogtest(t *testing.T) {
	var out bytes.Buffer
	w := newWorld(t)
	defer w.close()
	handler, err := slogpage.New(&relayclient.Notifier{}, slog.NewJSONHandler(&out, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer handler.Close(t.Context())
	err = slogtest.TestHandler(handler, func() []map[string]any {
		var records []map[string]any
		for line := range bytes.Lines(out.Bytes()) {
			var record map[string]any
			if err := json.Unmarshal(line, &record); err != nil {
				t.Fatal(err)
			}
			records = append(records, record)
		}
		return records
	})
	if err != nil {
		t.Error(err)
	}
}

// A chatty value logs an error while it is written.
type chatty struct{ log *slog.Logger }

func (c chatty) LogValue() slog.Value {
	c.log.Error("the session is gone")
	return slog.StringValue("unknown")
}

type broken struct{}

func (broken) LogValue() slog.Value { panic("no such user") }

type unwritable struct{}

func (unwritable) MarshalText() ([]byte, error) { panic("no such user") }

// What a value does while it is written holds up nobody and loses no page.
func TestValuesMayLogAndPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.log.Error("refused", "user", chatty{w.log}, "role", broken{}, "group", unwritable{}, "path", "/srv")
		alerts := w.close()
		if len(alerts) != 2 {
			t.Fatalf("%d pages", len(alerts))
		}
		if tail := strings.Join(alerts[1].LogTail, "\n"); !strings.Contains(tail, "user=unknown") || !strings.Contains(tail, "path=/srv") {
			t.Errorf("the phone shows %q", tail)
		}
	})
}

// A value that takes its time holds up no other logger.
type slow struct{ until chan struct{} }

func (s slow) LogValue() slog.Value {
	<-s.until
	return slog.StringValue("late")
}

func TestASlowValueHoldsUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		until, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			w.log.Error("slow", "value", slow{until})
		}()
		synctest.Wait()
		w.log.Error("quick", "value", 1)
		close(until)
		<-done
		tails := map[string]string{}
		for _, alert := range w.close() {
			tails[alert.FailReason] = alert.LogTail[0]
		}
		if tails["quick"] != "value=1" || tails["slow"] != "value=late" {
			t.Errorf("the phone shows %q", tails)
		}
	})
}

// Pages that wait are small, whatever was logged.
func TestHugeRecordsAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		hold := make(chan struct{})
		w.relay.Script(1, relaytest.Answer{Hold: hold})
		before := heap()
		for i := range slogpage.DefaultQueue + 1 {
			w.log.Error(fmt.Sprint("\x1b[31mfull\x1b[0m ", i, strings.Repeat("é", 1<<20)), "dump", strings.Repeat("é", 1<<20))
			synctest.Wait()
			w.lines.Reset()
		}
		*w.lines = bytes.Buffer{}
		if grown := heap() - before; grown > 2<<20 {
			t.Errorf("%d kB are kept", grown>>10)
		}
		close(hold)
		alerts := w.close()
		if len(alerts) != slogpage.DefaultQueue+1 || !strings.HasPrefix(alerts[0].FailReason, "full 0é") {
			t.Errorf("%d pages, the first %.60q", len(alerts), alerts[0].FailReason)
		}
	})
}

func heap() int64 {
	runtime.GC()
	runtime.GC() // pools of the log keep one round
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// What is long leaves room for the rest.
func TestLongRecordsShowSomeOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.log.Error(strings.Repeat("out of memory ", 1000), "user", "ann", "query", strings.Repeat("select ", 1000))
		alert := w.close()[0]
		tail := strings.Join(alert.LogTail, "\n")
		if !strings.HasPrefix(alert.FailReason, "out of memory") || !strings.HasPrefix(tail, `user=ann query="select select`) || !strings.Contains(tail, "\nat handler_test.go:") {
			t.Errorf("the phone shows %.80q and %.80q", alert.FailReason, tail)
		}
	})
}

// Secrets can be taken out of a page as out of any other handler's lines.
func TestReplaceAttr(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, slogpage.WithReplaceAttr(func(groups []string, attr slog.Attr) slog.Attr {
			if attr.Key == "password" {
				return slog.String("password", strings.Join(groups, ".")+"***")
			}
			return attr
		}))
		w.log.With("password", "hunter2").WithGroup("db").Error("refused", "password", "hunter2", "level", "high", "msg", "no",
			slog.Group("admin", "password", "hunter2"), "token", secret.New("hunter2"))
		tail := strings.Join(w.close()[0].LogTail, "\n")
		if strings.Contains(tail, "hunter2") || !strings.Contains(tail, "password=*** db.password=db*** db.level=high db.msg=no db.admin.password=db.admin***") {
			t.Errorf("the phone shows %q", tail)
		}
	})
}
