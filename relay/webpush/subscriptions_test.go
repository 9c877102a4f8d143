package webpush_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/relay/webpush"
	"github.com/sealpush/sealpush/secret"
)

func TestPublicKey(t *testing.T) {
	s := newSetup(t)
	a := request(t, s.subscriptions, http.MethodGet, "/subscriptions", "", "")
	if a.status != http.StatusOK || a.text("publicKey") != s.key.PublicKey() || len(a.body) != 1 || len(s.key.PublicKey()) != 87 {
		t.Errorf("%d %v", a.status, a.body)
	}
}

func TestSubscribing(t *testing.T) {
	s := newSetup(t)
	body := toJSON(t, s.service.Subscribe(), `"somethingNew":{"a":[1]}`)
	a := request(t, s.subscriptions, http.MethodPost, "/subscriptions", invitation, body)
	if a.status != http.StatusCreated || len(a.text("deviceToken")) != 64 || len(a.text("secret")) != 43 || len(a.body) != 2 {
		t.Fatalf("%d %v", a.status, a.body)
	}
	if a.header.Get("Cache-Control") != "no-store" || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", a.header)
	}
	// A replay makes another device token: it neither finds nor changes the first.
	again := request(t, s.subscriptions, http.MethodPost, "/subscriptions", invitation, body)
	if again.status != http.StatusCreated || again.text("deviceToken") == a.text("deviceToken") || again.text("secret") == a.text("secret") {
		t.Errorf("replayed: %d %v", again.status, again.body)
	}
	stored, err := s.store.Get(t.Context(), webpush.DeviceKey(a.text("deviceToken")))
	if err != nil {
		t.Fatal(err)
	}
	if all := fmt.Sprintf("%#v", stored); strings.Contains(all, a.text("secret")) || strings.Contains(all, a.text("deviceToken")) {
		t.Errorf("the store has the secret or the device token: %s", all)
	}
}

func TestWhoMaySubscribe(t *testing.T) {
	s := newSetup(t)
	body := toJSON(t, s.service.Subscribe())
	_, password := s.subscribe(t, s.service.Subscribe())
	for name, bearer := range map[string]string{
		"nobody":              "",
		"another":             "an-invitation-of-somebody-else",
		"a shorter one":       invitation[1:],
		"a longer one":        invitation + "x",
		"in upper case":       strings.ToUpper(invitation),
		"another's secret":    password,
		"more than fits here": strings.Repeat("x", 10_000),
	} {
		a := request(t, s.subscriptions, http.MethodPost, "/subscriptions", bearer, body)
		if a.status != http.StatusUnauthorized || a.header.Get("WWW-Authenticate") == "" || a.text("error") == "" {
			t.Errorf("%s: %d %v", name, a.status, a.body)
		}
	}
	if a := request(t, s.subscriptions, http.MethodPost, "/subscriptions", "", body, "Authorization", "Basic "+invitation); a.status != http.StatusUnauthorized {
		t.Errorf("by another scheme: %d", a.status)
	}
}

func TestSecretsAreOfOneDeviceToken(t *testing.T) {
	s := newSetup(t)
	mine, theirs := s.service.Subscribe(), s.service.Subscribe()
	token, password := s.subscribe(t, mine)
	otherToken, otherPassword := s.subscribe(t, theirs)
	unknown := strings.Repeat("0", 64)
	evil := s.service.Subscribe()
	texts := map[string]bool{}
	for name, wrong := range map[string]struct{ token, bearer string }{
		"another's secret":    {token, otherPassword},
		"the invitation":      {token, invitation},
		"a device token":      {token, token},
		"a wrong secret":      {token, strings.Repeat("A", 43)},
		"a piece of a secret": {token, password[1:]},
		"an unknown token":    {unknown, password},
		"another's token":     {otherToken, password},
		"no token":            {"x", password},
	} {
		post := request(t, s.subscriptions, http.MethodPost, "/subscriptions", wrong.bearer, toJSON(t, evil, `"deviceToken":"`+wrong.token+`"`))
		wantPost := http.StatusNotFound
		if len(wrong.bearer) != 43 && wrong.bearer != invitation {
			wantPost = http.StatusUnauthorized // it is no secret at all
		}
		if post.status != wantPost {
			t.Errorf("%s: POST: %d %v", name, post.status, post.body)
		}
		del := request(t, s.subscriptions, http.MethodDelete, "/subscriptions/"+wrong.token, wrong.bearer, "")
		if del.status != http.StatusNotFound {
			t.Errorf("%s: DELETE: %d %v", name, del.status, del.body)
		}
		texts[del.text("error")] = true
	}
	if len(texts) != 1 {
		t.Errorf("it tells unknown device tokens from wrong secrets: %v", texts)
	}
	for id, device := range []string{token, otherToken} {
		if a := page(t, s.relay, device, id, "passive"); a.status != http.StatusAccepted {
			t.Fatalf("afterwards: %d %v", a.status, a.body)
		}
	}
	for _, m := range s.service.Messages() {
		if m.Endpoint == evil.Endpoint {
			t.Error("alerts go to another browser")
		}
	}

	path := "/subscriptions/" + token
	if a := request(t, s.subscriptions, http.MethodDelete, path, password, ""); a.status != http.StatusNoContent || a.body != nil {
		t.Errorf("DELETE: %d %v", a.status, a.body)
	}
	if a := request(t, s.subscriptions, http.MethodDelete, path, password, ""); a.status != http.StatusNotFound {
		t.Errorf("DELETE replayed: %d %v", a.status, a.body)
	}
	if a := page(t, s.relay, token, 9, "passive"); a.status != http.StatusGone {
		t.Errorf("a page for the deleted one: %d %v", a.status, a.body)
	}
	if a := request(t, s.subscriptions, http.MethodPost, "/subscriptions", password, toJSON(t, mine, `"deviceToken":"`+token+`"`)); a.status != http.StatusNotFound {
		t.Errorf("re-subscribing the deleted one: %d %v", a.status, a.body)
	}
}

func TestEndpointsThatAreRefused(t *testing.T) {
	s := newSetup(t)
	subscription := s.service.Subscribe()
	for endpoint, want := range map[string]int{
		"https://fcm.googleapis.com/fcm/send/abc":               http.StatusCreated,
		"https://FCM.googleapis.com/fcm/send/abc":               http.StatusCreated,
		"https://fcm.googleapis.com:443/fcm/send/abc":           http.StatusCreated,
		"https://updates.push.services.mozilla.com/wpush/v2/x":  http.StatusCreated,
		"https://web.push.apple.com/x":                          http.StatusCreated,
		"https://wns2-par02p.notify.windows.com/w/?token=x%2by": http.StatusCreated,

		"http://fcm.googleapis.com/fcm/send/abc":      http.StatusUnprocessableEntity,
		"https://fcm.googleapis.com:8443/x":           http.StatusUnprocessableEntity,
		"https://fcm.googleapis.com./x":               http.StatusUnprocessableEntity,
		"https://fcm.googleapis.com.evil.example/x":   http.StatusUnprocessableEntity,
		"https://evil-fcm.googleapis.com/x":           http.StatusUnprocessableEntity,
		"https://evilnotify.windows.com/x":            http.StatusUnprocessableEntity,
		"https://notify.windows.com/x":                http.StatusUnprocessableEntity,
		"https://push.example.com/x":                  http.StatusUnprocessableEntity,
		"https://127.0.0.1/x":                         http.StatusUnprocessableEntity,
		"https://2130706433/x":                        http.StatusUnprocessableEntity,
		"https://0x7f.1/x":                            http.StatusUnprocessableEntity,
		"https://[::1]/x":                             http.StatusUnprocessableEntity,
		"https://localhost/x":                         http.StatusUnprocessableEntity,
		"https://169.254.169.254/latest/meta-data":    http.StatusUnprocessableEntity,
		"https://user:pass@fcm.googleapis.com/x":      http.StatusUnprocessableEntity,
		"https://fcm.googleapis.com@127.0.0.1/x":      http.StatusUnprocessableEntity,
		`https://127.0.0.1\\@fcm.googleapis.com/x`:    http.StatusUnprocessableEntity,
		"https://127.0.0.1#@fcm.googleapis.com/x":     http.StatusUnprocessableEntity,
		"https://fcm.googleapis.com/x#fragment":       http.StatusUnprocessableEntity,
		"//fcm.googleapis.com/x":                      http.StatusUnprocessableEntity,
		"file:///etc/passwd":                          http.StatusUnprocessableEntity,
		"https:fcm.googleapis.com":                    http.StatusUnprocessableEntity,
		"https://fcm.googleapis.com/ x":               http.StatusUnprocessableEntity,
		"https://fcm.googleapis.com/\\r\\nHost: evil": http.StatusUnprocessableEntity,
		"": http.StatusUnprocessableEntity,
		"https://fcm.googleapis.com/" + long(2100, "x"):   http.StatusUnprocessableEntity,
		"https://" + long(300, "a") + ".googleapis.com/x": http.StatusUnprocessableEntity,
	} {
		body := strings.Replace(toJSON(t, subscription), subscription.Endpoint, endpoint, 1)
		if a := request(t, s.subscriptions, http.MethodPost, "/subscriptions", invitation, body); a.status != want {
			t.Errorf("%.80s: %d %v", endpoint, a.status, a.body)
		}
	}
}

func long(n int, s string) string { return strings.Repeat(s, n) }

// newAddresses gives each request another client address.
func newAddresses() func(*http.Request) string {
	n := 0
	return func(*http.Request) string {
		n++
		return fmt.Sprintf("192.0.%d.%d", n>>8, n&255)
	}
}

func TestBodiesThatAreRefused(t *testing.T) {
	s := newSetup(t)
	good := toJSON(t, s.service.Subscribe())
	keys := func(p256dh, auth string) string {
		return fmt.Sprintf(`{"endpoint":"https://fcm.googleapis.com/x","keys":{"p256dh":%q,"auth":%q}}`, p256dh, auth)
	}
	point, auth := browserKeys.P256DH, browserKeys.Auth
	for name, test := range map[string]struct {
		body string
		want int
	}{
		"empty":             {"", http.StatusBadRequest},
		"no JSON":           {"endpoint=https://fcm.googleapis.com/x", http.StatusBadRequest},
		"two":               {good + good, http.StatusBadRequest},
		"null":              {"null", http.StatusBadRequest},
		"an array":          {"[" + good + "]", http.StatusBadRequest},
		"no keys":           {`{"endpoint":"https://fcm.googleapis.com/x"}`, http.StatusBadRequest},
		"keys of numbers":   {`{"endpoint":"https://fcm.googleapis.com/x","keys":{"p256dh":1,"auth":2}}`, http.StatusBadRequest},
		"short point":       {keys(point[4:], auth), http.StatusBadRequest},
		"not on the curve":  {keys("BA"+long(85, "A"), auth), http.StatusBadRequest},
		"point at infinity": {keys("AA", auth), http.StatusBadRequest},
		"padded":            {keys(point+"=", auth), http.StatusBadRequest},
		"line break":        {keys(point[:40]+"\n"+point[40:], auth), http.StatusBadRequest},
		"short auth":        {keys(point, auth[:20]), http.StatusBadRequest},
		"long auth":         {keys(point, auth+"AAAA"), http.StatusBadRequest},
		"standard base64":   {keys(strings.Replace(point, "-", "+", 1), auth), http.StatusBadRequest},
		"token of a number": {toJSON(t, s.service.Subscribe(), `"deviceToken":7`), http.StatusBadRequest},
		"too large":         {strings.TrimSuffix(good, "}") + `,"x":"` + long(8<<10, "x") + `"}`, http.StatusRequestEntityTooLarge},
		"deep":              {long(4000, "["), http.StatusBadRequest},
	} {
		a := request(t, s.subscriptions, http.MethodPost, "/subscriptions", invitation, test.body)
		if a.status != test.want || a.text("error") == "" {
			t.Errorf("%s: %d %v", name, a.status, a.body)
		}
		if strings.Contains(a.text("error"), auth) || strings.Contains(a.text("error"), point) {
			t.Errorf("%s: quotes the keys: %v", name, a.body)
		}
	}
}

func TestMethodsAndPaths(t *testing.T) {
	s := newSetup(t)
	for _, test := range []struct {
		method, path string
		want         int
		allow        string
	}{
		{http.MethodPut, "/subscriptions", http.StatusMethodNotAllowed, "GET, HEAD, POST"},
		{http.MethodDelete, "/subscriptions", http.StatusMethodNotAllowed, "GET, HEAD, POST"},
		{http.MethodOptions, "/subscriptions", http.StatusMethodNotAllowed, "GET, HEAD, POST"},
		{http.MethodGet, "/subscriptions/" + long(64, "0"), http.StatusMethodNotAllowed, "DELETE"},
		{http.MethodPost, "/subscriptions/" + long(64, "0"), http.StatusMethodNotAllowed, "DELETE"},
		{http.MethodDelete, "/subscriptions/", http.StatusNotFound, ""},
		{http.MethodDelete, "/subscriptions/a/b", http.StatusNotFound, ""},
		{http.MethodGet, "/", http.StatusNotFound, ""},
	} {
		a := request(t, s.subscriptions, test.method, test.path, invitation, "")
		if a.status != test.want || a.header.Get("Allow") != test.allow {
			t.Errorf("%s %s: %d %v, Allow %q", test.method, test.path, a.status, a.body, a.header.Get("Allow"))
		}
	}
}

// A page of another site can do nothing with an invitation that it has got hold of,
// in the browser of somebody who is let through to the relay.
func TestCrossSiteRequests(t *testing.T) {
	s := newSetup(t)
	body := toJSON(t, s.service.Subscribe())
	token, password := s.subscribe(t, s.service.Subscribe())
	for name, header := range map[string][]string{
		"cross-site":         {"Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example"},
		"same-site":          {"Sec-Fetch-Site", "same-site", "Origin", "https://other.relay.example"},
		"an older browser":   {"Origin", "https://evil.example"},
		"a sandboxed frame":  {"Origin", "null"},
		"a longer name":      {"Origin", "https://phone.example.evil.example"},
		"without encryption": {"Origin", "http://phone.example"},
	} {
		strict := newSubscriptions(t, s.forwarder, webpush.WithOrigins("https://phone.example"))
		for _, h := range []*webpush.Subscriptions{s.subscriptions, strict} {
			a := request(t, h, http.MethodPost, "/subscriptions", invitation, body, header...)
			if a.status != http.StatusForbidden || a.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s: POST: %d %v", name, a.status, a.body)
			}
			a = request(t, h, http.MethodDelete, "/subscriptions/"+token, password, "", header...)
			if a.status != http.StatusForbidden {
				t.Errorf("%s: DELETE: %d %v", name, a.status, a.body)
			}
			a = request(t, h, http.MethodOptions, "/subscriptions", "", "", append(header, "Access-Control-Request-Method", "POST")...)
			if a.status < 400 || a.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s: preflight: %d %v", name, a.status, a.header)
			}
		}
	}
	for name, header := range map[string][]string{
		"the page itself":   {"Sec-Fetch-Site", "same-origin", "Origin", "https://relay.example"},
		"an older browser":  {"Origin", "https://relay.example"},
		"no browser":        nil,
		"typed by somebody": {"Sec-Fetch-Site", "none"},
		"a page of its own": {"Sec-Fetch-Site", "same-origin"},
	} {
		if a := request(t, s.subscriptions, http.MethodPost, "/subscriptions", invitation, body, header...); a.status != http.StatusCreated {
			t.Errorf("%s: %d %v", name, a.status, a.body)
		}
	}
}

func TestOtherOrigins(t *testing.T) {
	s := newSetup(t)
	const origin = "https://phone.example"
	h := newSubscriptions(t, s.forwarder, webpush.WithOrigins(origin))
	a := request(t, h, http.MethodOptions, "/subscriptions", "", "", "Origin", origin, "Sec-Fetch-Site", "cross-site",
		"Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization, content-type")
	if a.status != http.StatusNoContent || a.header.Get("Access-Control-Allow-Origin") != origin || !strings.Contains(a.header.Get("Access-Control-Allow-Headers"), "Authorization") {
		t.Errorf("preflight: %d %v", a.status, a.header)
	}
	a = request(t, h, http.MethodPost, "/subscriptions", invitation, toJSON(t, s.service.Subscribe()), "Origin", origin, "Sec-Fetch-Site", "cross-site")
	if a.status != http.StatusCreated || a.header.Get("Access-Control-Allow-Origin") != origin {
		t.Errorf("subscribing: %d %v %v", a.status, a.body, a.header)
	}
	a = request(t, h, http.MethodPost, "/subscriptions", "wrong", "", "Origin", origin, "Sec-Fetch-Site", "cross-site")
	if a.status != http.StatusUnauthorized || a.header.Get("Access-Control-Allow-Origin") != origin {
		t.Errorf("the page cannot read why it is refused: %d %v", a.status, a.header)
	}
}

// A client that asks without end is slowed down, and others are not.
func TestRateLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newForwarder(t, webpush.GenerateKey(), webpush.NewMemoryStore())
		from := "192.0.2.1:4711"
		h := newSubscriptions(t, f, webpush.WithClientAddress(func(*http.Request) string { return from }))
		guess := func() answer {
			return request(t, h, http.MethodPost, "/subscriptions", "a-wrong-invitation", "")
		}
		for n := range 6 {
			if a := guess(); a.status != http.StatusUnauthorized {
				t.Fatalf("guess %d: %d %v", n, a.status, a.body)
			}
		}
		if a := guess(); a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != "10" {
			t.Errorf("the seventh guess: %d %v, Retry-After %q", a.status, a.body, a.header.Get("Retry-After"))
		}
		from = "192.0.2.2:4711"
		if a := guess(); a.status != http.StatusUnauthorized {
			t.Errorf("another client: %d %v", a.status, a.body)
		}
		from = "192.0.2.1:4712"
		time.Sleep(10 * time.Second)
		if a := guess(); a.status != http.StatusUnauthorized {
			t.Errorf("after 10 s: %d %v", a.status, a.body)
		}
	})
}

// Over a connection, a body that does not come is not waited for beyond 10 s, and
// what nobody reads does not stay in it.
func TestRefusalsEndTheConnection(t *testing.T) {
	s := newSetup(t)
	server := httptest.NewServer(s.subscriptions)
	defer server.Close()
	reader, writer := io.Pipe()
	defer writer.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/subscriptions", reader)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer wrong")
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized || !resp.Close {
		t.Errorf("%s, closed %t", resp.Status, resp.Close)
	}
}

// A stalled is a connection on which no more of the body comes.
type stalled struct {
	*httptest.ResponseRecorder
	body *io.PipeWriter
}

func (s stalled) SetReadDeadline(time.Time) error {
	return s.body.CloseWithError(os.ErrDeadlineExceeded)
}

func TestSlowBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSubscriptions(t, newForwarder(t, webpush.GenerateKey(), webpush.NewMemoryStore()))
		body, end := io.Pipe()
		go end.Write([]byte(`{"endpoint":`))
		r := httptest.NewRequest(http.MethodPost, "/subscriptions", body)
		r.Header.Set("Authorization", "Bearer "+invitation)
		w, start := stalled{httptest.NewRecorder(), end}, time.Now()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusRequestTimeout || w.Header().Get("Connection") != "close" || time.Since(start) != 10*time.Second {
			t.Errorf("%d %s after %v", w.Code, w.Body, time.Since(start))
		}
	})
}

func TestStoreOfSubscriptionsThatIsNotReached(t *testing.T) {
	s := newSetup(t)
	h := newSubscriptions(t, newForwarder(t, s.key, broken{}))
	a := request(t, h, http.MethodDelete, "/subscriptions/"+long(64, "0"), long(43, "A"), "")
	if a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" || strings.Contains(a.text("error"), "database") {
		t.Errorf("%d %v", a.status, a.body)
	}
}

func TestSubscriptionsOptionsThatAreRefused(t *testing.T) {
	f := newForwarder(t, webpush.GenerateKey(), webpush.NewMemoryStore())
	good := secret.New(invitation)
	for name, err := range map[string]error{
		"no forwarder":     second(webpush.NewSubscriptions(nil, good)),
		"no invitation":    second(webpush.NewSubscriptions(f, secret.Text{})),
		"short invitation": second(webpush.NewSubscriptions(f, secret.New("123456789012345"))),
		"spaces":           second(webpush.NewSubscriptions(f, secret.New("an invitation with spaces"))),
		"nil option":       second(webpush.NewSubscriptions(f, good, nil)),
		"no room":          second(webpush.NewSubscriptions(f, good, webpush.WithMaxSubscriptions(0))),
		"no address":       second(webpush.NewSubscriptions(f, good, webpush.WithClientAddress(nil))),
		"all origins":      second(webpush.NewSubscriptions(f, good, webpush.WithOrigins("*"))),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), "webpush: ") || strings.Contains(err.Error(), invitation) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
