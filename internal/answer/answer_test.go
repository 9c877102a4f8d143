package answer_test

import (
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"github.com/sealpush/sealpush/internal/answer"
)

func TestText(t *testing.T) {
	token := "8f3a1bc2d4e5f60718293a4b5c6d7e8f"
	tests := []struct {
		name, body, want string
		secrets          []string
	}{
		{"plain", "device unknown", "device unknown", nil},
		{"forged log lines", "no\nlevel=INFO msg=fine\r\n", "no level=INFO msg=fine", nil},
		{"escape sequences", "\x1b[31mred\x00", "[31mred", nil},
		{"right-to-left override", "a\u202eb", "a b", nil},
		{"not UTF-8", "a\xffb", "a\ufffdb", nil},
		{"long", strings.Repeat("x.", 2500), strings.Repeat("x.", 256), nil},
		{"cut inside a character", strings.Repeat(".", 511) + "é", strings.Repeat(".", 511), nil},
		{"whole secret", "no device " + token + "!", "no device [redacted]!", []string{token}},
		{"secret in capitals", "no device " + strings.ToUpper(token), "no device [redacted]", []string{token}},
		{"fifteen characters of a token", "no device " + token[5:20] + "…", "no device " + token[5:20] + "…", []string{token}},
		{"sixteen characters of a token", "no device " + token[5:21] + "…", "no device [redacted]…", []string{token}},
		{"a word that a secret has, too", "notification topic", "notification topic", []string{"my-notifications"}},
		{"percent-encoded", "GET /?k=p%61ss%20w%c3%B6rd%2f1 failed", "GET /?k=[redacted] failed", []string{"pass wörd/1"}},
		{"in a form", "k=pass+w%C3%B6rd%2F1 failed", "k=[redacted] failed", []string{"pass wörd/1"}},
		{"in JSON", `{"k":"p\u0061\u0053s w\u00f6rd\/\"1"}`, `{"k":"[redacted]"}`, []string{`pass wörd/"1`}},
		{"beyond the first plane in JSON", `{"k":"pass\uD83D\ude00word"}`, `{"k":"[redacted]"}`, []string{"pass😀word"}},
		{"another character in JSON", `{"k":"pass\u0077ord"}`, `{"k":"pass\u0077ord"}`, []string{"passkord"}},
		{"base64", "Basic " + base64.StdEncoding.EncodeToString([]byte("open>>>sesame???")) + " refused", "Basic [redacted]== refused", []string{"open>>>sesame???"}},
		{"base64url", "token " + base64.RawURLEncoding.EncodeToString([]byte("open>>>sesame???")) + ".", "token [redacted].", []string{"open>>>sesame???"}},
		{"base64 behind a user", "Basic " + base64.StdEncoding.EncodeToString([]byte("bob:open sesame!")), "Basic Ym9iOm[redacted]Q==", []string{"open sesame!"}},
		{"short secret", "user bob", "user [redacted]", []string{"bob"}},
		{"somebody else's device token", "not " + strings.Repeat("0Af", 6) + ".", "not [redacted].", []string{token}},
		{"less than a device token", "not 0123456789abcde", "not 0123456789abcde", nil},
		{"an FCM token", "not fGc8-x_1aBcDeFgHiJkLmN:APA91bE" + strings.Repeat("zQ-_", 30) + "?", "not [redacted]?", nil},
		{"a JWT", "bad " + strings.Repeat("eyJh", 10) + ".sub", "bad [redacted].sub", nil},
		{"a UUID", "no 123e4567-e89b-12d3-a456-426614174000", "no 123e4567-e89b-12d3-a456-426614174000", nil},
		{"short secret within words", "pushed by a pushup, push!", "pushed by a pushup, [redacted]!", []string{"push"}},
		{"eight characters in common", "no 8f3a1bc2!", "no 8f3a1bc2!", []string{token}},
		{"secret of one letter", "no e-mail", "no e-mail", []string{"e"}},
		{"long secret across the cut", strings.Repeat(".", 500) + strings.Repeat("open sesame ", 20), strings.Repeat(".", 500) + "[redacted]", []string{strings.Repeat("open sesame ", 20)}},
		{"escape across the cut", strings.Repeat(".", 490) + strings.Repeat(`\u006f\u0070\u0065\u006e `, 20), strings.Repeat(".", 490) + "[redacted]", []string{strings.Repeat("open ", 20)}},
		{"secret across the cut", strings.Repeat(".", 505) + token, strings.Repeat(".", 505) + "[redact", []string{token}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := answer.Text(strings.NewReader(tt.body), tt.secrets...)
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTextKeepsWhatCameBeforeAFailure(t *testing.T) {
	body := io.MultiReader(strings.NewReader("half an answer"), iotest.ErrReader(errors.New("reset")))
	if got := answer.Text(body); got != "half an answer" {
		t.Errorf("got %q", got)
	}
}

// What is quoted last may be cut off before it can be recognised.
func TestNoStartOfASecretAtTheEnd(t *testing.T) {
	token, others := "8f3a1bc2d4e5f60718293a4b5c6d7e8f", strings.Repeat("7e3b", 8)
	for n := range 600 {
		body := strings.Repeat(token+"-", 8) + strings.Repeat("z", n) + others + token
		got := answer.Text(strings.NewReader(body), token)
		if i := strings.IndexAny(strings.ReplaceAll(got, "[redacted]", ""), "0123456789"); i >= 0 {
			t.Fatalf("after %d: %q", n, got)
		}
	}
}

// A relay's longest header line, quoted in an error, must not cost much to search.
func TestLineLooksAtABoundedAmount(t *testing.T) {
	secret := strings.Repeat("abcdefg ", 500)
	text := strings.Repeat(secret[:len(secret)-1]+"#", 250) // a megabyte, and hard to search
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got := answer.Line(text, secret)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 256<<10 || len(got) > answer.MaxText {
		t.Errorf("%d bytes of memory for %d", used, len(got))
	}
}

func TestTextReadsABoundedAmount(t *testing.T) {
	endless := &counter{}
	answer.Text(endless, "0123456789")
	if endless.n > 1<<10 {
		t.Errorf("read %d bytes", endless.n)
	}
}

type counter struct{ n int }

func (c *counter) Read(p []byte) (int, error) {
	c.n += len(p)
	return len(p), nil
}

var now = time.Date(2026, 7, 23, 14, 0, 0, 0, time.UTC)

func TestRetryAfter(t *testing.T) {
	tests := []struct {
		value string
		want  time.Duration
	}{
		{"", 0}, {"0", 0}, {"7", 7 * time.Second}, {" 7 ", 7 * time.Second},
		{"-7", 0}, {"1.5", 0}, {"soon", 0}, {"+7", 0},
		{"86400", 24 * time.Hour}, {"86401", 24 * time.Hour}, {strings.Repeat("9", 40), 24 * time.Hour},
		{now.Add(time.Minute).Format(http.TimeFormat), time.Minute},
		{now.Add(-time.Minute).Format(http.TimeFormat), 0},
		{"Fri, 31 Dec 9999 23:59:59 GMT", 24 * time.Hour},
	}
	for _, tt := range tests {
		if got := answer.RetryAfter(http.Header{"Retry-After": {tt.value}}, now); got != tt.want {
			t.Errorf("%q: got %v, want %v", tt.value, got, tt.want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, value := range []string{"", "7", "-1", "Fri, 31 Dec 9999 23:59:59 GMT", "99999999999999999999"} {
		f.Add(value)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if got := answer.RetryAfter(http.Header{"Retry-After": {value}}, now); got < 0 || got > 24*time.Hour {
			t.Fatalf("%q: %v", value, got)
		}
	})
}

func FuzzText(f *testing.F) {
	f.Add("no device 8f3a1bc2d4e5", "8f3a1bc2d4e5")
	f.Add("\xff\x00", "")
	f.Fuzz(func(t *testing.T, body, secret string) {
		got := answer.Text(strings.NewReader(body), secret)
		if len(got) > answer.MaxText || !utf8.ValidString(got) {
			t.Fatalf("%d bytes: %q", len(got), got)
		}
		if len(secret) >= 8 && !strings.ContainsAny(secret, "[]") && secret != "redacted" && strings.Contains(got, secret) {
			t.Fatalf("%q still holds %q", got, secret)
		}
	})
}
