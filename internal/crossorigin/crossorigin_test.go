package crossorigin_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/internal/crossorigin"
)

func TestParse(t *testing.T) {
	if _, err := crossorigin.Parse("https://phone.example.com", "http://localhost:8080", "https://[2001:db8::1]:8443"); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{"", "*", "null", "phone.example.com", "//phone.example.com", "https://", "ftp://a.example",
		"https://a.example/", "https://a.example/phone", "https://a.example?x", "https://a.example#x", "https://user:hunter2@a.example",
		"https://A.example", "https://a.example:443", "http://a.example:80", "https://a.example:", "https://*.example.com",
		"https://bücher.example", "https://a.example ", "https://a%2eexample"} {
		if _, err := crossorigin.Parse("https://fine.example", wrong); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: error %v", wrong, err)
		}
	}
}

func TestHandler(t *testing.T) {
	origins, err := crossorigin.Parse("https://phone.example.com")
	if err != nil {
		t.Fatal(err)
	}
	answer := func(status int) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	}
	const own, page = "https://api.example", "https://phone.example.com"
	for _, c := range []struct {
		name, method, origin, site string
		preflight                  bool
		status                     int
		allowed                    string
	}{
		{"no browser", "PUT", "", "", false, 200, ""},
		{"the page", "PUT", page, "cross-site", false, 200, page},
		{"the page reads", "GET", page, "cross-site", false, 200, page},
		{"the page's preflight", "OPTIONS", page, "cross-site", true, 204, page},
		{"OPTIONS that is no preflight", "OPTIONS", page, "cross-site", false, 200, page},
		{"its own page", "PUT", own, "same-origin", false, 200, ""},
		{"its own page in an old browser", "PUT", own, "", false, 200, ""},
		{"another page", "PUT", "https://evil.example", "cross-site", false, 403, ""},
		{"another page's preflight", "OPTIONS", "https://evil.example", "cross-site", true, 200, ""},
		{"a sandboxed frame", "PUT", "null", "cross-site", false, 403, ""},
		{"the page over http", "PUT", "http://phone.example.com", "cross-site", false, 403, ""},
		{"another port", "PUT", page + ":8443", "cross-site", false, 403, ""},
		{"its name as a prefix", "PUT", page + ".evil.example", "cross-site", false, 403, ""},
		{"its name as a suffix", "PUT", "https://evilphone.example.com", "cross-site", false, 403, ""},
		{"a subdomain", "PUT", "https://a.phone.example.com", "cross-site", false, 403, ""},
		{"other case", "PUT", "https://Phone.example.com", "cross-site", false, 403, ""},
		{"as a user name", "PUT", page + "@evil.example", "cross-site", false, 403, ""},
		{"another page in an old browser", "PUT", "https://evil.example", "", false, 403, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(c.method, own+"/", nil)
			for name, value := range map[string]string{"Origin": c.origin, "Sec-Fetch-Site": c.site} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
			if c.preflight {
				r.Header.Set("Access-Control-Request-Method", "PUT")
				r.Header.Set("Access-Control-Request-Headers", "authorization")
				r.Header.Set("Access-Control-Request-Private-Network", "true")
			}
			w := httptest.NewRecorder()
			origins.Handler(answer(200), "GET, PUT", answer(403)).ServeHTTP(w, r)
			h := w.Header()
			if w.Code != c.status || h.Get("Access-Control-Allow-Origin") != c.allowed || h.Get("Vary") != "Origin" {
				t.Errorf("%d, headers %v", w.Code, h)
			}
			if h.Get("Access-Control-Allow-Credentials")+h.Get("Access-Control-Allow-Private-Network") != "" {
				t.Errorf("allows more: %v", h)
			}
			if methods := h.Get("Access-Control-Allow-Methods"); (methods == "GET, PUT") != (c.status == 204) {
				t.Errorf("methods %q", methods)
			}
		})
	}
}

func TestNoOriginsNoHeaders(t *testing.T) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest("OPTIONS", "https://api.example/", nil)
	r.Header.Set("Origin", "https://phone.example.com")
	r.Header.Set("Access-Control-Request-Method", "PUT")
	crossorigin.Origins{}.Handler(http.NotFoundHandler(), "GET", nil).ServeHTTP(w, r)
	if h := w.Header(); w.Code != 404 || h.Get("Vary")+h.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%d, headers %v", w.Code, h)
	}
}
