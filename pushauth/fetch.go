package pushauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/sealpush/sealpush/internal/printable"
)

const (
	fetchTimeout     = 10 * time.Second // for one fetch, its retries included
	fetchRetries     = 3
	fetchRetryMin    = 250 * time.Millisecond // doubling up to fetchRetryMax
	fetchRetryMax    = 2 * time.Second
	maxAnswer        = 64 << 10 // bytes
	maxAnswerMessage = 256      // bytes
)

// fetch asks the token service for a token. Its error is a *TokenError.
func (s *Source) fetch(ctx context.Context) (Token, error) {
	// A token's life is counted from before it was asked for, so that a slow answer never prolongs it.
	start := time.Now()
	resp, err := s.post(ctx)
	if err != nil {
		return Token{}, &TokenError{Err: err}
	}
	defer resp.Body.Close()

	failed := &TokenError{StatusCode: resp.StatusCode, RetryAfter: retryAfter(resp, start)}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		failed.Err = fmt.Errorf("reading its answer: %w", err)
	case resp.StatusCode/100 != 2:
		failed.Message = s.message(body)
	case len(body) > maxAnswer:
		failed.Err = fmt.Errorf("answer is larger than %d bytes", maxAnswer)
	default:
		var token Token
		if token, failed.Err = parseToken(body, start); failed.Err == nil {
			return token, nil
		}
	}
	return Token{}, failed
}

func (s *Source) post(ctx context.Context) (*http.Response, error) {
	body, err := json.Marshal(map[string]string{
		"client_id":     s.credentials.ClientID,
		"client_secret": s.credentials.ClientSecret,
	})
	if err != nil {
		return nil, err
	}
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodPost, s.endpoint, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")

	var lastErr error // why the last try failed, which the retrying client forgets when its time is up
	client := retryablehttp.Client{
		HTTPClient:   s.client,
		RetryMax:     fetchRetries,
		RetryWaitMin: fetchRetryMin,
		RetryWaitMax: fetchRetryMax,
		Backoff: func(min, max time.Duration, attempt int, _ *http.Response) time.Duration {
			return retryablehttp.DefaultBackoff(min, max, attempt, nil)
		},
		CheckRetry: func(ctx context.Context, resp *http.Response, err error) (bool, error) {
			if lastErr = err; resp != nil {
				lastErr = fmt.Errorf("token service answered %s", resp.Status)
				if resp.StatusCode == http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "" {
					return false, nil // it said when to come back: not now
				}
			}
			return retryablehttp.DefaultRetryPolicy(ctx, resp, err)
		},
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	resp, err := client.Do(req)
	if err != nil {
		if resp != nil {
			resp.Body.Close()
		}
		if lastErr != nil && !errors.Is(err, lastErr) && !errors.Is(lastErr, err) {
			err = fmt.Errorf("%w; before that: %w", err, lastErr)
		}
		return nil, err
	}
	return resp, nil
}

// message is what the service said, fit to print: its "error" when it sent one.
func (s *Source) message(body []byte) string {
	text := string(body)
	var answer struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &answer) == nil && answer.Error != "" {
		text = strings.TrimSuffix(answer.Error+": "+answer.Description, ": ")
	}
	return printable.Text(text, maxAnswerMessage, s.credentials.ClientSecret)
}

// retryAfter reads the Retry-After header (RFC 9110 section 10.2.3), seconds or a date.
func retryAfter(resp *http.Response, now time.Time) time.Duration {
	value := resp.Header.Get("Retry-After")
	if seconds, ok := number(json.RawMessage(strconv.Quote(value))); ok {
		return max(0, clampSeconds(seconds))
	}
	if date, err := http.ParseTime(value); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}
