package relay_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/relay"
)

func TestPairPage(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/pair", relay.PairPage())
	server := httptest.NewServer(mux)
	defer server.Close()
	for method, want := range map[string]int{"GET": 200, "HEAD": 200, "POST": 405, "PUT": 405, "DELETE": 405} {
		req, err := http.NewRequest(method, server.URL+"/pair", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != want {
			t.Errorf("%s: %s, %v", method, resp.Status, err)
		}
		switch method {
		case "GET":
			requireNothingLoaded(t, string(body))
			fallthrough
		case "HEAD":
			if policy := resp.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
				t.Errorf("%s: policy %q", method, policy)
			}
			if resp.ContentLength < 1000 || resp.Header.Get("Content-Type") != "text/html; charset=utf-8" {
				t.Errorf("%s: %d bytes of %s", method, resp.ContentLength, resp.Header.Get("Content-Type"))
			}
		default:
			if resp.Header.Get("Allow") != "GET, HEAD" || !resp.Close {
				t.Errorf("%s: Allow %q, closes %t", method, resp.Header.Get("Allow"), resp.Close)
			}
		}
	}
}

// requireNothingLoaded: no third party learns who pairs, and nothing can read the fragment but the page's own script.
func requireNothingLoaded(t *testing.T, page string) {
	t.Helper()
	if found := regexp.MustCompile(`(?i)\b(src|action|srcset)\s*=|https?://|fetch\(|XMLHttpRequest|sendBeacon|@import|url\(`).FindString(page); found != "" {
		t.Errorf("the page has %q in it", found)
	}
	if !strings.Contains(page, `"cronstable://pair#"`) {
		t.Error("the page does not offer the app")
	}
}

func TestAppSiteAssociation(t *testing.T) {
	handler, err := relay.AppSiteAssociation("ABCDE12345.com.example.app")
	if err != nil {
		t.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest("GET", "/.well-known/apple-app-site-association", nil))
	var document struct {
		AppLinks struct {
			Details []struct {
				AppIDs     []string
				Components []map[string]string
			}
		}
	}
	if err := json.Unmarshal(recorder.Body.Bytes(), &document); err != nil || recorder.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%s, %v", recorder.Header().Get("Content-Type"), err)
	}
	if d := document.AppLinks.Details; len(d) != 1 || d[0].AppIDs[0] != "ABCDE12345.com.example.app" || d[0].Components[0]["/"] != "/pair" {
		t.Errorf("%s", recorder.Body)
	}
	for _, ids := range [][]string{nil, {"com.example.app"}, {"ABCDE12345.com.example.app", "ABCDE12345."}, {"ABCDE12345.a\"b"}} {
		if _, err := relay.AppSiteAssociation(ids...); err == nil {
			t.Errorf("%q taken", ids)
		}
	}
}
