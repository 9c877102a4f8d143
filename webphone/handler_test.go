package webphone

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, h http.Handler, target, encoding string) *http.Response {
	t.Helper()
	req := httptest.NewRequest("GET", target, nil)
	if encoding != "" {
		req.Header.Set("Accept-Encoding", encoding)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w.Result()
}

func body(t *testing.T, resp *http.Response) string {
	t.Helper()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

var hashed = regexp.MustCompile(`[\w-]+\.[0-9a-f]{16}\.\w+`)

// The page names its files, and so do they: everything that is named is there, and is kept.
func TestEveryFileThatIsNamedIsServed(t *testing.T) {
	h := Handler()
	seen := map[string]bool{}
	var follow func(name string)
	follow = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		resp := get(t, h, "/phone/"+name, "")
		content := body(t, resp)
		if resp.StatusCode != 200 || content == "" {
			t.Fatalf("%s: %s, %d bytes", name, resp.Status, len(content))
		}
		lasting := "no-cache"
		if hashed.MatchString(name) {
			lasting = "public, max-age=31536000, immutable"
		}
		if got := resp.Header.Get("Cache-Control"); got != lasting {
			t.Errorf("%s: Cache-Control %q", name, got)
		}
		if path.Ext(name) == ".wasm" || path.Ext(name) == ".png" {
			return
		}
		for _, next := range hashed.FindAllString(content, -1) {
			follow(next)
		}
	}
	follow("")
	follow("worker.js")
	follow("manifest.webmanifest")
	if len(seen) < 14 {
		t.Errorf("found %d files: %v", len(seen), seen)
	}
}

func TestHeaders(t *testing.T) {
	h := Handler()
	for target, contentType := range map[string]string{
		"/phone/": "text/html; charset=utf-8", "/phone/worker.js": "text/javascript; charset=utf-8",
		"/phone/manifest.webmanifest": "application/manifest+json",
	} {
		resp := get(t, h, target, "gzip, br")
		for name, want := range map[string]string{
			"Content-Type": contentType, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Content-Encoding": "gzip", "Vary": "Accept-Encoding", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", target, name, got, want)
			}
		}
		policy := resp.Header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self' 'wasm-unsafe-eval';", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'none'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: the policy %q lacks %q", target, policy, part)
			}
		}
		if strings.Contains(policy, "unsafe-inline") || strings.Contains(policy, "'unsafe-eval'") {
			t.Errorf("%s: the policy is %q", target, policy)
		}
		plain, err := gzip.NewReader(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		unpacked, err := io.ReadAll(plain)
		if err != nil {
			t.Fatal(err)
		}
		if got := body(t, get(t, h, target, "gzip;q=0, identity")); got != string(unpacked) {
			t.Errorf("%s: without gzip it is another", target)
		}
	}
}

// A browser that is led to whatever is below /phone finds nothing that may run anything.
func TestHeadersOfEverything(t *testing.T) {
	h := Handler()
	targets := []string{"/phone", "/phone/nothing-here", "/phone/<script>alert(1)</script>"}
	for name := range build() {
		targets = append(targets, "/phone/"+name)
	}
	for _, method := range []string{"GET", "HEAD", "POST"} {
		for _, target := range targets {
			req := httptest.NewRequest(method, "/", nil)
			req.URL.Path = target
			w := httptest.NewRecorder()
			h.ServeHTTP(w, req)
			for name, want := range map[string]string{
				"Content-Security-Policy": contentSecurityPolicy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
				"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
				"Permissions-Policy": "camera=(self), geolocation=(), microphone=()",
			} {
				if got := w.Header().Get(name); got != want {
					t.Errorf("%s %s, answered %d: %s is %q", method, target, w.Code, name, got)
				}
			}
			if strings.Contains(w.Body.String(), "<script>alert") {
				t.Errorf("%s %s quotes its path", method, target)
			}
		}
	}
}

func TestOtherRequests(t *testing.T) {
	h := Handler()
	for _, test := range []struct {
		method, target string
		status         int
		header         [2]string
	}{
		{"GET", "/phone", 308, [2]string{"Location", "/phone/"}},
		{"HEAD", "/phone/", 200, [2]string{"Content-Type", "text/html; charset=utf-8"}},
		{"POST", "/phone/", 405, [2]string{"Allow", "GET, HEAD"}},
		{"OPTIONS", "/phone/worker.js", 405, [2]string{"Allow", "GET, HEAD"}},
		{"GET", "/phone/handler.go", 404, [2]string{"X-Content-Type-Options", "nosniff"}},
		{"GET", "/phone/built/phone.wasm.gz", 404, [2]string{}},
		{"GET", "/phone/../handler.go", 404, [2]string{}},
		{"GET", "/", 404, [2]string{}},
	} {
		req := httptest.NewRequest(test.method, test.target, nil)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		if w.Code != test.status || w.Header().Get(test.header[0]) != test.header[1] {
			t.Errorf("%s %s answered %d, %v", test.method, test.target, w.Code, w.Header())
		}
	}
	resp := get(t, h, "/phone/", "")
	req := httptest.NewRequest("GET", "/phone/", nil)
	req.Header.Set("If-None-Match", `"other", W/`+resp.Header.Get("ETag"))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	if w.Code != 304 || w.Body.Len() != 0 {
		t.Errorf("what is known already: %d, %d bytes", w.Code, w.Body.Len())
	}
}

// A browser without gzip, should there be one, gets the program too.
func TestProgramWithoutGzip(t *testing.T) {
	h := Handler()
	name := regexp.MustCompile(`phone\.[0-9a-f]{16}\.wasm`).FindString(body(t, get(t, h, "/phone/worker.js", "")))
	resp := get(t, h, "/phone/"+name, "br")
	if got := body(t, resp); resp.Header.Get("Content-Type") != "application/wasm" || !strings.HasPrefix(got, "\x00asm") {
		t.Errorf("%v, %d bytes", resp.Header, len(got))
	}
}

// maxTransfer is what a phone may have to load before it can be paged, in bytes.
const maxTransfer = 1_500_000

func TestTransferSize(t *testing.T) {
	total := 0
	for name, f := range build() {
		size := len(f.content)
		if f.packed != nil {
			size = len(f.packed)
		}
		t.Logf("%8d  %s", size, name)
		total += size
	}
	t.Logf("%8d  in all", total)
	if total > maxTransfer {
		t.Errorf("the phone loads %d bytes, at most %d are allowed", total, maxTransfer)
	}
}

// Nothing that is served asks a third party for anything, and no script is inline.
func TestNothingFromElsewhere(t *testing.T) {
	elsewhere := regexp.MustCompile(`(?i)(src|href|url|import|fetch)\s*[=(]\s*["'\x60]?(https?:)?//`)
	inline := regexp.MustCompile(`(?is)<script(>|\s[^>]*>)\s*\S|\son\w+=|\sstyle=`)
	for name, f := range build() {
		if f.content == nil || path.Ext(name) == ".png" {
			continue
		}
		if found := elsewhere.Find(f.content); found != nil {
			t.Errorf("%s: %s", name, found)
		}
		if name == "" {
			for _, script := range bytes.Split(f.content, []byte("</script>")) {
				if found := inline.Find(script); found != nil {
					t.Errorf("the page has %s", found)
				}
			}
		}
	}
}
