package pushauth_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sealpush/sealpush/pushauth"
)

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
	if token := mustToken(t, source); token.Value.Reveal() != "tok" {
		t.Errorf("token %s", token.Value.Reveal())
	}
	if got.method != "POST" || got.url != "https://token.example/token" || got.contentType != "application/json" {
		t.Errorf("request was %s %s with %s", got.method, got.url, got.contentType)
	}
	if len(got.body) != 2 || got.body["client_id"] != credentials.ClientID || got.body["client_secret"] != credentials.ClientSecret.Reveal() {
		t.Errorf("body was %v", got.body)
	}
}

func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		io.WriteString(w, body)
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
				member := ""
				if tt.expiresIn != "" {
					member = `,"expires_in":` + tt.expiresIn
				}
				requests := 0
				source := newSource(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					requests++
					io.WriteString(w, `{"access_token":"`+tt.token+`"`+member+`}`)
				}))
				token := mustToken(t, source)
				want := time.Now().Add(tt.want)
				if tt.unknown {
					want = time.Time{}
				}
				if !token.Expiry.Equal(want) {
					t.Errorf("expiry %v, want %v", token.Expiry, want)
				}
				// A token that cannot be cached is used once.
				wantRequests := 1
				if tt.unknown || tt.want < time.Minute {
					wantRequests = 2
				}
				if again := mustToken(t, source); !same(again, token) || requests != wantRequests {
					t.Errorf("second call: %d requests in all, want %d", requests, wantRequests)
				}
			})
		})
	}
}

// The token may have been issued right after it was asked for.
func TestSlowAnswerProlongsNoToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := time.Now()
		source := newSource(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			advance(9 * time.Second)
			io.WriteString(w, `{"access_token":"opaque","expires_in":3600}`)
		}))
		if token, want := mustToken(t, source), asked.Add(time.Hour); !token.Expiry.Equal(want) {
			t.Errorf("expiry %v, want %v", token.Expiry, want)
		}
	})
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
			_, err := newSource(t, status(200, tt.body)).Token(t.Context())
			if _, ok := errors.AsType[*pushauth.TokenError](err); !ok || !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("error %v, want a TokenError that says %q", err, tt.problem)
			}
			if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "hunter2") {
				t.Errorf("error quotes the token: %v", err)
			}
		})
	}
}

// A service that compresses, though it was asked not to, or sends a byte order mark, issues tokens all the same.
func TestOddlyEncodedAnswers(t *testing.T) {
	var zipped, bomb bytes.Buffer
	for out, text := range map[*bytes.Buffer]string{&zipped: issueToken, &bomb: `{"access_token":"` + strings.Repeat("x", 10<<20) + `"}`} {
		w := gzip.NewWriter(out)
		io.WriteString(w, text)
		w.Close()
	}
	tests := []struct{ name, coding, body, problem string }{
		{"gzip", "gzip", zipped.String(), ""},
		{"byte order mark", "", "\uFEFF" + issueToken, ""},
		{"bomb", "gzip", bomb.String(), "larger than 65536 bytes"},
		{"unknown", "br", issueToken, `compressed as "br"`},
		{"no gzip", "gzip", issueToken, "invalid header"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			source := newSource(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if got := r.Header.Get("Accept-Encoding"); got != "identity" {
					t.Errorf("Accept-Encoding is %q", got)
				}
				if tt.coding != "" {
					w.Header().Set("Content-Encoding", tt.coding)
				}
				io.WriteString(w, tt.body)
			}))
			token, err := source.Token(t.Context())
			if tt.problem == "" && (err != nil || token.Value.Reveal() != "tok") {
				t.Errorf("token %v, error %v", token, err)
			}
			if tt.problem != "" && (err == nil || !strings.Contains(err.Error(), tt.problem)) {
				t.Errorf("error %v, want one that says %q", err, tt.problem)
			}
		})
	}
}

// The service's answer may echo the request.
func TestErrorHidesTheSecret(t *testing.T) {
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		io.Copy(w, r.Body)
	})
	_, err := newSource(t, echo).Token(t.Context())
	if text := fmt.Sprintf("%v %+v %#v", err, err, err); strings.Contains(text, credentials.ClientSecret.Reveal()) {
		t.Errorf("error shows the secret: %s", text)
	}
	if !strings.Contains(err.Error(), credentials.ClientID) {
		t.Errorf("error lost what the service said: %v", err)
	}
}
