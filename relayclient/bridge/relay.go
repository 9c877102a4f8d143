package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/sealpush/sealpush/internal/answer"
	"github.com/sealpush/sealpush/internal/retry"
	"github.com/sealpush/sealpush/pushauth"
)

const maxAnswer = 64 << 10 // bytes that are read of an answer

// reply is what the relay says to everything.
type reply struct {
	OK      bool           `json:"ok"`
	Error   string         `json:"error"`
	Message string         `json:"message"`
	Results []DeviceResult `json:"results"`
}

// call is one call to the relay.
type call struct {
	method, path string
	body         any
	retry        bool     // over transient failures; never for a push
	secrets      []string // that the answer might echo
}

func (r call) String() string { return r.method + " " + r.path }

// do makes the call within callTimeout. Its error is a *RelayError.
func (c *Client) do(ctx context.Context, r call) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	resp, err := c.send(ctx, r)
	if err != nil {
		return reply{}, &RelayError{Call: r.String(), Err: answer.Error(err, append(r.secrets, c.config.ClientSecret.Reveal())...)}
	}
	defer resp.Body.Close()
	secrets := append(r.secrets, bearer(resp), c.config.ClientSecret.Reveal())

	failed := &RelayError{Call: r.String(), StatusCode: resp.StatusCode}
	body, err := answer.Read(resp, maxAnswer)
	if err != nil {
		failed.Err = fmt.Errorf("reading its answer: %w", answer.Error(err, secrets...))
		return reply{}, failed
	}
	var said reply
	known := json.Unmarshal(body, &said) == nil
	if known && said.OK && resp.StatusCode/100 == 2 {
		for i := range said.Results {
			said.Results[i].scrub(secrets)
		}
		return said, nil
	}
	failed.Message = string(body)
	if known && said.Error != "" {
		failed.Message = said.Error
	}
	failed.Message = answer.Line(head(failed.Message), secrets...)
	if !known && resp.StatusCode/100 == 2 {
		failed.Err = errors.New("which is not what a push relay answers; is url right?")
	}
	return reply{}, failed
}

func (c *Client) send(ctx context.Context, r call) (*http.Response, error) {
	endpoint, err := url.JoinPath(c.config.URL, r.path)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(r.body)
	if err != nil {
		return nil, err
	}
	if r.retry {
		return retry.Do(ctx, c.http, r.method, endpoint, body, isTokenError)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	answer.NoCompression(req.Header)
	return c.http.Do(req)
}

// isTokenError says whether the token service is to blame, which has been retried as often as it should be.
func isTokenError(err error) bool {
	_, ok := errors.AsType[*pushauth.TokenError](err)
	return ok
}

// scrub makes what the relay says of a device fit to print.
func (d *DeviceResult) scrub(secrets []string) {
	for _, text := range []*string{&d.Platform, &d.Status, &d.Reason} {
		*text = answer.Line(head(*text), secrets...)
	}
}

// head is more of a text than answer.Line keeps, and little enough to search for secrets.
func head(text string) string { return text[:min(len(text), 4*answer.MaxText)] }

// bearer is the token that the answered request carried.
func bearer(resp *http.Response) string {
	if resp.Request == nil {
		return ""
	}
	return strings.TrimPrefix(resp.Request.Header.Get("Authorization"), "Bearer ")
}
