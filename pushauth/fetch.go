package pushauth

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/sealpush/sealpush/internal/answer"
	"github.com/sealpush/sealpush/internal/retry"
)

const (
	fetchTimeout     = 10 * time.Second // for one fetch, its retries included
	maxAnswer        = 64 << 10         // bytes
	maxAnswerMessage = 256              // bytes
)

// fetch asks the token service for a token. Its error is a *TokenError.
func (s *Source) fetch(ctx context.Context) (Token, error) {
	// A token's life is counted from before it was asked for, so that a slow answer never prolongs it.
	start := time.Now()
	resp, err := s.post(ctx)
	if err != nil {
		return Token{}, &TokenError{Err: answer.Error(err, s.credentials.ClientSecret.Reveal())}
	}
	defer resp.Body.Close()

	leadsTo := answer.LeadsTo(resp, s.credentials.ClientSecret.Reveal())
	failed := &TokenError{StatusCode: resp.StatusCode, LeadsTo: leadsTo, RetryAfter: answer.RetryAfter(resp.Header, start)}
	body, err := answer.Read(resp, maxAnswer)
	switch {
	case resp.StatusCode/100 != 2:
		failed.Message = s.message(body)
	case err != nil:
		failed.Err = fmt.Errorf("its answer cannot be read: %w", answer.Error(err, s.credentials.ClientSecret.Reveal()))
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
		"client_secret": s.credentials.ClientSecret.Reveal(),
	})
	if err != nil {
		return nil, err
	}
	return retry.Do(ctx, s.client, http.MethodPost, s.endpoint, body, nil)
}

// message is what the service said, fit to print: its "error" when it sent one.
func (s *Source) message(body []byte) string {
	text := string(body)
	var said struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &said) == nil && said.Error != "" {
		text = strings.TrimSuffix(said.Error+": "+said.Description, ": ")
	}
	text = text[:min(len(text), 4*answer.MaxText)] // longer than what is kept, and short enough to search for the secret
	return answer.Line(text, s.credentials.ClientSecret.Reveal())
}
