package pairing_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
)

// api is a daemon's pairing API over a real socket.
type api struct {
	url   string
	store *memoryStore
	log   *logBuffer
}

func newAPI(t *testing.T, test pairing.Tester) api {
	t.Helper()
	store := &memoryStore{}
	reg, log := newRegistry(store)
	caller := func(r *http.Request) string { return r.Header.Get("X-Label") }
	server := httptest.NewServer(handlerOver(t, reg, test, pairing.WithCaller(caller)))
	t.Cleanup(server.Close)
	return api{server.URL, store, log}
}

// do makes one request, which says it is JSON when it has a body, and returns the status and the decoded answer.
func (a api) do(t *testing.T, method, path, body string, header ...string) (int, map[string]any, http.Header) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, a.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json; charset=utf-8")
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Methods"} {
		if resp.Header.Get(h) != "" {
			t.Errorf("%s %s: header %s is set", method, path, h)
		}
	}
	if got := resp.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("%s %s: Content-Type %q", method, path, got)
	}
	var answer map[string]any
	if err := json.Unmarshal(data, &answer); err != nil && method != "HEAD" {
		t.Fatalf("%s %s: %v in %q", method, path, err, data)
	}
	return resp.StatusCode, answer, resp.Header
}

// serve makes one request of a handler.
func serve(handler http.Handler, method, path, body string, header ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	handler.ServeHTTP(rec, req)
	return rec
}

const token = "9e30691c238642ea126a1e48cc11d357"

func TestHandlerPairsListsAndRevokes(t *testing.T) {
	a := newAPI(t, nil)
	status, answer, _ := a.do(t, "GET", "/push/devices", "")
	if diff := cmp.Diff(map[string]any{"devices": []any{}}, answer); status != 200 || diff != "" {
		t.Errorf("empty list: %d, -want +got:\n%s", status, diff)
	}

	status, answer, _ = a.do(t, "POST", "/push/devices", body("phone", "ios", key, token), "X-Label", "parker")
	device, _ := answer["device"].(map[string]any)
	id, _ := device["id"].(string)
	createdAt, _ := device["createdAt"].(string)
	want := map[string]any{"created": true, "device": map[string]any{
		"id": id, "name": "phone", "platform": "ios", "suite": "x25519", "sealableHere": true, "publicKey": key, "fingerprint": mustKey(t, key).Fingerprint(),
		"pushToken": "…11d357", "createdAt": createdAt, "createdBy": "parker",
		"updatedAt": createdAt, "updatedBy": "parker",
	}}
	if diff := cmp.Diff(want, answer); status != 201 || diff != "" {
		t.Errorf("pair: %d, -want +got:\n%s", status, diff)
	}
	if !strings.HasSuffix(createdAt, "+00:00") || len(createdAt) != len("2026-07-23T14:00:00+00:00") {
		t.Errorf("createdAt %q", createdAt)
	}

	status, answer, _ = a.do(t, "POST", "/push/devices", body("renamed", "ios", key, token))
	if got := answer["device"].(map[string]any); status != 200 || answer["created"] != false || got["id"] != id ||
		got["name"] != "renamed" || got["createdBy"] != "parker" || got["updatedBy"] != nil {
		t.Errorf("pair again: %d %v", status, answer)
	}
	status, answer, _ = a.do(t, "GET", "/push/devices", "")
	if list := answer["devices"].([]any); status != 200 || len(list) != 1 || list[0].(map[string]any)["pushToken"] != "…11d357" {
		t.Errorf("list: %d %v", status, answer)
	}
	status, answer, _ = a.do(t, "DELETE", "/push/devices/"+id, "")
	if diff := cmp.Diff(map[string]any{"revoked": id}, answer); status != 200 || diff != "" {
		t.Errorf("revoke: %d, -want +got:\n%s", status, diff)
	}
	if status, _, _ = a.do(t, "DELETE", "/push/devices/"+id, ""); status != 404 {
		t.Errorf("revoke twice: %d", status)
	}
	if logged := a.log.take(); strings.Contains(logged, token) {
		t.Errorf("the log holds the push token:\n%s", logged)
	}
}

func TestHandlerListsByCreation(t *testing.T) {
	a := newAPI(t, nil)
	for i, name := range []string{"third", "first", "second"} {
		d := newDevice(fmt.Sprint(i), name)
		d.CreatedAt = d.CreatedAt.AddDate((i+2)%3, 0, 0)
		pair(t, a.store, d)
	}
	_, answer, _ := a.do(t, "GET", "/push/devices", "")
	var got []string
	for _, d := range answer["devices"].([]any) {
		got = append(got, d.(map[string]any)["name"].(string))
	}
	if strings.Join(got, " ") != "first second third" {
		t.Errorf("got %v", got)
	}
}

func TestHandlerPairingVectors(t *testing.T) {
	a := newAPI(t, nil)
	for _, c := range requestCases(t) {
		t.Run(c.Comment, func(t *testing.T) {
			status, answer, _ := a.do(t, "POST", "/push/devices", string(c.Body))
			if c.Error == "" {
				if status != 200 && status != 201 {
					t.Errorf("got %d %v", status, answer)
				}
				return
			}
			text, _ := answer["error"].(string)
			if word, _, _ := strings.Cut(text, " "); status != 400 || word != c.Error {
				t.Errorf("got %d %q, want 400 and a text that begins with %q", status, text, c.Error)
			}
		})
	}
}

func TestHandlerRefuses(t *testing.T) {
	store := &memoryStore{}
	reg, _ := newRegistry(store)
	handler := handlerOver(t, reg, func(context.Context, string) (int, error) { return 0, pairing.ErrUnknownDevice })
	good := body("phone", "ios", key, token)
	for _, c := range []struct {
		name, method, path, body, contentType string
		status                                int
		allow                                 string
	}{
		{"an unknown charset", "POST", "/push/devices", good, "application/json; charset=x-bogus", 400, ""},
		{"UTF-16", "POST", "/push/devices", good, "text/plain; charset=\"UTF-16\"", 400, ""},
		{"a body of 10 MB", "POST", "/push/devices", strings.Repeat(" ", 10<<20), "application/json", 413, ""},
		{"half a body", "POST", "/push/devices", good[:20], "application/json", 400, ""},
		{"PUT", "PUT", "/push/devices", good, "application/json", 405, "GET, HEAD, POST"},
		{"OPTIONS", "OPTIONS", "/push/devices", "", "", 405, "GET, HEAD, POST"},
		{"GET of one device", "GET", "/push/devices/1", "", "", 405, "DELETE"},
		{"GET of a test", "GET", "/push/devices/1/test", "", "", 405, "POST"},
		{"unknown id", "DELETE", "/push/devices/0123456789abcdef", "", "", 404, ""},
		{"test of an unknown id", "POST", "/push/devices/0123456789abcdef/test", "", "", 404, ""},
		{"unknown path", "GET", "/push/phones", "", "", 404, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			// A recorder: a real client may see the connection close while it still sends 10 MB.
			req := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
			req.Header.Set("Content-Type", c.contentType)
			rec := httptest.NewRecorder()
			handler.ServeHTTP(rec, req)
			var answer struct{ Error string }
			if err := json.Unmarshal(rec.Body.Bytes(), &answer); err != nil || answer.Error == "" {
				t.Errorf("got %q, want an error as JSON", rec.Body)
			}
			if rec.Code != c.status || rec.Header().Get("Allow") != c.allow {
				t.Errorf("got %d, Allow %q", rec.Code, rec.Header().Get("Allow"))
			}
		})
	}
	if len(store.snapshot.Devices) != 0 {
		t.Error("one of them paired a device")
	}
}

// A page of another site can have a browser send a simple POST: it must do nothing, whatever it says.
func TestHandlerRefusesOtherSites(t *testing.T) {
	good := body("phone", "ios", key, token)
	for _, c := range []struct {
		name        string
		header      []string
		otherSites  bool
		contentType string
	}{
		{"a phone's app", nil, false, "application/json"},
		{"a phone's app without a content type", nil, false, ""},
		{"the daemon's own page", []string{"Sec-Fetch-Site", "same-origin", "Origin", "http://example.com"}, false, "application/json"},
		{"a form on another site", []string{"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"}, true, "text/plain"},
		{"a form on a sibling", []string{"Sec-Fetch-Site", "same-site", "Origin", "https://other.example.com"}, true, "application/x-www-form-urlencoded"},
		{"an older browser", []string{"Origin", "https://evil.example"}, true, "text/plain"},
		{"a sandboxed page", []string{"Origin", "null"}, true, "text/plain"},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := &memoryStore{}
			reg, _ := newRegistry(store)
			pair(t, store, newDevice("1", "old"))
			tests := 0
			handler := handlerOver(t, reg, func(context.Context, string) (int, error) { tests++; return 202, nil })
			header := append([]string{"Content-Type", c.contentType}, c.header...)
			for _, request := range []struct {
				method, path, body string
				want               int
			}{
				{"POST", "/push/devices", good, 201}, {"POST", "/push/devices/1/test", "", 200}, {"DELETE", "/push/devices/1", "", 200},
			} {
				if c.otherSites {
					request.want = 403
				}
				rec := serve(handler, request.method, request.path, request.body, header...)
				var answer map[string]any
				if err := json.Unmarshal(rec.Body.Bytes(), &answer); err != nil || rec.Code != request.want {
					t.Errorf("%s %s: got %d %s, want %d", request.method, request.path, rec.Code, rec.Body, request.want)
				}
			}
			if got := names(store.snapshot.Devices); (got == "old" && tests == 0) != c.otherSites {
				t.Errorf("paired are %s, %d tests", got, tests)
			}
		})
	}
}

// Pages of the origins that are named pair phones, and those of no other.
func TestHandlerWithOrigins(t *testing.T) {
	const page = "https://phone.example.com"
	reg, _ := newRegistry(&memoryStore{})
	handler, err := pairing.Handler(reg, nil, pairing.WithOrigins(page, "http://localhost:8080"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, origin string
		allowed      bool
	}{
		{"the page", page, true},
		{"the other page", "http://localhost:8080", true},
		{"a sandboxed frame", "null", false},
		{"over http", "http://phone.example.com", false},
		{"another port", page + ":8443", false},
		{"its name as a prefix", page + ".evil.example", false},
		{"its name as a suffix", "https://evil-phone.example.com", false},
		{"a subdomain", "https://x.phone.example.com", false},
		{"both origins at once", page + " http://localhost:8080", false},
		{"another page on this machine", "http://localhost:8081", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, allow := 403, ""
			preflight := 405
			if c.allowed {
				status, allow, preflight = 201, c.origin, 204
			}
			rec := serve(handler, "OPTIONS", "/push/devices", "", "Origin", c.origin, "Sec-Fetch-Site", "cross-site",
				"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization,content-type")
			h := rec.Header()
			if rec.Code != preflight || h.Get("Access-Control-Allow-Origin") != allow || (h.Get("Access-Control-Allow-Headers") != "") != c.allowed {
				t.Errorf("preflight: got %d, %v", rec.Code, h)
			}
			newKey := seal.GenerateKey().Public().String()
			rec = serve(handler, "POST", "/push/devices", body("phone", "ios", newKey, "token"), "Origin", c.origin, "Sec-Fetch-Site", "cross-site")
			if h := rec.Header(); rec.Code != status || h.Get("Access-Control-Allow-Origin") != allow || h.Get("Vary") != "Origin" {
				t.Errorf("POST: got %d %s, %v", rec.Code, rec.Body, h)
			}
			if rec := serve(handler, "GET", "/push/devices", "", "Origin", c.origin); rec.Header().Get("Access-Control-Allow-Origin") != allow {
				t.Errorf("GET: %v", rec.Header())
			}
		})
	}
	for _, wrong := range []string{"*", "null", page + "/", "phone.example.com"} {
		if _, err := pairing.Handler(reg, nil, pairing.WithOrigins(page, wrong)); err == nil {
			t.Errorf("origin %q is taken", wrong)
		}
	}
}

func TestHandlerTests(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		err    error
		want   int
		answer map[string]any
	}{
		{"accepted", 202, nil, 200, map[string]any{"device": "1", "status": 202.0, "error": nil}},
		{"refused by the relay", 429, errors.New("rate limited"), 502,
			map[string]any{"device": "1", "status": 429.0, "error": "rate limited"}},
		{"never sent", 0, errors.New("sealing failed"), 502,
			map[string]any{"device": "1", "status": nil, "error": "sealing failed"}},
		{"store down", 0, fmt.Errorf("%w: dial 10.0.0.7", pairing.ErrUnavailable), 503,
			map[string]any{"error": "registry unavailable"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAPI(t, func(_ context.Context, id string) (int, error) {
				if id != "1" {
					t.Errorf("asked to test %q", id)
				}
				return c.status, c.err
			})
			status, answer, _ := a.do(t, "POST", "/push/devices/1/test", "")
			if diff := cmp.Diff(c.answer, answer); status != c.want || diff != "" {
				t.Errorf("got %d, want %d; -want +got:\n%s", status, c.want, diff)
			}
		})
	}
	t.Run("no tester", func(t *testing.T) {
		if status, _, _ := newAPI(t, nil).do(t, "POST", "/push/devices/1/test", ""); status != 501 {
			t.Errorf("got %d", status)
		}
	})
}

func TestHandlerNeedsNoCaller(t *testing.T) {
	reg, _ := newRegistry(&memoryStore{})
	req := httptest.NewRequest("POST", "/push/devices", strings.NewReader(body("phone", "ios", key, token)))
	req.Header.Set("Content-Type", "application/json")
	rec := httptest.NewRecorder()
	handlerOver(t, reg, nil).ServeHTTP(rec, req)
	if rec.Code != 201 || !strings.Contains(rec.Body.String(), `"createdBy":null`) {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}
}

func TestHandlerKeepsTheStoresTroubleInTheLog(t *testing.T) {
	a := newAPI(t, nil)
	a.store.set(func() { a.store.err = errors.New("dial tcp 10.0.0.7:5432: connection refused") })
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/push/devices", ""},
		{"POST", "/push/devices", body("phone", "ios", key, token)},
		{"DELETE", "/push/devices/0123456789abcdef", ""},
	} {
		status, answer, _ := a.do(t, c.method, c.path, c.body)
		if diff := cmp.Diff(map[string]any{"error": "registry unavailable"}, answer); status != 503 || diff != "" {
			t.Errorf("%s: %d, -want +got:\n%s", c.method, status, diff)
		}
		if logged := a.log.take(); !strings.Contains(logged, "10.0.0.7") || strings.Contains(logged, token) {
			t.Errorf("%s: logged %q", c.method, logged)
		}
	}
}
