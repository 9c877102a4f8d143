package verify_test

import (
	"bytes"
	"context"
	"crypto/rsa"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/pushauth/verify"
)

func TestOnlyKeysMeantForRS256AreTrusted(t *testing.T) {
	public := &secondKey().PublicKey
	tests := []struct {
		name string
		jwk  map[string]any
		want bool
	}{
		{"as published", jwkOf("second", public), true},
		{"neither use nor alg", jwkOf("second", public, "use", "", "alg", ""), true},
		{"for encryption", jwkOf("second", public, "use", "enc"), false},
		{"of another alg", jwkOf("second", public, "alg", "RS512"), false},
		{"of another family", jwkOf("second", public, "alg", "PS256"), false},
		{"without an id", jwkOf("", public), false},
		{"no modulus", jwkOf("second", public, "n", ""), false},
		{"modulus that is no base64", jwkOf("second", public, "n", "!"), false},
		{"even exponent", jwkOf("second", public, "e", "AQAA"), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, keys := newVerifier(t)
			keys.serve(http.StatusOK, setOf(tt.jwk, jwkOf("first", &firstKey().PublicKey)))
			if _, err := v.Verify(t.Context(), signGood(t, "second", secondKey())); (err == nil) != tt.want {
				t.Errorf("a token signed with that key: %v", err)
			}
			// One key that is no good does not take the others with it.
			if _, err := v.Verify(t.Context(), signGood(t, "first", firstKey())); err != nil {
				t.Errorf("a token signed with the other key: %v", err)
			}
		})
	}
}

func TestKeyOperations(t *testing.T) {
	for operation, want := range map[string]bool{"verify": true, "sign": false, "encrypt": false} {
		v, keys := newVerifier(t, verify.WithLogger(slog.New(slog.DiscardHandler)))
		jwk := jwkOf("second", &secondKey().PublicKey, "use", "")
		jwk["key_ops"] = []string{operation}
		keys.serve(http.StatusOK, setOf(jwk))
		if _, err := v.Verify(t.Context(), signGood(t, "second", secondKey())); (err == nil) != want {
			t.Errorf("a key for %q: %v", operation, err)
		}
	}
}

func TestUnusableKeySets(t *testing.T) {
	tests := []struct {
		name   string
		status int
		body   string
	}{
		{"an error", http.StatusInternalServerError, setOf(jwkOf("first", &firstKey().PublicKey))},
		{"no JSON", http.StatusOK, "<html>"},
		{"no keys", http.StatusOK, `{"keys":[]}`},
		{"keys that are no list", http.StatusOK, `{"keys":{}}`},
		{"a small key", http.StatusOK, setOf(jwkOf("first", &smallKey().PublicKey))},
		{"a huge key", http.StatusOK, setOf(jwkOf("first", largeKey()))},
		{"an elliptic key", http.StatusOK, setOf(ecJWK("first"))},
		{"a symmetric key", http.StatusOK, `{"keys":[{"kty":"oct","kid":"first","k":"c2VjcmV0"}]}`},
		{"too large", http.StatusOK, strings.Repeat(" ", 300<<10) + setOf(jwkOf("first", &firstKey().PublicKey))},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			v, keys := newVerifier(t, verify.WithLogger(slog.New(slog.DiscardHandler)))
			keys.serve(tt.status, tt.body)
			signer := firstKey()
			if tt.name == "a small key" {
				signer = smallKey()
			}
			_, err := v.Verify(t.Context(), signGood(t, "first", signer))
			if !errors.Is(err, verify.ErrKeysUnavailable) || verify.StatusCode(err) != http.StatusServiceUnavailable {
				t.Errorf("got %v, want %v", err, verify.ErrKeysUnavailable)
			}
		})
	}
}

func TestRotation(t *testing.T) {
	for _, late := range []time.Duration{0, 1} { // at the boundary, and a nanosecond after it
		t.Run(late.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, keys := newVerifier(t)
				before, after := signGood(t, "first", firstKey()), signGood(t, "second", secondKey())
				check := func(token string, valid bool, fetches int) {
					t.Helper()
					_, err := v.Verify(t.Context(), token)
					if (err == nil) != valid || !valid && !errors.Is(err, verify.ErrInvalidToken) {
						t.Errorf("got %v, want it valid: %t", err, valid)
					}
					if got := keys.count(); got != fetches {
						t.Errorf("%d fetches of the key set, want %d", got, fetches)
					}
				}
				check(before, true, 1)
				check(before, true, 1)
				keys.serve(http.StatusOK, setOf(jwkOf("second", &secondKey().PublicKey)))
				advance(10*time.Second - time.Nanosecond)
				check(after, false, 1) // too early to look
				check(before, true, 1) // nobody has told the relay yet
				advance(1 + late)
				check(after, true, 2)
				check(before, false, 2)
				for range 100 {
					check(signGood(t, "made up", secondKey()), false, 2)
				}
				advance(10 * time.Second)
				check(before, false, 3)
				check(after, true, 3)
			})
		})
	}
}

func TestWithdrawnKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, keys := newVerifier(t, verify.WithKeyLifetime(10*time.Minute))
		token := signGood(t, "first", firstKey())
		if _, err := v.Verify(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		keys.serve(http.StatusOK, setOf(jwkOf("second", &secondKey().PublicKey)))
		advance(10*time.Minute - time.Nanosecond)
		if _, err := v.Verify(t.Context(), token); err != nil {
			t.Errorf("within the lifetime of the key set: %v", err)
		}
		advance(time.Nanosecond)
		v.Verify(t.Context(), token) // the first one after it makes the set be fetched
		synctest.Wait()
		if _, err := v.Verify(t.Context(), token); !errors.Is(err, verify.ErrInvalidToken) {
			t.Errorf("after it: %v", err)
		}
	})
}

// The keys of a set whose life is over by more than 5 minutes are not used for one more token, whenever it comes.
func TestWithdrawnKeyAfterAQuietNight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, keys := newVerifier(t)
		token := signGood(t, "first", firstKey())
		if _, err := v.Verify(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		keys.serve(http.StatusOK, setOf(jwkOf("second", &secondKey().PublicKey)))
		advance(time.Hour + 5*time.Minute)
		token = signGood(t, "first", firstKey())
		if _, err := v.Verify(t.Context(), token); !errors.Is(err, verify.ErrInvalidToken) {
			t.Errorf("got %v", err)
		}
	})
}

func TestOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged bytes.Buffer
		v, keys := newVerifier(t, verify.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))), verify.WithKeyLifetime(time.Minute))
		token := signGood(t, "first", firstKey())

		// Down from the start: nothing can be said about a token.
		down := errors.New("connection refused")
		keys.fail(down)
		for range 20 {
			_, err := v.Verify(t.Context(), token)
			if !errors.Is(err, verify.ErrKeysUnavailable) || !errors.Is(err, down) {
				t.Fatalf("got %v", err)
			}
			if strings.Contains(err.Error(), "jwks.json") {
				t.Errorf("the error quotes the URL: %v", err)
			}
		}
		if got := keys.count(); got != 1 {
			t.Errorf("%d fetches, want 1", got)
		}
		if n := strings.Count(logged.String(), "level=WARN"); n != 1 {
			t.Errorf("%d log lines, want one a fetch:\n%s", n, &logged)
		}

		// Up again, noticed 10 s after the failure.
		keys.serve(http.StatusOK, setOf(jwkOf("first", &firstKey().PublicKey)))
		advance(10 * time.Second)
		if _, err := v.Verify(t.Context(), token); err != nil {
			t.Fatal(err)
		}

		// Down, or talking nonsense, for up to 5 minutes more than the key set lives: it stays.
		for _, outage := range []func(){func() { keys.fail(down) }, func() { keys.serve(502, "") }, func() { keys.serve(200, `{"keys":[]}`) }, keys.hang} {
			outage()
			advance(80 * time.Second)
			if _, err := v.Verify(t.Context(), token); err != nil {
				t.Errorf("in an outage: %v", err)
			}
			// What is signed with an unknown key may be the next key's.
			if _, err := v.Verify(t.Context(), signGood(t, "second", secondKey())); !errors.Is(err, verify.ErrKeysUnavailable) {
				t.Errorf("an unknown key in an outage: %v", err)
			}
		}
		advance(time.Minute)
		if _, err := v.Verify(t.Context(), token); !errors.Is(err, verify.ErrKeysUnavailable) {
			t.Errorf("6 minutes after the set was fetched for a minute: %v", err)
		}
	})
}

func TestOneFetchForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, keys := newVerifier(t)
		release := make(chan struct{})
		keys.mu.Lock()
		answer := keys.answer
		keys.mu.Unlock()
		keys.set(func(r *http.Request) (*http.Response, error) {
			select {
			case <-release:
				return answer(r)
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
		})
		token := signGood(t, "first", firstKey())

		// The one who asked first gives up; the others get what it asked for.
		ctx, cancel := context.WithCancel(t.Context())
		var first error
		var others sync.WaitGroup
		others.Go(func() { _, first = v.Verify(ctx, token) })
		synctest.Wait()
		for range 49 {
			others.Go(func() {
				if _, err := v.Verify(t.Context(), token); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		if !errors.Is(first, verify.ErrKeysUnavailable) || !errors.Is(first, context.Canceled) {
			t.Errorf("the one who gave up got %v", first)
		}
		close(release)
		others.Wait()
		if got := keys.count(); got != 1 {
			t.Errorf("%d fetches, want 1", got)
		}
	})
}

func TestHangingKeyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, keys := newVerifier(t, verify.WithLogger(slog.New(slog.DiscardHandler)))
		keys.hang()
		start := time.Now()
		_, err := v.Verify(t.Context(), signGood(t, "first", firstKey()))
		if !errors.Is(err, verify.ErrKeysUnavailable) {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(start); waited != 5*time.Second {
			t.Errorf("waited %v", waited)
		}
	})
}

func TestSuspendedMachineDoesNotTrustAWithdrawnKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, keys := newVerifier(t)
		token := signGood(t, "first", firstKey())
		if _, err := v.Verify(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		keys.serve(http.StatusOK, setOf(jwkOf("second", &secondKey().PublicKey)))
		v.Sleep(10 * time.Minute)
		if _, err := v.Verify(t.Context(), token); err != nil {
			t.Errorf("within the lifetime of the key set: %v", err)
		}
		v.Sleep(50 * time.Minute)
		v.Verify(t.Context(), token) // makes the set be fetched
		synctest.Wait()
		if _, err := v.Verify(t.Context(), token); !errors.Is(err, verify.ErrInvalidToken) {
			t.Errorf("after it: %v", err)
		}
	})
}

// A request that will not wait for a token service that hangs is judged by the last good set.
func TestImpatientCallerInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, keys := newVerifier(t, verify.WithLogger(slog.New(slog.DiscardHandler)), verify.WithKeyLifetime(time.Minute))
		token := signGood(t, "first", firstKey())
		if _, err := v.Verify(t.Context(), token); err != nil {
			t.Fatal(err)
		}
		keys.hang()
		advance(2 * time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := v.Verify(ctx, token); err != nil {
			t.Error(err)
		}
		advance(5 * time.Second) // the fetch ends
	})
}

func TestZeroVerifierTrustsNobody(t *testing.T) {
	for name, v := range map[string]*verify.Verifier{"nil": nil, "zero": {}} {
		_, err := v.Verify(t.Context(), signGood(t, "first", firstKey()))
		if err == nil || verify.StatusCode(err) != http.StatusInternalServerError {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// When the set's life is over and the token service hangs, no token of a known key waits for it, until 5 minutes later.
func TestValidTokensDoNotQueueForAHangingKeyServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, keys := newVerifier(t, verify.WithLogger(slog.New(slog.DiscardHandler)), verify.WithKeyLifetime(10*time.Minute))
		verifyAt := func(after time.Duration, start time.Time) error {
			t.Helper()
			advance(time.Until(start.Add(after)))
			token, asked := signGood(t, "first", firstKey()), time.Now()
			_, err := v.Verify(t.Context(), token)
			if waited := time.Since(asked); waited > 0 && err == nil {
				t.Errorf("after %v: waited %v", after, waited)
			}
			return err
		}
		start := time.Now()
		if err := verifyAt(0, start); err != nil {
			t.Fatal(err)
		}
		keys.hang()
		for _, after := range []time.Duration{10 * time.Minute, 10*time.Minute + time.Second, 12 * time.Minute, 15*time.Minute - 1} {
			if err := verifyAt(after, start); err != nil {
				t.Errorf("after %v: %v", after, err)
			}
		}
		synctest.Wait()
		if got := keys.count(); got != 4 {
			t.Errorf("%d fetches, want the first and one for each of the three times that were 10 s apart", got)
		}
		if err := verifyAt(15*time.Minute, start); !errors.Is(err, verify.ErrKeysUnavailable) {
			t.Errorf("5 minutes past the set's life: %v", err)
		}
		keys.serve(http.StatusOK, setOf(jwkOf("first", &firstKey().PublicKey)))
		if err := verifyAt(16*time.Minute, start); err != nil {
			t.Errorf("the token service is back: %v", err)
		}
	})
}

func TestRotationUnderOneKeyID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, keys := newVerifier(t, verify.WithLogger(slog.New(slog.DiscardHandler)))
		before, after := signGood(t, "only", firstKey()), signGood(t, "only", secondKey())
		check := func(token string, valid bool, fetches int) {
			t.Helper()
			_, err := v.Verify(t.Context(), token)
			if (err == nil) != valid || !valid && !errors.Is(err, verify.ErrInvalidToken) {
				t.Errorf("got %v, want it valid: %t", err, valid)
			}
			if got := keys.count(); got != fetches {
				t.Errorf("%d fetches of the key set, want %d", got, fetches)
			}
		}
		keys.serve(http.StatusOK, setOf(jwkOf("only", &firstKey().PublicKey)))
		check(before, true, 1)
		for range 100 {
			check(after, false, 1) // as forged as it could be
		}
		keys.serve(http.StatusOK, setOf(jwkOf("only", &secondKey().PublicKey)))
		advance(10 * time.Second)
		check(before, true, 1)
		check(after, true, 2)
		check(before, false, 2)

		// An outage does not make a forged token a good one, nor the token service's fault.
		keys.serve(http.StatusBadGateway, "")
		advance(10 * time.Second)
		check(before, false, 3)
		check(after, true, 3)

		// The key that the token was signed with is gone.
		keys.serve(http.StatusOK, setOf(jwkOf("other", &secondKey().PublicKey)))
		advance(10 * time.Second)
		check(before, false, 4)
		check(after, false, 4)
	})
}

func TestEveryKeyOfAnIDIsTried(t *testing.T) {
	for _, order := range [][]map[string]any{
		{jwkOf("first", &firstKey().PublicKey), jwkOf("first", &secondKey().PublicKey)},
		{jwkOf("first", &secondKey().PublicKey), jwkOf("first", &firstKey().PublicKey)},
	} {
		v, keys := newVerifier(t)
		keys.serve(http.StatusOK, setOf(order...))
		for name, key := range map[string]*rsa.PrivateKey{"one": firstKey(), "the other": secondKey()} {
			if _, err := v.Verify(t.Context(), signGood(t, "first", key)); err != nil {
				t.Errorf("signed with %s: %v", name, err)
			}
		}
	}
}

// A key set is trusted because of the URL that it comes from. A redirect would have it come from anywhere.
func TestRedirectIsNotFollowed(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		v, keys := newVerifier(t, verify.WithLogger(slog.New(slog.DiscardHandler)))
		keys.set(func(r *http.Request) (*http.Response, error) {
			answer := &http.Response{StatusCode: status, Header: http.Header{"Location": {"http://elsewhere.example/keys"}}, Body: http.NoBody}
			if r.URL.Host == "elsewhere.example" {
				answer.StatusCode = http.StatusOK
				answer.Body = io.NopCloser(strings.NewReader(setOf(jwkOf("first", &secondKey().PublicKey))))
			}
			return answer, nil
		})
		_, err := v.Verify(t.Context(), signGood(t, "first", secondKey()))
		if !errors.Is(err, verify.ErrKeysUnavailable) || !strings.Contains(err.Error(), strconv.Itoa(status)) {
			t.Errorf("%d: got %v", status, err)
		}
		if got := keys.count(); got != 1 {
			t.Errorf("%d: %d requests, want 1", status, got)
		}
	}
}

// A verifyingHandler has a token verified for each line, as one does that ships logs
// to a service of its own.
type verifyingHandler struct {
	slog.Handler
	verify func()
}

func (h verifyingHandler) Handle(context.Context, slog.Record) error {
	h.verify()
	return nil
}

func TestLogHandlerMayVerify(t *testing.T) {
	token := signGood(t, "first", firstKey())
	var v *verify.Verifier
	lines := 0
	logger := slog.New(verifyingHandler{slog.NewTextHandler(io.Discard, nil), func() {
		lines++
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		v.Verify(ended, token)
	}})
	var keys *keyServer
	v, keys = newVerifier(t, verify.WithLogger(logger))
	keys.fail(errors.New("no route"))
	verified := make(chan error, 1)
	go func() {
		_, err := v.Verify(t.Context(), token)
		verified <- err
	}()
	select {
	case err := <-verified:
		if !errors.Is(err, verify.ErrKeysUnavailable) || lines != 1 {
			t.Errorf("error %v, %d lines", err, lines)
		}
	case <-time.After(time.Minute):
		t.Fatal("the line about the keys waits for itself")
	}
}
