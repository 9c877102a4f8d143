// Package answer reads what a server that nobody trusts has answered, so that it can stand in an error or a log line:
// bounded, printable, without secrets.
package answer

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
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

// maxRetryAfter bounds what a server may claim; anything longer is as good as never, and a duration must not overflow.
const maxRetryAfter = 24 * time.Hour

// window is how much of a text is looked at, in bytes: enough behind the cut to recognise what begins before it. It
// also bounds the work that an answer costs.
const window = MaxText + opaqueSize

// Text reads the start of body and returns at most MaxText bytes of it as one printable line. Each secret in it is
// replaced, and whatever looks like a token: servers quote requests in their errors. What a failing body gave before it
// failed counts.
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
	unseen := 0 // at the end, which may hold the start of a token
	if len(text) >= window {
		text, unseen = text[:window], opaqueSize-1
	}
	text = printable(text)
	text = redact(text, max(0, len(text)-unseen), shown)
	text = text[:min(len(text), MaxText)]
	return strings.TrimSpace(strings.ToValidUTF8(text, "")) // a cut, or a piece of a secret, may end inside a character
}

// printable puts a space for each character that does not print on one line: line ends, which would forge log lines,
// escape sequences, changes of text direction. What is not UTF-8 becomes U+FFFD.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) || r == utf8.RuneError {
			return r
		}
		return ' '
	}, text)
}

// Read returns the body of resp, at most so many bytes, without a byte order mark. A body that the server has
// compressed, though [NoCompression] asks it not to, is inflated within the same bounds. What could be read comes with
// the error, which says what is wrong with the body.
func Read(resp *http.Response, most int) ([]byte, error) {
	if resp.StatusCode < http.StatusOK {
		resp.Body.Close() // with a 101 Go's transport hands over the connection itself, and a read of that ends with no context
		return nil, nil
	}
	plain, err := inflate(resp.Header.Values("Content-Encoding"), io.LimitReader(resp.Body, int64(most)+maxOverhead))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(plain, int64(most)+1))
	if err == nil && len(body) > most {
		err = fmt.Errorf("larger than %d bytes", most)
	}
	return bytes.TrimPrefix(body[:min(len(body), most)], []byte("\uFEFF")), err
}

// maxOverhead is how much longer than the limit of its content a compressed body may be, in bytes: gzip may carry any
// number of empty members (RFC 1952, section 2.2).
const maxOverhead = 4 << 10

// NoCompression asks for an answer as it is. An HTTP client that finds the header does not ask for compression by
// itself.
func NoCompression(request http.Header) { request.Set("Accept-Encoding", "identity") }

// inflate undoes the coding that a server says it has applied.
func inflate(codings []string, body io.Reader) (io.Reader, error) {
	coding := strings.ToLower(strings.TrimSpace(strings.Join(codings, ",")))
	if coding == "" || coding == "identity" {
		return body, nil
	}
	in := bufio.NewReader(body)
	if _, err := in.Peek(1); err == io.EOF {
		return in, nil // an empty body, of a 204 for instance
	}
	switch coding {
	case "gzip", "x-gzip":
		return gzip.NewReader(in)
	case "deflate":
		if head, _ := in.Peek(2); len(head) == 2 && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 { // RFC 1950, section 2.2
			return zlib.NewReader(in)
		}
		return flate.NewReader(in), nil // what some servers take it for
	default:
		return nil, fmt.Errorf("compressed as %q, unasked", Line(coding))
	}
}

// RetryAfter reads the Retry-After header (RFC 9110, section 10.2.3): seconds or an HTTP date. It is zero when absent,
// malformed or past, and at most a day.
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

// Drain reads a short rest of body, so that its connection can be used again, and closes it. A longer rest costs the
// connection rather than the time.
func Drain(body io.ReadCloser) {
	io.CopyN(io.Discard, body, 4<<10)
	body.Close()
}
