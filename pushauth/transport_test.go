package pushauth_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sealpush/sealpush/pushauth"
	"github.com/sealpush/sealpush/relayclient/relaytest"
)

const issueToken = `{"access_token":"tok","token_type":"Bearer","expires_in":3600}`

// push posts a notification to the relay and returns the status.
func push(t *testing.T, service *relaytest.BridgeService, transport http.RoundTripper) int {
	t.Helper()
	client := &http.Client{Transport: transport}
	resp, err := client.Post(service.RelayURL+"/push", "application/json", strings.NewReader(`{"title":"t","body":"b"}`))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

func wantRequests(t *testing.T, service *relaytest.BridgeService, pushes, tokens int) {
	t.Helper()
	if got := service.RequestCount(relaytest.EndpointPush); got != pushes {
		t.Fatalf("at %v: relay saw %d requests, want %d", time.Now(), got, pushes)
	}
	wantTokenRequests(t, service, tokens)
}

func TestTransportSendsTheToken(t *testing.T) {
	relay := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if got := r.Header.Get("Authorization"); got != "Bearer tok" || string(body) != "hello" || err != nil {
			t.Errorf("relay saw %q with body %q, error %v", got, body, err)
		}
	})
	transport := &pushauth.Transport{Source: newSource(t, status(200, issueToken)), Base: handlerTransport{relay}}
	req := httptest.NewRequest("POST", "https://relay.example/push", strings.NewReader("hello"))
	req.Header.Set("X-Mine", "1")
	body, before := req.Body, req.Header.Clone()
	resp, err := transport.RoundTrip(req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("answer %v, error %v", resp, err)
	}
	if diff := cmp.Diff(before, req.Header); diff != "" || req.Body != body {
		t.Errorf("the caller's request was modified: %s", diff)
	}
}

func TestTransportFetchesAnewAfterRotation(t *testing.T) {
	for name, later := range map[string]time.Duration{"at once": 0, "long after": 20 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service, source := newService(t)
				transport := &pushauth.Transport{Source: source, Base: service.Client().Transport}
				if code := push(t, service, transport); code != 200 {
					t.Fatalf("status %d", code)
				}
				advance(later)
				service.RotateKey()
				if code := push(t, service, transport); code != 200 {
					t.Fatalf("status %d", code)
				}
				wantRequests(t, service, 3, 2)
				if got := len(service.Pushes(clientID)); got != 2 {
					t.Errorf("%d pushes arrived", got)
				}
			})
		})
	}
}

// A token that no relay has taken yet is refused: it is replaced at once, however young it is.
func TestTransportReplacesAFreshToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, source := newService(t)
		transport := &pushauth.Transport{Source: source, Base: service.Client().Transport}
		mustToken(t, source)
		service.RotateKey()
		if code := push(t, service, transport); code != 200 {
			t.Errorf("status %d", code)
		}
		wantRequests(t, service, 2, 2)
	})
}

func TestRelayThatAlwaysAnswers401(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, source := newService(t)
		service.Script(relaytest.EndpointPush, relaytest.Always, relaytest.Answer{Status: 401})
		transport := &pushauth.Transport{Source: source, Base: service.Client().Transport}
		mustToken(t, source)
		advance(time.Second) // else the service would issue the same token once more
		for second := range 300 {
			if code := push(t, service, transport); code != 401 {
				t.Fatalf("status %d", code)
			}
			// Each call asks the relay once, and once more when it got another token: one in 30 s.
			fetches := 1 + second/30
			wantRequests(t, service, second+1+fetches, 1+fetches)
			advance(time.Second)
		}
	})
}

// relayFunc is a relay that gets the token of each request, with a token service that issues t1, t2, t3 and so on.
func relayFunc(t *testing.T, relay func(token string) int) (client *http.Client, fetched *atomic.Int64) {
	t.Helper()
	fetched = new(atomic.Int64)
	source := newSource(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"access_token":"t%d","expires_in":3600}`, fetched.Add(1))
	}))
	return &http.Client{Transport: &pushauth.Transport{Source: source, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
		code := relay(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		if code == 0 {
			return nil, errors.New("connection reset")
		}
		return &http.Response{StatusCode: code, Body: io.NopCloser(strings.NewReader(fmt.Sprint("answer ", code)))}, nil
	})}}, fetched
}

// Calls that are refused together share one fetch, and all of them use what it brings.
func TestCallsThatAreRefusedTogetherShareAFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, fetched := relayFunc(t, func(token string) int {
			if token == "t1" {
				advance(time.Second)
				return http.StatusUnauthorized
			}
			return http.StatusOK
		})
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				advance(time.Duration(i) * 100 * time.Millisecond) // some find the new token already there
				resp, err := client.Get("https://relay.example/")
				if err != nil || resp.StatusCode != http.StatusOK {
					t.Errorf("answer %v, error %v", resp, err)
				}
			})
		}
		wg.Wait()
		if got := fetched.Load(); got != 2 {
			t.Errorf("%d tokens were fetched, want 2", got)
		}
	})
}

func TestTheSameTokenIsNotSentTwice(t *testing.T) {
	var sent []string
	source := newSource(t, status(200, issueToken)) // always the same
	client := &http.Client{Transport: &pushauth.Transport{Source: source, Base: roundTripper(func(r *http.Request) (*http.Response, error) {
		sent = append(sent, r.Header.Get("Authorization"))
		return &http.Response{StatusCode: http.StatusUnauthorized, Body: http.NoBody}, nil
	})}}
	resp, err := client.Get("https://relay.example/")
	if err != nil || resp.StatusCode != http.StatusUnauthorized || len(sent) != 1 {
		t.Errorf("answer %v, error %v; sent %q", resp, err, sent)
	}
}

// The relay's 401 says more than the broken connection after it.
func TestFirst401IsTheAnswerWhenTheSecondAttemptGetsNone(t *testing.T) {
	client, _ := relayFunc(t, func(token string) int {
		if token == "t1" {
			return http.StatusUnauthorized
		}
		return 0
	})
	resp, err := client.Get("https://relay.example/")
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Fatalf("answer %v, error %v", resp, err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); string(body) != "answer 401" || err != nil {
		t.Errorf("body %q, error %v", body, err)
	}
}

// A token service that is down as well does not cost the token, which a relay may take again in a moment.
func TestRefusedTokenIsKeptUntilThereIsAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, source := newService(t)
		first := mustToken(t, source)
		service.Script(relaytest.EndpointToken, relaytest.Always, relaytest.Answer{Status: 503})
		service.Script(relaytest.EndpointPush, 1, relaytest.Answer{Status: 401})
		client := &http.Client{Transport: &pushauth.Transport{Source: source, Base: service.Client().Transport}}
		_, err := client.Post(service.RelayURL+"/push", "application/json", strings.NewReader(`{"title":"t","body":"b"}`))
		if failed, ok := errors.AsType[*pushauth.TokenError](err); !ok || failed.StatusCode != 503 || !strings.Contains(err.Error(), "answered 401") {
			t.Errorf("error %v", err)
		}
		if got := mustToken(t, source); !same(got, first) {
			t.Error("the token was dropped")
		}
		if code := push(t, service, client.Transport); code != 200 {
			t.Errorf("status %d", code)
		}
	})
}

func TestTransportCannotResendABodyThatIsGone(t *testing.T) {
	service, source := newService(t)
	transport := &pushauth.Transport{Source: source, Base: service.Client().Transport}
	service.Script(relaytest.EndpointPush, 1, relaytest.Answer{Status: 401, Body: "no"})
	req, err := http.NewRequest("POST", service.RelayURL+"/push", io.MultiReader(strings.NewReader(`{"title":"t","body":"b"}`)))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil || resp.StatusCode != 401 {
		t.Fatalf("answer %v, error %v", resp, err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); string(body) != "no" || err != nil {
		t.Errorf("the caller got %q of the answer, error %v", body, err)
	}
	wantRequests(t, service, 1, 1)
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
			name: "relay unreachable", service: status(200, issueToken), requests: 1, err: broken,
			base: func(*atomic.Int64) http.RoundTripper {
				return closing(func(*http.Request) (*http.Response, error) { return nil, broken })
			},
		}, {
			name: "401 twice", service: status(200, issueToken), getBody: true, requests: 2, answers: 1,
			base: func(answers *atomic.Int64) http.RoundTripper {
				return closing(func(*http.Request) (*http.Response, error) {
					return &http.Response{StatusCode: 401, Body: closeCounter{strings.NewReader("no"), answers}}, nil
				})
			},
		}, {
			name: "no second token", service: onceThen(`{"access_token":"tok"}`, 401), getBody: true, requests: 2, answers: 1, err: pushauth.ErrInvalidClient,
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
	for name, elsewhere := range map[string]string{
		"another host": "https://elsewhere.example/c",
		"another port": "https://relay.example:8443/c",
		"in the clear": "http://relay.example/c",
	} {
		t.Run(name, func(t *testing.T) {
			var seen []string
			hosts := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				seen = append(seen, r.URL.String())
				switch r.URL.Path {
				case "/a":
					http.Redirect(w, r, "/b", http.StatusTemporaryRedirect)
				case "/b":
					http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
				}
			})
			client := &http.Client{Transport: &pushauth.Transport{
				Source: newSource(t, status(200, issueToken)),
				Base:   handlerTransport{hosts},
			}}
			if _, err := client.Get("https://relay.example/a"); err == nil || !strings.Contains(err.Error(), "another origin") {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff([]string{"https://relay.example/a", "https://relay.example/b"}, seen); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTransportWithoutSource(t *testing.T) {
	if _, err := (&http.Client{Transport: &pushauth.Transport{}}).Get("https://relay.example/"); err == nil {
		t.Error("no error")
	}
}
