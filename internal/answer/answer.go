// Package answer reads what a server that nobody trusts has answered, so that
// it can stand in an error or a log line: bounded, printable, without secrets.
package answer

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// MaxText is how much of a body is kept, in bytes (relay protocol, "Responses").
const MaxText = 512

// maxRetryAfter bounds what a server may claim; anything longer is as good as
// never, and a duration must not overflow.
const maxRetryAfter = 24 * time.Hour

// window is how much of a text is looked at, in bytes: enough behind the cut to
// recognise what begins before it. It also bounds the work that an answer costs.
const window = MaxText + tokenSize

// Text reads the start of body and returns at most MaxText bytes of it as one
// printable line. Every piece of a secret in it is replaced: servers quote
// requests in their errors. What a failing body gave before it failed counts.
func Text(body io.Reader, secrets ...string) string {
	raw, _ := io.ReadAll(io.LimitReader(body, window))
	return Line(string(raw), secrets...)
}

// Line is Text for what is already in memory.
func Line(text string, secrets ...string) string {
	shown := make([]string, len(secrets)) // as they would look in the text
	for i, secret := range secrets {
		shown[i] = printable(secret)
	}
	unseen := 0 // at the end, which may hold the start of a secret
	if len(text) >= window {
		text, unseen = text[:window], tokenSize-1
	}
	text = printable(text)
	text = redact(text, max(0, len(text)-unseen), shown)
	text = text[:min(len(text), MaxText)]
	return strings.TrimSpace(strings.ToValidUTF8(text, "")) // a cut, or a piece of a secret, may end inside a character
}

// printable puts a space for each character that does not print on one line:
// line ends, which would forge log lines, escape sequences, changes of text
// direction. What is not UTF-8 becomes U+FFFD.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == utf8.RuneError {
			return r
		}
		return ' '
	}, text)
}

// Body is what resp carries: nothing when its status is below 200. With a 101 Go's transport hands over the connection
// itself, and a read of that ends with no context.
func Body(resp *http.Response) io.ReadCloser {
	if resp.StatusCode < http.StatusOK {
		resp.Body.Close()
		return http.NoBody
	}
	return resp.Body
}

// RetryAfter reads the Retry-After header (RFC 9110, section 10.2.3): seconds
// or an HTTP date. It is zero when absent, malformed or past, and at most a day.
func RetryAfter(header http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(header.Get("Retry-After"))
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(maxRetryAfter/time.Second) {
			return maxRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(date.Sub(now), 0), maxRetryAfter)
}

// Drain reads a short rest of body, so that its connection can be used again,
// and closes it. A longer rest costs the connection rather than the time.
func Drain(body io.ReadCloser) {
	io.CopyN(io.Discard, body, 4<<10)
	body.Close()
}
