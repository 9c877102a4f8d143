package pushauth_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/pushauth"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
)

// same says whether two tokens are one.
func same(a, b pushauth.Token) bool { return a.Value.Equal(b.Value) && a.Expiry.Equal(b.Expiry) }

func TestTokenIsUsedUntilLessThanAMinuteRemains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, source := newService(t)
		first := mustToken(t, source)
		if want := time.Now().Add(time.Hour); !first.Expiry.Equal(want) {
			t.Errorf("expires %v, want %v", first.Expiry, want)
		}
		advance(59*time.Minute - 1)
		mustToken(t, source)
		advance(time.Nanosecond) // 60 s remain
		mustToken(t, source)
		wantTokenRequests(t, service, 1)
		advance(time.Nanosecond) // less than 60 s remain
		if second := mustToken(t, source); same(second, first) {
			t.Error("the token was not refreshed")
		}
		wantTokenRequests(t, service, 2)
	})
}

func TestOneRequestForAllWaiters(t *testing.T) {
	for name, age := range map[string]time.Duration{"first token": 0, "expired": time.Hour, "about to expire": 59*time.Minute + 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service, source := newService(t)
				before := 0
				if age > 0 {
					mustToken(t, source)
					before = 1
					advance(age)
				}
				release := make(chan struct{})
				service.Script(relaytest.EndpointToken, 1, relaytest.Answer{Hold: release})
				values := make(map[string]int)
				var mu sync.Mutex
				var wg sync.WaitGroup
				for range 50 {
					wg.Go(func() {
						token, err := source.Token(t.Context())
						if err != nil {
							t.Error(err)
						}
						mu.Lock()
						defer mu.Unlock()
						values[token.Value.Reveal()]++
					})
				}
				synctest.Wait()
				close(release)
				wg.Wait()
				wantTokenRequests(t, service, before+1)
				if len(values) != 1 {
					t.Errorf("the callers got %d different tokens", len(values))
				}
			})
		})
	}
}

func TestCallerWhoGivesUpFailsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, source := newService(t)
		service.Script(relaytest.EndpointToken, 1, relaytest.Answer{Delay: 5 * time.Second})
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { // the first caller, whose context must not be the request's
			if _, err := source.Token(impatient); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("impatient caller: %v", err)
			}
		})
		synctest.Wait()
		mustToken(t, source)
		wg.Wait()
		wantTokenRequests(t, service, 1)
	})
}

func TestFetchEndsWhenNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan time.Time, 1)
		hanging := roundTripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			ended <- time.Now()
			return nil, r.Context().Err()
		})
		source, err := pushauth.NewSource(credentials, quiet, pushauth.WithHTTPClient(&http.Client{Transport: hanging}))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for name, patience := range map[string]time.Duration{"first": time.Second, "last": 2 * time.Second} {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				if _, err := source.Token(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s caller: %v", name, err)
				}
			}()
		}
		if after := (<-ended).Sub(start); after != 2*time.Second {
			t.Errorf("the request went on for %v", after)
		}
		synctest.Wait()
	})
}

func TestAbandonedFetchIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, source := newService(t)
		service.Script(relaytest.EndpointToken, 1, relaytest.Answer{Delay: 5 * time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := source.Token(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		synctest.Wait()
		mustToken(t, source) // at once, with a request of its own
		wantTokenRequests(t, service, 2)
	})
}

func TestFetchIsBoundedByTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, source := newService(t)
		service.Script(relaytest.EndpointToken, relaytest.Always, relaytest.Answer{Delay: time.Hour})
		start := time.Now()
		_, err := source.Token(t.Context())
		failed, ok := errors.AsType[*pushauth.TokenError](err)
		if !ok || failed.StatusCode != 0 || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestCancelledCallerMakesNoRequest(t *testing.T) {
	service, source := newService(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := source.Token(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	wantTokenRequests(t, service, 0)
}

func TestRefreshThatFailsKeepsTheOldToken(t *testing.T) {
	tests := []struct {
		name   string
		answer relaytest.Answer
		hold   time.Duration
	}{
		{"refused", relaytest.Answer{Status: 400, Body: `{"ok":false,"error":"broken"}`}, 5 * time.Second},
		{"wrong credentials", relaytest.Answer{Status: 401, Body: `{"ok":false,"error":"broken"}`}, 60 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				service, source := newService(t, pushauth.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				first := mustToken(t, source)
				advance(59*time.Minute + 1)
				service.Script(relaytest.EndpointToken, relaytest.Always, tt.answer)
				requests := 1
				for at := time.Duration(0); at < time.Minute-1; at += tt.hold {
					for range 2 { // the second call within the hold makes no request
						if got := mustToken(t, source); !same(got, first) {
							t.Fatalf("token %v", got)
						}
					}
					requests++
					wantTokenRequests(t, service, requests)
					advance(min(tt.hold, time.Minute-2-at) - 1) // the token lives for a minute less a nanosecond
					mustToken(t, source)
					wantTokenRequests(t, service, requests)
					advance(time.Nanosecond)
				}
				mustToken(t, source) // in its last nanosecond
				advance(time.Nanosecond)
				if token, err := source.Token(t.Context()); err == nil {
					t.Errorf("got %v after its end", token)
				}
				if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "broken") {
					t.Errorf("log: %s", &log)
				}
				service.ClearScript()
				advance(time.Minute)
				if same(mustToken(t, source), first) {
					t.Error("the old token came back")
				}
			})
		})
	}
}

// A token service that is away is asked for as long as a fetch may take; then the old token serves, until its end.
func TestRefreshThatFindsNobodyKeepsTheOldToken(t *testing.T) {
	tests := []struct {
		name   string
		answer relaytest.Answer
		takes  time.Duration
	}{
		{"hangs", relaytest.Answer{Delay: time.Hour}, 10 * time.Second},
		{"no connection", relaytest.Answer{Drop: true}, 1750 * time.Millisecond},
		{"down", relaytest.Answer{Status: 503}, 1750 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service, source := newService(t)
				first := mustToken(t, source)
				advance(59*time.Minute + 1)
				service.Script(relaytest.EndpointToken, relaytest.Always, tt.answer)
				start := time.Now()
				if got := mustToken(t, source); !same(got, first) {
					t.Errorf("token %v", got)
				}
				if took := time.Since(start); took != tt.takes {
					t.Errorf("took %v, want %v", took, tt.takes)
				}
				advance(time.Until(first.Expiry))
				if token, err := source.Token(t.Context()); err == nil {
					t.Errorf("got %v after its end", token)
				}
			})
		})
	}
}

func TestFailedFetchIsNotRepeatedAtOnce(t *testing.T) {
	slowDown := func(retryAfter string) relaytest.Answer {
		return relaytest.Answer{Status: 429, Header: http.Header{"Retry-After": {retryAfter}}}
	}
	redirect := relaytest.Answer{Status: 307, Header: http.Header{"Location": {"https://bob:hunter2@new.example/v2?key=topsecret"}}}
	tests := []struct {
		name     string
		answer   relaytest.Answer
		requests int // that one fetch makes, its retries included
		hold     time.Duration
	}{
		{"wrong credentials", relaytest.Answer{Status: 401, Body: `{"ok":false,"error":"invalid_client"}`}, 1, 60 * time.Second},
		{"bad request", relaytest.Answer{Status: 400}, 1, 5 * time.Second},
		{"not there", relaytest.Answer{Status: 404, Body: `<html>`}, 1, 5 * time.Second},
		{"redirect", redirect, 1, 5 * time.Second},
		{"down", relaytest.Answer{Status: 503, Body: `down`}, 4, 5 * time.Second},
		{"captive portal", relaytest.Answer{Status: 200, Body: `<html>log in</html>`}, 1, 5 * time.Second},
		{"no answer", relaytest.Answer{Drop: true}, 4, 5 * time.Second},
		{"slow down", slowDown("20"), 1, 20 * time.Second},
		{"slow down a little", slowDown("1"), 1, 5 * time.Second},
		{"slow down for ever", slowDown("99999999999999999999"), 1, 60 * time.Second},
		{"slow down backwards", slowDown("-3"), 1, 5 * time.Second},
		{"slow down until a date", slowDown("Sat, 01 Jan 2000 00:00:30 GMT"), 1, 30 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service, source := newService(t)
				service.Script(relaytest.EndpointToken, relaytest.Always, tt.answer)
				_, err := source.Token(t.Context())
				failed, ok := errors.AsType[*pushauth.TokenError](err)
				if !ok || failed.StatusCode != tt.answer.Status {
					t.Fatalf("error %v", err)
				}
				if tt.name == "redirect" && !strings.Contains(err.Error(), "leads to https://new.example/v2; check") {
					t.Errorf("error %v", err)
				}
				if got := errors.Is(err, pushauth.ErrInvalidClient); got != (tt.answer.Status == 401) {
					t.Errorf("matches ErrInvalidClient: %v", got)
				}
				wantTokenRequests(t, service, tt.requests)

				retryAt := time.Now().Add(tt.hold)
				advance(tt.hold - 1)
				_, err = source.Token(t.Context())
				held, ok := errors.AsType[*pushauth.BackoffError](err)
				if !ok || !held.RetryAt.Equal(retryAt) || !errors.Is(err, failed) {
					t.Fatalf("error %v, want a BackoffError until %v", err, retryAt)
				}
				wantTokenRequests(t, service, tt.requests)
				advance(time.Nanosecond)
				service.ClearScript()
				mustToken(t, source)
			})
		})
	}
}

func TestTransientFailureIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, source := newService(t)
		service.Script(relaytest.EndpointToken, 1, relaytest.Answer{Status: 502})
		service.Script(relaytest.EndpointToken, 1, relaytest.Answer{Drop: true})
		mustToken(t, source)
		wantTokenRequests(t, service, 3)
	})
}

func TestUnreachableServiceSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("connection refused")
		source, err := pushauth.NewSource(credentials, quiet, pushauth.WithHTTPClient(&http.Client{
			Transport: roundTripper(func(*http.Request) (*http.Response, error) { return nil, refused }),
		}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := source.Token(t.Context()); !errors.Is(err, refused) {
			t.Errorf("error %v", err)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestInvalidateDropsOnlyTheCachedToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, source := newService(t)
		first := mustToken(t, source)
		advance(time.Second) // else the service would issue the same token once more
		source.Invalidate(pushauth.Token{Value: secret.New("another")})
		mustToken(t, source)
		wantTokenRequests(t, service, 1)
		source.Invalidate(first)
		second := mustToken(t, source)
		if same(second, first) {
			t.Error("got the dropped token")
		}
		wantTokenRequests(t, service, 2)

		advance(time.Minute)
		source.Invalidate(first) // late: somebody else has dropped it already
		if !same(mustToken(t, source), second) {
			t.Error("the token that was not meant was dropped")
		}

		source.Invalidate(second)
		third := mustToken(t, source)
		advance(30*time.Second - 1)
		source.Invalidate(third) // too soon after the last drop
		mustToken(t, source)
		wantTokenRequests(t, service, 3)
		advance(time.Nanosecond)
		source.Invalidate(third)
		mustToken(t, source)
		wantTokenRequests(t, service, 4)
	})
}

func TestNewSourceRefusesBadCredentials(t *testing.T) {
	tests := []struct {
		name, problem string
		change        func(*pushauth.Credentials)
	}{
		{"no URL", "token URL", func(c *pushauth.Credentials) { c.TokenURL = "" }},
		{"no scheme", "token URL", func(c *pushauth.Credentials) { c.TokenURL = "token.example" }},
		{"user info", "user name", func(c *pushauth.Credentials) { c.TokenURL = "https://u:hunter2@token.example" }},
		{"no id", "client id is empty", func(c *pushauth.Credentials) { c.ClientID = "" }},
		{"no secret", "client secret is empty", func(c *pushauth.Credentials) { c.ClientSecret = secret.Text{} }},
		{"secret not UTF-8", "not UTF-8", func(c *pushauth.Credentials) { c.ClientSecret = secret.New("hunter2\xff") }},
		{"two lines of secret", "client secret has white space inside", func(c *pushauth.Credentials) { c.ClientSecret = secret.New("hunter2\nhunter2") }},
		{"secret with a control character", "client secret has a control character", func(c *pushauth.Credentials) { c.ClientSecret = secret.New("hunter2\x00") }},
		{"id with a space", "client id has white space inside", func(c *pushauth.Credentials) { c.ClientID = "home hunter2" }},
		{"blank id", "client id is empty", func(c *pushauth.Credentials) { c.ClientID = " \n" }},
		{"URL with a space", "token URL has white space inside", func(c *pushauth.Credentials) { c.TokenURL = "https://token.example/a b" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			bad := credentials
			tt.change(&bad)
			_, err := pushauth.NewSource(bad)
			if err == nil || !strings.Contains(err.Error(), tt.problem) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error %v, want one that says %q", err, tt.problem)
			}
		})
	}
	for _, opt := range []pushauth.Option{nil, pushauth.WithHTTPClient(nil)} {
		if _, err := pushauth.NewSource(credentials, opt); err == nil {
			t.Error("a nil option was taken")
		}
	}
}

func TestSuspendedMachineFetchesANewToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, source := newService(t)
		mustToken(t, source)
		source.Sleep(58 * time.Minute)
		mustToken(t, source)
		wantTokenRequests(t, service, 1)
		source.Sleep(10 * time.Minute)
		mustToken(t, source)
		wantTokenRequests(t, service, 2)

		// Asleep in the middle of a back-off, with a token that died meanwhile.
		service.Script(relaytest.EndpointToken, 1, relaytest.Answer{Status: 400})
		source.Sleep(2 * time.Hour)
		if _, err := source.Token(t.Context()); err == nil {
			t.Fatal("a dead token was used")
		}
		source.Sleep(10 * time.Minute)
		mustToken(t, source)
	})
}

func TestZeroSourceSaysWhatItLacks(t *testing.T) {
	var source pushauth.Source
	if _, err := source.Token(t.Context()); err == nil || !strings.Contains(err.Error(), "NewSource") {
		t.Error(err)
	}
	source.Invalidate(pushauth.Token{})
	req := httptest.NewRequest("GET", "https://relay.example", nil)
	if _, err := (&pushauth.Transport{Source: &source}).RoundTrip(req); err == nil || !strings.Contains(err.Error(), "NewSource") {
		t.Error(err)
	}
}

// What a file or a copied text adds to a secret does not make it a wrong one.
func TestWhiteSpaceAroundCredentialsIsDropped(t *testing.T) {
	pasted := credentials
	pasted.TokenURL = " " + pasted.TokenURL + "\n"
	pasted.ClientID = "\uFEFF" + pasted.ClientID + "\r\n"
	pasted.ClientSecret = secret.New("\uFEFF " + pasted.ClientSecret.Reveal() + " \r\n")
	var sent map[string]string
	service := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil || r.URL.String() != "https://token.example/token" {
			t.Errorf("request to %s, %v", r.URL, err)
		}
		io.WriteString(w, issueToken)
	})
	source, err := pushauth.NewSource(pasted, quiet, pushauth.WithHTTPClient(&http.Client{Transport: handlerTransport{service}}))
	if err != nil {
		t.Fatal(err)
	}
	mustToken(t, source)
	if sent["client_id"] != credentials.ClientID || sent["client_secret"] != credentials.ClientSecret.Reveal() {
		t.Errorf("sent %q", sent)
	}
}
