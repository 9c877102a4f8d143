package relay_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relay"
)

const (
	box          = "/mailboxes/00112233445566778899aabbccddeeff"
	openerSecret = "b3BlbmVyJ3Mgc2VjcmV0IQ"
)

func newMailboxes(t *testing.T, opts ...relay.MailboxOption) *relay.Mailboxes {
	t.Helper()
	m, err := relay.NewMailboxes(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// mail is one request and its answer. secret may be empty.
func mail(m http.Handler, method, path, secret, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if secret != "" {
		r.Header.Set("Authorization", "Bearer "+secret)
	}
	w := httptest.NewRecorder()
	m.ServeHTTP(w, r)
	return w
}

func requireMail(t *testing.T, got *httptest.ResponseRecorder, status int, body string) {
	t.Helper()
	if got.Code != status || body != "" && !strings.Contains(got.Body.String(), body) {
		t.Errorf("answered %d %q, want %d %q", got.Code, got.Body, status, body)
	}
	if h := got.Header(); h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("headers %v", h)
	}
	if got.Code >= 400 && got.Header().Get("Content-Type") != "application/json" {
		t.Errorf("a refusal of type %q", got.Header().Get("Content-Type"))
	}
}

func TestMailboxTakesOneMessageEachWay(t *testing.T) {
	m := newMailboxes(t)
	other := strings.ToLower(openerSecret)
	for i, step := range []struct {
		method, path, secret, body string
		status                     int
		want                       string
	}{
		{"PUT", box + "/request", "", "cmVxdWVzdA==", 404, "no such mailbox"},
		{"GET", box + "/answer", "", "", 404, "no such mailbox"},
		{"DELETE", box, openerSecret, "", 404, "no such mailbox"},
		{"PUT", box, "", "", 400, "22 to 128 characters"},
		{"PUT", box, openerSecret[1:], "", 400, "22 to 128 characters"},
		{"PUT", box, strings.Repeat("x", 129), "", 400, "22 to 128 characters"},
		{"PUT", box, openerSecret, "", 201, ""},
		{"PUT", box, other, "", 409, "there is a mailbox"},
		{"PUT", box + "/answer", openerSecret, "YW5zd2Vy", 409, "no request"},
		{"PUT", box + "/request", "", "", 400, "base64"},
		{"PUT", box + "/request", "", "<script>", 400, "base64"},
		{"PUT", box + "/request", "", "cmVx\n", 400, "base64"},
		{"PUT", box + "/request", "", "a===", 400, "base64"},
		{"PUT", box + "/request", "", strings.Repeat("A", relay.MaxMailboxMessage+1), 413, "8192 bytes"},
		{"PUT", box + "/request", "", strings.Repeat("A", relay.MaxMailboxMessage), 204, ""},
		{"PUT", box + "/request", "", "cmVxdWVzdA==", 409, "a message already"},
		{"GET", box + "/request", "", "", 401, "was opened"},
		{"GET", box + "/request", other, "", 401, "was opened"},
		{"GET", box + "/request", openerSecret, "", 200, strings.Repeat("A", relay.MaxMailboxMessage)},
		{"GET", box + "/request", openerSecret, "", 200, "AAAA"},
		{"GET", box + "/request", openerSecret, "body", 400, "no body"},
		{"PUT", box + "/answer", "", "YW5zd2Vy", 401, "was opened"},
		{"PUT", box + "/answer", other, "YW5zd2Vy", 401, "was opened"},
		{"PUT", box + "/answer", openerSecret, "YW5zd2Vy", 204, ""},
		{"PUT", box + "/answer", openerSecret, "YW5zd2Vy", 409, "a message already"},
		{"GET", box + "/answer", "", "", 200, "YW5zd2Vy"},
		{"GET", box + "/answer", "", "", 200, "YW5zd2Vy"},
		{"DELETE", box, "", "", 401, "was opened"},
		{"DELETE", box, other, "", 401, "was opened"},
		{"DELETE", box, openerSecret, "", 204, ""},
		{"GET", box + "/answer", "", "", 404, "no such mailbox"},
	} {
		got := mail(m, step.method, step.path, step.secret, step.body)
		requireMail(t, got, step.status, step.want)
		if got.Code == 200 && got.Header().Get("Content-Type") != "text/plain; charset=utf-8" {
			t.Errorf("step %d: a message of type %q", i, got.Header().Get("Content-Type"))
		}
		if t.Failed() {
			t.Fatalf("step %d: %s %s", i, step.method, step.path)
		}
	}
}

func TestMailboxPathsAndMethodsAreExact(t *testing.T) {
	m := newMailboxes(t)
	for _, path := range []string{"/", "/mailboxes", "/mailboxes/", "/mailboxes/0011", box + "0", strings.ToUpper(box), box + "/",
		box + "/requests", box + "/request/", "/x" + box, strings.Replace(box, "00", "%30%30", 1), box + "/../request", box + "%0a"} {
		requireMail(t, mail(m, "PUT", path, openerSecret, ""), 404, "there is nothing here")
	}
	for path, allow := range map[string]string{box: "DELETE, PUT", box + "/request": "GET, PUT", box + "/answer": "GET, PUT"} {
		for _, method := range []string{"POST", "PATCH", "HEAD", "OPTIONS", "PROPFIND"} {
			got := mail(m, method, path, openerSecret, "")
			requireMail(t, got, 405, "method not allowed")
			if got.Header().Get("Allow") != allow {
				t.Errorf("%s %s: Allow %q, want %q", method, path, got.Header().Get("Allow"), allow)
			}
		}
	}
}

// waiting starts a GET and returns its answer, with how long it took.
func waiting(m http.Handler, r *http.Request) <-chan string {
	answer, begin := make(chan string, 1), time.Now()
	go func() {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, r)
		text := w.Body.String()
		if w.Code != 200 {
			text = fmt.Sprint(w.Code)
		}
		answer <- text + " after " + time.Since(begin).String()
	}()
	synctest.Wait()
	return answer
}

func TestMailboxWaitsForAMessage(t *testing.T) {
	answer := func() *http.Request { return httptest.NewRequest("GET", box+"/answer", nil) }
	request := func() *http.Request {
		r := httptest.NewRequest("GET", box+"/request", nil)
		r.Header.Set("Authorization", "bearer "+openerSecret)
		return r
	}
	for name, c := range map[string]struct {
		r    *http.Request
		then func(t *testing.T, m *relay.Mailboxes)
		want string
	}{
		"not yet": {request(), func(*testing.T, *relay.Mailboxes) {}, "204 after 25s"},
		"it comes": {request(), func(t *testing.T, m *relay.Mailboxes) {
			advance(3 * time.Second)
			mail(m, "PUT", box+"/request", "", "cmVx")
		}, "cmVx after 3s"},
		"the answer comes": {answer(), func(t *testing.T, m *relay.Mailboxes) {
			mail(m, "PUT", box+"/request", "", "cmVx")
			advance(24 * time.Second)
			mail(m, "PUT", box+"/answer", openerSecret, "YW5z")
		}, "YW5z after 24s"},
		"deleted": {answer(), func(t *testing.T, m *relay.Mailboxes) {
			advance(time.Second)
			mail(m, "DELETE", box, openerSecret, "")
		}, "404 after 1s"},
		"shut down": {answer(), func(t *testing.T, m *relay.Mailboxes) {
			advance(2 * time.Second)
			m.Close()
		}, "204 after 2s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMailboxes(t)
				requireMail(t, mail(m, "PUT", box, openerSecret, ""), 201, "")
				got := waiting(m, c.r)
				c.then(t, m)
				if got := <-got; got != c.want {
					t.Errorf("answered %s, want %s", got, c.want)
				}
			})
		})
	}
}

func TestMailboxLivesTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMailboxes(t)
		requireMail(t, mail(m, "PUT", box, openerSecret, ""), 201, "")
		advance(10*time.Minute - 5*time.Second)
		got := waiting(m, httptest.NewRequest("GET", box+"/answer", nil))
		if got := <-got; got != "404 after 5s" {
			t.Errorf("who waits when it expires is answered %s", got)
		}
		requireMail(t, mail(m, "PUT", box+"/request", "", "cmVx"), 404, "ten minutes are over")
		requireMail(t, mail(m, "PUT", box, openerSecret, ""), 201, "")
		mail(m, "DELETE", box, openerSecret, "")
		requireMail(t, mail(m, "PUT", box, openerSecret, ""), 201, "")
		advance(time.Minute)
		requireMail(t, mail(m, "PUT", box+"/request", "", "cmVx"), 204, "") // the timer of the one before does not count
	})
}

// A reader that has gone, and five that came at once, keep nothing.
func TestMailboxReadersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMailboxes(t)
		requireMail(t, mail(m, "PUT", box, openerSecret, ""), 201, "")
		ctx, cancel := context.WithCancel(t.Context())
		var gone []<-chan string
		for range 4 {
			gone = append(gone, waiting(m, httptest.NewRequestWithContext(ctx, "GET", box+"/answer", nil)))
		}
		fifth := mail(m, "GET", box+"/answer", "", "")
		requireMail(t, fifth, 429, "others are waiting")
		if fifth.Header().Get("Retry-After") != "25" {
			t.Errorf("Retry-After %q", fifth.Header().Get("Retry-After"))
		}
		cancel()
		for _, answer := range gone {
			if got := <-answer; !strings.HasSuffix(got, "after 0s") {
				t.Errorf("a client that has gone is waited for: %s", got)
			}
		}
		if got := <-waiting(m, httptest.NewRequest("GET", box+"/answer", nil)); got != "204 after 25s" {
			t.Errorf("after they have gone: %s", got)
		}
	})
}

func TestMailboxesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMailboxes(t, relay.WithMaxMailboxes(2))
		path := func(i int) string { return fmt.Sprintf("/mailboxes/%032x", i) }
		for i := range 2 {
			requireMail(t, mail(m, "PUT", path(i), openerSecret, ""), 201, "")
		}
		full := mail(m, "PUT", path(2), openerSecret, "")
		requireMail(t, full, 503, "no room for another mailbox")
		if full.Header().Get("Retry-After") != "60" {
			t.Errorf("Retry-After %q", full.Header().Get("Retry-After"))
		}
		advance(10*time.Minute + time.Second)
		requireMail(t, mail(m, "PUT", path(2), openerSecret, ""), 201, "")
		m.Close()
		m.Close()
		requireMail(t, mail(m, "PUT", path(3), openerSecret, ""), 503, "shutting down")
	})
}

func TestMailboxRequestsAreCountedByAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMailboxes(t, relay.WithClientAddress(func(r *http.Request) string { return r.Header.Get("X-Real-Ip") }))
		from := func(address, method, path string) *httptest.ResponseRecorder {
			r := httptest.NewRequest(method, path, nil)
			r.Header.Set("X-Real-Ip", address)
			r.Header.Set("Authorization", "Bearer "+openerSecret)
			w := httptest.NewRecorder()
			m.ServeHTTP(w, r)
			return w
		}
		for i := range 10 {
			requireMail(t, from("192.0.2.1", "PUT", fmt.Sprintf("/mailboxes/%032x", i)), 201, "")
		}
		refused := from("192.0.2.1", "PUT", box)
		requireMail(t, refused, 429, "too many requests from this address")
		if refused.Header().Get("Retry-After") != "6" {
			t.Errorf("Retry-After %q", refused.Header().Get("Retry-After"))
		}
		requireMail(t, from("192.0.2.1", "GET", "/nothing"), 429, "")
		requireMail(t, from("192.0.2.2", "GET", "/nothing"), 404, "")
		advance(6 * time.Second)
		requireMail(t, from("192.0.2.1", "PUT", box), 201, "")
	})
}

// Of phones that come at the same time, one is told that its message was left, and that one's is read.
func TestMailboxIsFilledOnce(t *testing.T) {
	m := newMailboxes(t)
	requireMail(t, mail(m, "PUT", box, openerSecret, ""), 201, "")
	var wg sync.WaitGroup
	left := make(chan string, 10)
	for i := range 10 {
		wg.Go(func() {
			text := fmt.Sprintf("cmVx%04d", i)
			if mail(m, "PUT", box+"/request", "", text).Code == 204 {
				left <- text
			}
		})
	}
	wg.Wait()
	if len(left) != 1 {
		t.Fatalf("%d messages were left", len(left))
	}
	requireMail(t, mail(m, "GET", box+"/request", openerSecret, ""), 200, <-left)
}

func TestMailboxRefusesOtherSites(t *testing.T) {
	const page = "https://phone.example.com"
	m := newMailboxes(t, relay.WithMailboxOrigins(page))
	ask := func(method, path, origin, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+openerSecret)
		r.Header.Set("Origin", origin)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		if method == "OPTIONS" {
			r.Header.Set("Access-Control-Request-Method", "PUT")
		}
		w := httptest.NewRecorder()
		m.ServeHTTP(w, r)
		return w
	}
	requireMail(t, ask("PUT", box, "https://evil.example", ""), 403, "another site")
	requireMail(t, ask("PUT", box, "null", ""), 403, "another site")
	requireMail(t, ask("OPTIONS", box, "https://evil.example", ""), 405, "")
	preflight := ask("OPTIONS", box+"/request", page, "")
	requireMail(t, preflight, 204, "")
	if h := preflight.Header(); h.Get("Access-Control-Allow-Origin") != page || h.Get("Access-Control-Allow-Methods") != "GET, PUT, DELETE" {
		t.Errorf("preflight answered with %v", h)
	}
	requireMail(t, ask("PUT", box, page, ""), 201, "")
	requireMail(t, ask("PUT", box+"/request", page, "cmVx"), 204, "")
	if got := ask("GET", box+"/request", page, ""); got.Code != 200 || got.Header().Get("Access-Control-Allow-Origin") != page {
		t.Errorf("the page reads %d, %v", got.Code, got.Header())
	}
	if _, err := relay.NewMailboxes(relay.WithMailboxOrigins(page + "/")); err == nil {
		t.Error("an origin with a path is taken")
	}
}

func TestMailboxOptions(t *testing.T) {
	for name, opt := range map[string]relay.MailboxOption{
		"nil": nil, "no mailboxes": relay.WithMaxMailboxes(0), "no function": relay.WithClientAddress(nil), "any origin": relay.WithMailboxOrigins("*"),
	} {
		if _, err := relay.NewMailboxes(opt); err == nil || !strings.HasPrefix(err.Error(), "relay: ") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A server that shuts down waits for nobody who waits for a message.
func TestMailboxesEndWithTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMailboxes(t)
		requireMail(t, mail(m, "PUT", box, openerSecret, ""), 201, "")
		listener := make(pipeListener)
		server := &http.Server{Handler: m, WriteTimeout: time.Minute}
		server.RegisterOnShutdown(m.Close)
		go server.Serve(listener)
		client, conn := net.Pipe()
		defer client.Close()
		listener <- conn
		answer := make(chan string, 1)
		go func() {
			all, err := io.ReadAll(client)
			answer <- fmt.Sprint(string(all), err)
		}()
		fmt.Fprintf(client, "GET %s/answer HTTP/1.1\r\nHost: relay\r\n\r\n", box)
		synctest.Wait()
		close(listener) // the server's own close of it does nothing
		begin := time.Now()
		if err := server.Shutdown(t.Context()); err != nil || time.Since(begin) > time.Second {
			t.Errorf("shut down after %v, %v", time.Since(begin), err)
		}
		if got := <-answer; !strings.HasPrefix(got, "HTTP/1.1 204 ") {
			t.Errorf("answered %q", got)
		}
	})
}

func TestMailboxTakesNoSlowBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMailboxes(t)
		requireMail(t, mail(m, "PUT", box, openerSecret, ""), 201, "")
		listener := make(pipeListener)
		server := &http.Server{Handler: m}
		go server.Serve(listener)
		client, conn := net.Pipe()
		listener <- conn
		begin := time.Now()
		fmt.Fprintf(client, "PUT %s/request HTTP/1.1\r\nHost: relay\r\nContent-Length: 100\r\n\r\ncmVx", box)
		all, err := io.ReadAll(client)
		if !strings.HasPrefix(string(all), "HTTP/1.1 408 ") || time.Since(begin) > 11*time.Second {
			t.Errorf("after %v: %q, %v", time.Since(begin), all, err)
		}
		requireMail(t, mail(m, "PUT", box+"/request", "", "cmVx"), 204, "")
		close(listener)
		server.Close()
	})
}
