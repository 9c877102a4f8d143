package browsertest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/sealpush/sealpush/relay"
)

// The landing page of a pairing link, with the links of the vectors and with others, in a browser that holds it to its
// policy. Whatever stands in a link, the page shows it as text and sends it nowhere.
func TestLandingPage(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	page := relay.PairPage()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/favicon.ico" { // the browser's own idea
			mu.Lock()
			asked = append(asked, r.RequestURI)
			mu.Unlock()
		}
		if r.URL.Path == "/pair" {
			page.ServeHTTP(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	defer server.Close()

	data, err := os.ReadFile("../../testdata/vectors/pair_link.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Cases []struct{ Name, JSON, Link string }
	}
	if err := json.Unmarshal(data, &vectors); err != nil || len(vectors.Cases) == 0 {
		t.Fatalf("%d cases, %v", len(vectors.Cases), err)
	}

	b := newProfile(t).newTab(t, server.URL, "null")
	open := func(fragment string) {
		t.Helper()
		b.do(chromedp.Navigate("about:blank"), chromedp.Navigate(server.URL+"/pair#"+fragment))
		b.await(`document.readyState === "complete"`)
	}
	type shown struct{ Name, URL, Href string }
	read := func() shown {
		return eval[shown](b, `({ name: document.getElementById("name").textContent, url: document.getElementById("url").textContent,
			href: document.getElementById("open").href })`)
	}
	for _, c := range vectors.Cases {
		_, fragment, _ := strings.Cut(c.Link, "#")
		open(fragment)
		b.visible("open")
		b.hidden("missing")
		var document struct{ URL string }
		if err := json.Unmarshal([]byte(c.JSON), &document); err != nil {
			t.Fatal(err)
		}
		if got := read(); got.Name != c.Name || got.URL != document.URL || got.Href != "cronstable://pair#"+fragment {
			t.Errorf("%q: %+v", c.Name, got)
		}
	}

	mean := `{"v":1,"name":"<img src=x onerror=\"document.title='run'\">","url":"javascript:alert(1)","token":"t"}`
	open(base64url(mean))
	b.visible("open")
	if got := read(); !strings.HasPrefix(got.Name, "<img") || !strings.HasPrefix(got.Href, "cronstable://pair#") || eval[string](b, `document.title`) == "run" {
		t.Errorf("of a mean link: %+v", got)
	}
	for _, fragment := range []string{"", "%22%3E", "AAAA", base64url("null"), base64url(`{"v":2,"name":"n","url":"u"}`), base64url(`{"v":1,"name":7,"url":"u"}`)} {
		open(fragment)
		b.visible("missing")
		b.hidden("link")
	}
	// Another code opens in the same tab.
	eval[bool](b, `(() => { location.hash = "`+base64url(mean)+`"; return true; })()`)
	b.visible("open")

	if eval[string](b, `getComputedStyle(document.getElementById("open")).textAlign`) != "center" {
		t.Error("the policy keeps the page's own style out")
	}
	mu.Lock()
	defer mu.Unlock()
	if other := slices.DeleteFunc(asked, func(uri string) bool { return uri == "/pair" }); len(other) > 0 {
		t.Errorf("the page asked for %q", other)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.complaints) > 0 {
		t.Errorf("the browser complains: %q", b.complaints)
	}
}
