package pushauth_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sealpush/sealpush/pushauth"
)

// relay notes the token and the body of each request and answers as told.
type relay struct {
	answer func(token string) int
	seen   []string // "token body"
}

func (r *relay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, _ := io.ReadAll(req.Body)
	token := strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")
	r.seen = append(r.seen, strings.TrimSpace(token+" "+string(body)))
	w.WriteHeader(r.answer(token))
}

func always(code int) func(string) int { return func(string) int { return code } }

func post(t *testing.T, transport http.RoundTripper, body string) int {
	t.Helper()
	resp, err := (&http.Client{Transport: transport}).Post("https://relay.example/push", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func TestTransportSendsTheToken(t *testing.T) {
	service, relay := &tokenService{}, &relay{answer: always(200)}
	transport := &pushauth.Transport{Source: newSource(t, service), Base: handlerTransport{relay}}
	req := httptest.NewRequest("POST", "https://relay.example/push", strings.NewReader("hello"))
	before := req.Clone(t.Context())
	resp, err := transport.RoundTrip(req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("answer %v, error %v", resp, err)
	}
	if diff := cmp.Diff([]string{"tok-1 hello"}, relay.seen); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before.Header, req.Header); diff != "" {
		t.Errorf("the caller's request was modified: %s", diff)
	}
}

func TestTransportFetchesAnewAfterRotation(t *testing.T) {
	for name, later := range map[string]time.Duration{"at once": 0, "long after": 20 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				good := "tok-1"
				service := &tokenService{}
				relay := &relay{answer: func(token string) int {
					if token != good {
						return 401
					}
					return 200
				}}
				transport := &pushauth.Transport{Source: newSource(t, service), Base: handlerTransport{relay}}
				if code := post(t, transport, "a"); code != 200 {
					t.Fatalf("status %d", code)
				}
				time.Sleep(later)
				good = "tok-2"
				if code := post(t, transport, "b"); code != 200 {
					t.Fatalf("status %d", code)
				}
				if diff := cmp.Diff([]string{"tok-1 a", "tok-1 b", "tok-2 b"}, relay.seen); diff != "" {
					t.Error(diff)
				}
				wantRequests(t, service, 2)
			})
		})
	}
}

func TestTransportReplacesATokenThatOutlivedItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &tokenService{}
		relay := &relay{answer: func(token string) int {
			if token == "tok-1" {
				return 401
			}
			return 200
		}}
		source := newSource(t, service)
		wantToken(t, source, "tok-1") // and no relay ever took it
		transport := &pushauth.Transport{Source: source, Base: handlerTransport{relay}}
		time.Sleep(30*time.Second - 1)
		if code := post(t, transport, "a"); code != 401 {
			t.Errorf("status %d", code)
		}
		time.Sleep(1)
		if code := post(t, transport, "b"); code != 200 {
			t.Errorf("status %d", code)
		}
		if diff := cmp.Diff([]string{"tok-1 a", "tok-1 a", "tok-1 b", "tok-2 b"}, relay.seen); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRelayThatAlwaysAnswers401(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, relay := &tokenService{}, &relay{answer: always(401)}
		transport := &pushauth.Transport{Source: newSource(t, service), Base: handlerTransport{relay}}
		for second := range 300 {
			if code := post(t, transport, "x"); code != 401 {
				t.Fatalf("status %d", code)
			}
			if got, want := len(relay.seen), 2*(second+1); got != want {
				t.Fatalf("after %d calls the relay saw %d requests, want %d", second+1, got, want)
			}
			wantRequests(t, service, int64(1+second/30))
			time.Sleep(time.Second)
		}
	})
}

func TestTransportCannotResendABodyThatIsGone(t *testing.T) {
	service, relay := &tokenService{}, &relay{answer: always(401)}
	transport := &pushauth.Transport{Source: newSource(t, service), Base: handlerTransport{relay}}
	req := httptest.NewRequest("POST", "https://relay.example/push", io.MultiReader(strings.NewReader("once")))
	resp, err := transport.RoundTrip(req)
	if err != nil || resp.StatusCode != 401 {
		t.Fatalf("answer %v, error %v", resp, err)
	}
	if diff := cmp.Diff([]string{"tok-1 once"}, relay.seen); diff != "" {
		t.Error(diff)
	}
}

// closeCounter is a body that knows how often it was closed.
type closeCounter struct {
	io.Reader
	closed *atomic.Int64
}

func (c closeCounter) Close() error { c.closed.Add(1); return nil }

func TestTransportClosesBodies(t *testing.T) {
	broken := errors.New("broken pipe")
	closing := func(answer func(*http.Request) (*http.Response, error)) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) { r.Body.Close(); return answer(r) })
	}
	tests := []struct {
		name     string
		service  http.Handler
		base     func(answers *atomic.Int64) http.RoundTripper
		getBody  bool
		requests int64 // request bodies opened, all of which are to be closed
		answers  int64 // response bodies that the caller never sees
		err      error
	}{
		{
			name: "no token", service: status(401, ``), requests: 1, err: pushauth.ErrInvalidClient,
			base: func(*atomic.Int64) http.RoundTripper { return nil },
		}, {
			name: "relay unreachable", service: status(200, `{"access_token":"t","expires_in":3600}`), requests: 1, err: broken,
			base: func(*atomic.Int64) http.RoundTripper {
				return closing(func(*http.Request) (*http.Response, error) { return nil, broken })
			},
		}, {
			name: "401 twice", service: status(200, `{"access_token":"t","expires_in":3600}`), getBody: true, requests: 2, answers: 1,
			base: func(answers *atomic.Int64) http.RoundTripper {
				return closing(func(*http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 401, Body: closeCounter{strings.NewReader("no"), answers}}, nil
				})
			},
		}, {
			name: "no second token", service: onceThen(`{"access_token":"t"}`, 401), getBody: true, requests: 2, answers: 1, err: pushauth.ErrInvalidClient,
			base: func(answers *atomic.Int64) http.RoundTripper {
				return closing(func(*http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 401, Body: closeCounter{strings.NewReader("no"), answers}}, nil
				})
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var requests, answers atomic.Int64
			transport := &pushauth.Transport{Source: newSource(t, tt.service), Base: tt.base(&answers)}
			req := httptest.NewRequest("POST", "https://relay.example/push", nil)
			req.Body = closeCounter{strings.NewReader("x"), &requests}
			if tt.getBody {
				req.GetBody = func() (io.ReadCloser, error) { return closeCounter{strings.NewReader("x"), &requests}, nil }
			}
			_, err := transport.RoundTrip(req)
			if !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			if requests.Load() != tt.requests || answers.Load() != tt.answers {
				t.Errorf("closed %d request and %d answer bodies, want %d and %d", requests.Load(), answers.Load(), tt.requests, tt.answers)
			}
		})
	}
}

// onceThen answers 200 with body the first time and with the status from then on.
func onceThen(body string, code int) http.HandlerFunc {
	var calls atomic.Int64
	return func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) > 1 {
			w.WriteHeader(code)
			return
		}
		io.WriteString(w, body)
	}
}

func TestTransportCarriesNoTokenToAnotherOrigin(t *testing.T) {
	relay := &relay{}
	source := newSource(t, &tokenService{})
	elsewhere := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Host != "relay.example" {
			t.Errorf("%s saw %q", r.URL.Host, r.Header.Get("Authorization"))
			return
		}
		relay.seen = append(relay.seen, r.URL.Path)
		switch r.URL.Path {
		case "/a":
			http.Redirect(w, r, "/b", http.StatusTemporaryRedirect)
		case "/b":
			http.Redirect(w, r, "https://elsewhere.example/c", http.StatusTemporaryRedirect)
		}
	})
	client := &http.Client{Transport: &pushauth.Transport{Source: source, Base: handlerTransport{elsewhere}}}
	if _, err := client.Get("https://relay.example/a"); err == nil || !strings.Contains(err.Error(), "another origin") {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff([]string{"/a", "/b"}, relay.seen); diff != "" {
		t.Error(diff)
	}
}

func TestTransportWithoutSource(t *testing.T) {
	if _, err := (&http.Client{Transport: &pushauth.Transport{}}).Get("https://relay.example/"); err == nil {
		t.Error("no error")
	}
}
