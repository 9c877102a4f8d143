package pushauth_test

import (
	"net/http"
	"net/http/httptest"

	"github.com/sealpush/sealpush/pushauth"
)

var credentials = pushauth.Credentials{
	TokenURL:     "https://token.example/",
	ClientID:     "bridge-home-office",
	ClientSecret: "hunter2-the-secret",
}

// handlerTransport answers requests from a handler, within the test's own bubble. Like a connection it gives up when the request's context ends.
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
