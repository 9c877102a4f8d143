package browsertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sealpush/sealpush/payload"
)

func TestAlertIsShownAndKept(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	d := newDaemon(t, s, p)

	p.push(d.page(failure("nightly-backup")))
	shown := p.notified(1)[0]
	if shown.Title != "nightly-backup failed on db1" || !strings.HasPrefix(shown.Body, "exit status 3\n") ||
		!strings.HasSuffix(shown.Body, "\nwrite /backup/data.tar: no space left on device") || len(strings.Split(shown.Body, "\n")) > 7 {
		t.Errorf("shows %+v", shown)
	}
	if len(shown.Tag) != 32 {
		t.Errorf("the tag is %q", shown.Tag)
	}
	p.says("list", "nightly-backup failed")
	p.says("list", "just now")
	p.says("list", "no space left on device")

	t.Run("the page shows what the relay could see beside what the phone reads", func(t *testing.T) {
		p.says("compare", "The push service in between saw less")
		p.says("saw", shown.Tag)
		p.says("saw", "time-sensitive")
		p.says("saw", "Daemon event\nno")
		p.says("compare", "the addresses of the daemon and of this phone")
		p.says("reads", "no space left on device")
		if saw := eval[string](p.tab, `document.getElementById("saw").innerText`); strings.Contains(saw, "backup") || strings.Contains(saw, "db1") {
			t.Errorf("the relay saw %s", saw)
		}
	})
	t.Run("every kind has its words", func(t *testing.T) {
		sla := payload.NewSLA("db1", "sync-mirror", payload.CheckMaxRuntime, 90*time.Second, 400*time.Second)
		event := payload.NewEvent("db1", "nightly", payload.EventDAGFailure)
		event.Subject, event.Message = "1 of 3 jobs failed", "nightly-backup: exit status 3"
		for _, test := range []struct {
			alert       payload.Alert
			title, body string
		}{
			{payload.NewSuccess("db1", "rotate-logs"), "rotate-logs succeeded on db1", ""},
			{sla, "sync-mirror: runs too long on db1", "7 min, allowed are 2 min"},
			{event, "1 of 3 jobs failed on db1", "nightly: dag_failure\nnightly-backup: exit status 3"},
			{payload.NewTest("db1"), "Test alert on db1", "this phone is paired"},
		} {
			before := len(p.notifications())
			p.push(d.page(test.alert))
			found := false
			for _, n := range p.notified(before + 1) {
				if n.Title == test.title {
					found = true
					if !strings.Contains(n.Body, test.body) {
						t.Errorf("%s: %q", n.Title, n.Body)
					}
				}
			}
			if !found {
				t.Errorf("no %q among %+v", test.title, p.notifications())
			}
		}
		p.says("list", "allowed are 2 min")
	})
	p.picture("alerts")
	t.Run("all lines are there for whoever asks", func(t *testing.T) {
		p.clickOn("#list details summary")
		p.says("list", "dumping 14 databases")
	})
	t.Run("an alert grows old in the list", func(t *testing.T) {
		if n := eval[int](p.tab, `document.querySelectorAll("#list .old").length`); n != 0 {
			t.Errorf("%d are old at once", n)
		}
		eval[bool](p.tab, `(() => { const now = Date.now; Date.now = () => now() + 11 * 60 * 1000; document.dispatchEvent(new Event("visibilitychange")); return true; })()`)
		p.await(`document.querySelectorAll("#list .old").length === document.querySelectorAll("#list > li").length`)
		p.says("list", "11 min ago (old)")
		p.picture("alerts-old")
	})
	t.Run("the list is there again after a reload", func(t *testing.T) {
		p.open(s.URL + "/phone/")
		p.says("list", "nightly-backup failed")
	})
	if p.complaints != nil {
		t.Errorf("the page complains: %v", p.complaints)
	}
}

func TestFortyAlerts(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	d := newDaemon(t, s, p)
	var messages [][]byte
	for i := range 40 {
		messages = append(messages, d.page(failure(fmt.Sprintf("job-%02d", i))))
	}
	p.push(messages...)
	shown := p.notified(40)
	titles := map[string]bool{}
	for _, n := range shown {
		titles[n.Title] = true
	}
	if len(titles) != 40 {
		t.Errorf("shows %d of them", len(titles))
	}
	p.await(`document.querySelectorAll("#list > li").length === 40`)
	p.picture("forty")
}

// An alert that is older than ten minutes is never shown as a live page (relay protocol, "Replay protection").
func TestStaleAlert(t *testing.T) {
	s := newSite(t)
	p := newPhone(t, s)
	d := newDaemon(t, s, p)
	alert := failure("nightly-backup")
	alert.Time = alert.Time.Add(-payload.FreshFor - 2*time.Second)
	p.push(d.page(alert))
	shown := p.notified(1)[0]
	if shown.Title != "Outdated: nightly-backup failed on db1" || !strings.HasPrefix(shown.Body, "Built 10 min ago: not a live page") || !shown.Data.Stale {
		t.Errorf("shows %+v", shown)
	}
	if shown.Silent == nil || !*shown.Silent {
		t.Error("an outdated alert makes a sound")
	}
	p.await(`document.querySelectorAll("#list .old").length === 1`)
	p.says("list", "Outdated when it came: not a live page")

	recent := failure("other-job")
	recent.Time = recent.Time.Add(-payload.FreshFor + 2*time.Minute)
	p.push(d.page(recent))
	for _, n := range p.notified(2) {
		if strings.Contains(n.Title, "other-job") && (n.Data.Stale || n.Title != "other-job failed on db1") {
			t.Errorf("shows %+v", n)
		}
	}
	p.says("list", "other-job")
	p.picture("stale")
}

// A page that is open twice is one phone.
func TestTwoTabs(t *testing.T) {
	s := newSite(t)
	profile := newProfile(t)
	profile.allow(t, s.URL, "granted")
	given := subscription(t, s)
	one, two := &phone{profile.newTab(t, s.URL, given), s}, &phone{profile.newTab(t, s.URL, given), s}
	for _, p := range []*phone{one, two} {
		p.open(s.URL + "/phone")
		p.visible("setup")
		p.fill("invitation", invitation)
	}
	for _, p := range []*phone{one, two} { // at the same time
		eval[bool](p.tab, `document.getElementById("setup-go").click() === undefined`)
	}
	for _, p := range []*phone{one, two} {
		p.await(`document.getElementById("request").textContent !== ""`)
	}
	if one.request() != two.request() {
		t.Errorf("the tabs are two phones: %s and %s", one.request(), two.request())
	}
	one.says("own-relay", "127.0.0.1")

	d := newDaemon(t, s, one)
	one.await(`navigator.serviceWorker.controller !== null`)
	one.push(d.page(failure("nightly-backup")))
	two.says("list", "nightly-backup failed")

	eval[bool](one.tab, `store.addDaemon({ name: "db2", via: "relay", paired: 1 }).then(() => { document.getElementById("clear").click(); return true; })`)
	two.visible("none")

	t.Run("forgotten in one", func(t *testing.T) {
		eval[bool](one.tab, `document.getElementById("forget").click() === undefined`)
		eval[bool](one.tab, `document.querySelector("#forget-dialog [value=yes]").click() === undefined`)
		one.visible("setup")
		two.visible("setup")
		two.hidden("phone")
	})
}

func TestTwoPhones(t *testing.T) {
	s := newSite(t)
	one, two := newPhone(t, s), newPhone(t, s)
	first, second := newDaemon(t, s, one), newDaemon(t, s, two)
	if one.request() == two.request() {
		t.Error("two phones are the same")
	}
	forOne, forTwo := first.page(failure("for-one")), second.page(failure("for-two"))
	one.push(forOne)
	two.push(forTwo)
	if shown := one.notified(1); len(shown) != 1 || shown[0].Title != "for-one failed on db1" {
		t.Errorf("the first shows %+v", shown)
	}
	if shown := two.notified(1); len(shown) != 1 || shown[0].Title != "for-two failed on db1" {
		t.Errorf("the second shows %+v", shown)
	}
	two.push(forOne) // a relay mixes them up
	for _, n := range two.notified(2) {
		if n.Title != "for-two failed on db1" && n.Title != "A message that this phone cannot read" {
			t.Errorf("the second shows %+v", n)
		}
	}
}

// Both suites work alike.
func TestXWing(t *testing.T) {
	s := newSite(t)
	profile := newProfile(t)
	profile.allow(t, s.URL, "granted")
	p := &phone{profile.newTab(t, s.URL, subscription(t, s)), s}
	p.open(s.URL + "/phone")
	p.clickOn("#setup-form summary")
	p.clickOn("input[value=xwing]")
	p.setUp()
	d := newDaemon(t, s, p)
	message := d.page(failure("nightly-backup"))
	if !strings.Contains(string(message), `"suite":"xwing"`) {
		t.Errorf("pushes %.80s", message)
	}
	p.push(message)
	if shown := p.notified(1)[0]; shown.Title != "nightly-backup failed on db1" {
		t.Errorf("shows %+v", shown)
	}
}
