package bridge_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/sealpush/sealpush/bridge"
)

// handlerTransport answers requests from a handler, within the test's own bubble. Like a connection it gives up when
// the request's context ends.
type handlerTransport struct{ http.Handler }

func (t handlerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	answer := make(chan *http.Response, 1)
	go func() {
		w := httptest.NewRecorder()
		t.ServeHTTP(w, req)
		if req.Body != nil {
			req.Body.Close()
		}
		answer <- w.Result()
	}()
	select {
	case resp := <-answer:
		resp.Request = req
		return resp, nil
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

// service is a token service and a push relay whose answers are scripted.
type service struct {
	mu     sync.Mutex
	tokens int
	seen   []string         // requests to the relay, with their bodies
	relay  http.HandlerFunc // nil for a relay that reaches an iPhone
	token  http.HandlerFunc // nil for a token of an hour
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	answer := s.relay
	if r.URL.Host == "token.example" {
		s.tokens++
		if answer = s.token; answer == nil {
			answer = say(200, fmt.Sprintf(`{"access_token":"tok-%d","token_type":"Bearer","expires_in":3600}`, s.tokens))
		}
	} else {
		s.seen = append(s.seen, r.Method+" "+r.URL.Path+" "+string(body))
		if answer == nil {
			answer = say(200, `{"ok":true,"results":[{"platform":"ios","status":"sent"}]}`)
		}
	}
	s.mu.Unlock()
	answer(w, r)
}

func (s *service) set(relay http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.relay = relay
}

func (s *service) setToken(token http.HandlerFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// requests returns what the relay saw since the last call.
func (s *service) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.seen
	s.seen = nil
	return seen
}

func say(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		io.WriteString(w, body)
	}
}

func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

var quiet = bridge.WithLogger(slog.New(slog.DiscardHandler))

func newClient(tb testing.TB, service http.Handler, opts ...bridge.Option) *bridge.Client {
	tb.Helper()
	client, err := bridge.New(config, append([]bridge.Option{
		quiet, bridge.WithHTTPClient(&http.Client{Transport: handlerTransport{service}}),
	}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	return client
}
