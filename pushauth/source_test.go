package pushauth_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/pushauth"
)

// tokenService hands out tok-1, tok-2 and so on. What it answers can be changed between calls.
type tokenService struct {
	requests atomic.Int64 // that arrived
	issued   atomic.Int64

	mu     sync.Mutex
	answer http.HandlerFunc // nil for a token of an hour
}

func (s *tokenService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.requests.Add(1)
	s.mu.Lock()
	answer := s.answer
	s.mu.Unlock()
	if answer == nil {
		answer = s.issue(`3600`)
	}
	answer(w, r)
}

func (s *tokenService) set(answer http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = answer
}

// issue answers with the next token and expires_in as it stands.
func (s *tokenService) issue(expiresIn string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"access_token":"tok-%d","token_type":"Bearer","expires_in":%s}`, s.issued.Add(1), expiresIn)
	}
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		io.WriteString(w, body)
	}
}

func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func newSource(tb testing.TB, service http.Handler, opts ...pushauth.Option) *pushauth.Source {
	tb.Helper()
	source, err := pushauth.NewSource(credentials, append([]pushauth.Option{
		pushauth.WithHTTPClient(&http.Client{Transport: handlerTransport{service}}),
		pushauth.WithLogger(slog.New(slog.DiscardHandler)),
	}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	return source
}

func wantToken(t *testing.T, source *pushauth.Source, want string) {
	t.Helper()
	token, err := source.Token(t.Context())
	if err != nil {
		t.Fatalf("at %v: %v", time.Now(), err)
	}
	if token.Value != want {
		t.Fatalf("at %v: token %s, want %s", time.Now(), token.Value, want)
	}
}

func wantRequests(t *testing.T, service *tokenService, want int64) {
	t.Helper()
	if got := service.requests.Load(); got != want {
		t.Fatalf("token service saw %d requests, want %d", got, want)
	}
}

func TestTokenRequest(t *testing.T) {
	var got struct {
		method, url, contentType string
		body                     map[string]string
	}
	source := newSource(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.method, got.url, got.contentType = r.Method, r.URL.String(), r.Header.Get("Content-Type")
		if err := json.NewDecoder(r.Body).Decode(&got.body); err != nil {
			t.Error(err)
		}
		io.WriteString(w, `{"access_token":"tok","token_type":"bearer","expires_in":3600}`)
	}))
	wantToken(t, source, "tok")
	if got.method != "POST" || got.url != "https://token.example/token" || got.contentType != "application/json" {
		t.Errorf("request was %s %s with %s", got.method, got.url, got.contentType)
	}
	if len(got.body) != 2 || got.body["client_id"] != credentials.ClientID || got.body["client_secret"] != credentials.ClientSecret {
		t.Errorf("body was %v", got.body)
	}
}

func TestTokenIsUsedUntilLessThanAMinuteRemains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &tokenService{}
		source := newSource(t, service)
		token, err := source.Token(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if want := time.Now().Add(time.Hour); !token.Expiry.Equal(want) {
			t.Errorf("expires %v, want %v", token.Expiry, want)
		}
		time.Sleep(59*time.Minute - 1)
		wantToken(t, source, "tok-1")
		time.Sleep(1) // 60 s remain
		wantToken(t, source, "tok-1")
		time.Sleep(1) // less than 60 s remain
		wantToken(t, source, "tok-2")
		wantRequests(t, service, 2)
	})
}

func TestOneRequestForAllWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &tokenService{}
		source := newSource(t, service)
		wantToken(t, source, "tok-1")
		time.Sleep(time.Hour) // over
		release := make(chan struct{})
		service.set(func(w http.ResponseWriter, r *http.Request) {
			<-release
			service.issue(`3600`)(w, r)
		})
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if token, err := source.Token(t.Context()); err != nil || token.Value != "tok-2" {
					t.Errorf("token %v, error %v", token, err)
				}
			})
		}
		synctest.Wait()
		close(release)
		wg.Wait()
		wantRequests(t, service, 2)
	})
}

func TestCallerWhoGivesUpFailsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &tokenService{}
		service.set(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-time.After(5 * time.Second):
				service.issue(`3600`)(w, r)
			case <-r.Context().Done():
				t.Error("the request was given up while somebody waited")
			}
		})
		source := newSource(t, service)
		impatient, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() { // the first caller, whose context must not be the request's
			if _, err := source.Token(impatient); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("impatient caller: %v", err)
			}
		})
		synctest.Wait()
		wantToken(t, source, "tok-1")
		wg.Wait()
		wantRequests(t, service, 1)
	})
}

func TestFetchEndsWhenNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service, ended := &tokenService{}, make(chan time.Time, 1)
		service.set(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			ended <- time.Now()
		})
		source := newSource(t, service)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if _, err := source.Token(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		if after := (<-ended).Sub(start); after != 2*time.Second {
			t.Errorf("the request went on for %v", after)
		}
		// Nobody's failure: the next caller gets a request of its own at once.
		service.set(nil)
		wantToken(t, source, "tok-1")
	})
}

func TestFetchIsBoundedByTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &tokenService{}
		service.set(hang)
		source := newSource(t, service)
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
	service := &tokenService{}
	source := newSource(t, service)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := source.Token(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	wantRequests(t, service, 0)
}

func TestRefreshThatFailsKeepsTheOldToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &tokenService{}
		var log strings.Builder
		source := newSource(t, service, pushauth.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		wantToken(t, source, "tok-1")
		time.Sleep(59*time.Minute + 1)
		service.set(status(http.StatusBadRequest, `{"ok":false,"error":"broken"}`))
		wantToken(t, source, "tok-1")
		wantRequests(t, service, 2)
		if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), "broken") {
			t.Errorf("log: %s", &log)
		}

		time.Sleep(5*time.Second - 1) // the failed refresh is not repeated yet
		wantToken(t, source, "tok-1")
		wantRequests(t, service, 2)
		time.Sleep(1)
		wantToken(t, source, "tok-1")
		wantRequests(t, service, 3)

		time.Sleep(55*time.Second - 2) // a nanosecond of life left
		wantToken(t, source, "tok-1")
		time.Sleep(1)
		if token, err := source.Token(t.Context()); err == nil {
			t.Errorf("got %v after its end", token)
		}
		time.Sleep(5 * time.Second)
		service.set(nil)
		wantToken(t, source, "tok-2")
	})
}

func TestFailedFetchIsNotRepeatedAtOnce(t *testing.T) {
	tests := []struct {
		name       string
		answer     http.HandlerFunc
		requests   int64 // that one fetch makes, its retries included
		hold       time.Duration
		wantStatus int
	}{
		{"wrong credentials", status(401, `{"ok":false,"error":"invalid_client"}`), 1, 60 * time.Second, 401},
		{"bad request", status(400, ``), 1, 5 * time.Second, 400},
		{"not there", status(404, `<html>`), 1, 5 * time.Second, 404},
		{"redirect", redirect, 1, 5 * time.Second, 307},
		{"down", status(503, `down`), 4, 5 * time.Second, 503},
		{"captive portal", status(200, `<html>log in</html>`), 1, 5 * time.Second, 200},
		{"slow down", retryAfter("20"), 1, 20 * time.Second, 429},
		{"slow down a little", retryAfter("1"), 1, 5 * time.Second, 429},
		{"slow down for ever", retryAfter("99999999999999999999"), 1, 60 * time.Second, 429},
		{"slow down backwards", retryAfter("-3"), 1, 5 * time.Second, 429},
		{"slow down until a date", retryAfter("Sat, 01 Jan 2000 00:00:30 GMT"), 1, 30 * time.Second, 429},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service := &tokenService{}
				service.set(tt.answer)
				source := newSource(t, service)
				_, err := source.Token(t.Context())
				failed, ok := errors.AsType[*pushauth.TokenError](err)
				if !ok || failed.StatusCode != tt.wantStatus {
					t.Fatalf("error %v", err)
				}
				if got := errors.Is(err, pushauth.ErrInvalidClient); got != (tt.wantStatus == 401) {
					t.Errorf("matches ErrInvalidClient: %v", got)
				}
				wantRequests(t, service, tt.requests)

				retryAt := time.Now().Add(tt.hold)
				time.Sleep(tt.hold - 1)
				_, err = source.Token(t.Context())
				held, ok := errors.AsType[*pushauth.BackoffError](err)
				if !ok || !held.RetryAt.Equal(retryAt) || !errors.Is(err, failed) {
					t.Fatalf("error %v, want a BackoffError until %v", err, retryAt)
				}
				wantRequests(t, service, tt.requests)
				time.Sleep(1)
				service.set(nil)
				wantToken(t, source, "tok-1")
			})
		})
	}
}

func redirect(w http.ResponseWriter, r *http.Request) {
	http.Redirect(w, r, "https://elsewhere.example/token", http.StatusTemporaryRedirect)
}

func retryAfter(value string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", value)
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

func TestTransientFailureIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &tokenService{}
		service.set(func(w http.ResponseWriter, r *http.Request) {
			if service.requests.Load() < 3 {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			service.issue(`3600`)(w, r)
		})
		source := newSource(t, service)
		wantToken(t, source, "tok-1")
		wantRequests(t, service, 3)
	})
}

func TestUnreachableServiceSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("connection refused")
		var tries int
		source := newSource(t, nil, pushauth.WithHTTPClient(&http.Client{
			Transport: roundTripper(func(*http.Request) (*http.Response, error) { tries++; return nil, refused }),
		}))
		_, err := source.Token(t.Context())
		if !errors.Is(err, refused) || tries != 4 {
			t.Errorf("error %v after %d tries", err, tries)
		}
		// A caller in a hurry still learns what went wrong.
		time.Sleep(5 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := source.Token(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestInvalidateDropsOnlyTheCachedToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := &tokenService{}
		source := newSource(t, service)
		first, err := source.Token(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		source.Invalidate(pushauth.Token{Value: "another"})
		wantToken(t, source, "tok-1")
		source.Invalidate(first)
		wantToken(t, source, "tok-2")
		time.Sleep(time.Minute)
		source.Invalidate(first) // late: somebody else has dropped it already
		second, err := source.Token(t.Context())
		if err != nil || second.Value != "tok-2" {
			t.Fatalf("token %v, error %v", second, err)
		}
		wantRequests(t, service, 2)

		source.Invalidate(second)
		wantToken(t, source, "tok-3")
		third := pushauth.Token{Value: "tok-3"}
		time.Sleep(30*time.Second - 1)
		source.Invalidate(third) // too soon after the last drop
		wantToken(t, source, "tok-3")
		time.Sleep(1)
		source.Invalidate(third)
		wantToken(t, source, "tok-4")
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
		{"no secret", "client secret is empty", func(c *pushauth.Credentials) { c.ClientSecret = "" }},
		{"secret not UTF-8", "not UTF-8", func(c *pushauth.Credentials) { c.ClientSecret = "hunter2\xff" }},
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
	for _, opt := range []pushauth.Option{pushauth.WithHTTPClient(nil), pushauth.WithLogger(nil)} {
		if _, err := pushauth.NewSource(credentials, opt); err == nil {
			t.Error("a nil option was taken")
		}
	}
}

// jwt returns an unsigned JWT with the claims.
func jwt(claims string) string {
	encode := base64.RawURLEncoding.EncodeToString
	return encode([]byte(`{"alg":"RS256"}`)) + "." + encode([]byte(claims)) + "." + encode([]byte("signature"))
}

func TestExpiry(t *testing.T) {
	const year = 365 * 24 * time.Hour
	opaque := "opaque"
	// In a bubble now is 2000-01-01, which is Unix time 946684800.
	tests := []struct {
		name      string
		token     string
		expiresIn string // raw JSON; empty for no member
		want      time.Duration
		unknown   bool
	}{
		{"number", opaque, `3600`, time.Hour, false},
		{"float", opaque, `3600.5`, time.Hour + 500*time.Millisecond, false},
		{"exponent", opaque, `3.6e3`, time.Hour, false},
		{"numeric string", opaque, `"3600"`, time.Hour, false},
		{"float string", opaque, `" 3600.5 "`, time.Hour + 500*time.Millisecond, false},
		{"escaped string", opaque, `"\u0033600"`, time.Hour, false},
		{"negative", opaque, `-1`, -time.Second, false},
		{"zero", opaque, `0`, 0, false},
		{"huge", opaque, `1e18`, year, false},
		{"out of range", opaque, `1e999`, year, false},
		{"out of range below", opaque, `-1e999`, -year, false},
		{"absent", opaque, ``, 0, true},
		{"null", opaque, `null`, 0, true},
		{"word", opaque, `"soon"`, 0, true},
		{"infinite", opaque, `"inf"`, 0, true},
		{"hexadecimal", opaque, `"0x10"`, 0, true},
		{"empty", opaque, `""`, 0, true},
		{"object", opaque, `{}`, 0, true},
		{"exp ends first", jwt(`{"exp":946684860}`), `3600`, time.Minute, false},
		{"exp ends later", jwt(`{"exp":946692000}`), `3600`, time.Hour, false},
		{"exp alone", jwt(`{"exp":946688400}`), ``, time.Hour, false},
		{"exp as a string", jwt(`{"exp":"946688400"}`), ``, time.Hour, false},
		{"exp is over", jwt(`{"exp":946684799}`), `3600`, -time.Second, false},
		{"exp in milliseconds", jwt(`{"exp":946688400000}`), ``, year, false},
		{"exp out of range", jwt(`{"exp":1e999}`), ``, year, false},
		{"exp padded", "e30." + base64.URLEncoding.EncodeToString([]byte(`{"exp":946688400}`)) + ".x", ``, time.Hour, false},
		{"no exp", jwt(`{}`), `3600`, time.Hour, false},
		{"neither", jwt(`{}`), ``, 0, true},
		{"payload is no JSON", "a.b.c", `3600`, time.Hour, false},
		{"payload is no base64", "a.!.c", `3600`, time.Hour, false},
		{"two parts", "a.b", `3600`, time.Hour, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				service := &tokenService{}
				member := ""
				if tt.expiresIn != "" {
					member = `,"expires_in":` + tt.expiresIn
				}
				service.set(status(200, `{"access_token":"`+tt.token+`"`+member+`}`))
				source := newSource(t, service)
				token, err := source.Token(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				want := time.Now().Add(tt.want)
				if tt.unknown {
					want = time.Time{}
				}
				if !token.Expiry.Equal(want) {
					t.Errorf("expiry %v, want %v", token.Expiry, want)
				}
				// A token that cannot be cached is used once.
				wantToken(t, source, tt.token)
				requests := int64(1)
				if tt.unknown || tt.want < time.Minute {
					requests = 2
				}
				wantRequests(t, service, requests)
			})
		})
	}
}

func TestBadAnswers(t *testing.T) {
	tests := []struct{ name, body, problem string }{
		{"not JSON", `<html>hunter2-the-token</html>`, "not the JSON object"},
		{"cut short", `{"access_token":"hunter2-the-token`, "not the JSON object"},
		{"no token", `{"token_type":"Bearer","expires_in":3600}`, "access_token is missing"},
		{"line break", `{"access_token":"hunter2-the-token\r\nX: y"}`, "byte 0x0d"},
		{"space", `{"access_token":"hunter2-the token"}`, "byte 0x20"},
		{"not ASCII", `{"access_token":"hunter2-thé-token"}`, "byte 0xc3"},
		{"other type", `{"access_token":"hunter2-the-token","token_type":"MAC"}`, "token_type"},
		{"too large", `{"access_token":"hunter2-the-token"` + strings.Repeat(" ", 64<<10) + `}`, "larger than"},
		{"wrong JSON type", `{"access_token":["hunter2-the-token"]}`, "not the JSON object"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			service := &tokenService{}
			service.set(status(200, tt.body))
			_, err := newSource(t, service).Token(t.Context())
			if _, ok := errors.AsType[*pushauth.TokenError](err); !ok || !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("error %v, want a TokenError that says %q", err, tt.problem)
			}
			if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "hunter2") {
				t.Errorf("error quotes the token: %v", err)
			}
		})
	}
}

// The service's answer may echo the request.
func TestErrorHidesTheSecret(t *testing.T) {
	service := &tokenService{}
	service.set(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		io.Copy(w, r.Body)
	})
	_, err := newSource(t, service).Token(t.Context())
	if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, credentials.ClientSecret) {
		t.Errorf("error shows the secret: %s", text)
	}
	if !strings.Contains(err.Error(), credentials.ClientID) {
		t.Errorf("error lost what the service said: %v", err)
	}
}
