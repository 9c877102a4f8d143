// Package retry repeats a request over failures that pass: no connection, or an answer of the 5xx kind.
package retry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/sealpush/sealpush/internal/answer"
)

const (
	retries = 3
	waitMin = 250 * time.Millisecond // doubling up to waitMax
	waitMax = 2 * time.Second
)

// Do sends a request with the JSON body, up to four times within 2 s plus what the answers take, and returns the last
// answer. It ends with ctx. final, which may be nil, says which errors are not worth another try.
//
// An answer that says when to come back (429, or any with Retry-After) is not waited for: that is for the caller to
// keep to.
func Do(ctx context.Context, client *http.Client, method, url string, body []byte, final func(error) bool) (*http.Response, error) {
	req, err := retryablehttp.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	answer.NoCompression(req.Header)

	var last error // why the last try failed, which the retrying client forgets when ctx ends
	retrying := retryablehttp.Client{
		HTTPClient:   client,
		RetryMax:     retries,
		RetryWaitMin: waitMin,
		RetryWaitMax: waitMax,
		Backoff: func(min, max time.Duration, attempt int, _ *http.Response) time.Duration {
			return retryablehttp.DefaultBackoff(min, max, attempt, nil)
		},
		CheckRetry: func(ctx context.Context, resp *http.Response, err error) (bool, error) {
			if err != nil {
				last = err
				if final != nil && final(err) {
					return false, nil
				}
			} else {
				last = fmt.Errorf("answer was %d %s", resp.StatusCode, http.StatusText(resp.StatusCode)) // not resp.Status: its words are the server's
				if resp.StatusCode == http.StatusTooManyRequests || resp.Header.Get("Retry-After") != "" {
					return false, nil
				}
			}
			return retryablehttp.DefaultRetryPolicy(ctx, resp, err)
		},
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	resp, err := retrying.Do(req)
	if err == nil {
		return resp, nil
	}
	if resp != nil {
		resp.Body.Close()
	}
	if last != nil && !errors.Is(err, last) && !errors.Is(last, err) {
		err = fmt.Errorf("%w; before that: %w", err, last)
	}
	return nil, err
}
