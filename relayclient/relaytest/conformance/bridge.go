package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// bridgeState is what a session knows of the bridge half.
type bridgeState struct {
	token   *bridgeToken   // nil until it was fetched
	devices *deviceProblem // nil until the first push
}

// A deviceProblem is why the suite must not push, if err is not nil.
type deviceProblem struct{ err error }

// A bridgeDevice is a phone that nobody has.
type bridgeDevice struct{ token, platform string }

func newBridgeDevice(platform string) bridgeDevice { return bridgeDevice{randomHex(64), platform} }

func (d bridgeDevice) registration() map[string]any {
	return map[string]any{"device_token": d.token, "platform": d.platform, "bundle_id": "com.example.conformance"}
}

func (d bridgeDevice) unregistration() map[string]any {
	return map[string]any{"device_token": d.token}
}

// call makes a request to the push relay with the session's token. Body is
// encoded as JSON unless it is a []byte.
func (s *session) call(ctx context.Context, method, path string, body any) (response, error) {
	token, err := s.fetchToken(ctx)
	if err != nil {
		return response{}, err
	}
	encoded, raw := body.([]byte)
	if !raw {
		encoded = encodeJSON(body)
	}
	return s.send(ctx, request{
		method: method, url: s.target.Bridge.RelayURL + path, bearer: token.answer.AccessToken, body: encoded,
	})
}

func (r response) succeeded() error {
	if r.status/100 == 2 {
		return nil
	}
	return fmt.Errorf("want 2xx; answered %v", r)
}

// register registers a device, to be unregistered by the function it returns.
func (s *session) register(ctx context.Context, d bridgeDevice) (r response, unregister func(), err error) {
	r, err = s.call(ctx, http.MethodPost, "/register", d.registration())
	if err == nil {
		err = r.succeeded()
	}
	if err != nil {
		return r, func() {}, err
	}
	return r, func() {
		s.call(context.WithoutCancel(ctx), http.MethodDelete, "/register", d.unregistration())
	}, nil
}

// A bridgeAnswer is what the hosted bridge relay answers with.
type bridgeAnswer struct {
	OK      *bool        `json:"ok"`
	Message string       `json:"message"`
	Error   string       `json:"error"`
	Results []pushResult `json:"results"` // nil if there are none
}

type pushResult struct {
	Platform string `json:"platform"`
	Status   string `json:"status"`
	Reason   string `json:"reason"`
}

// decodeBridge is zero for a body of another shape.
func (r response) decodeBridge() bridgeAnswer {
	var body bridgeAnswer
	if json.Unmarshal(r.body, &body) != nil {
		return bridgeAnswer{}
	}
	return body
}

// succeeded reports whether the body says that all is well.
func (b bridgeAnswer) succeeded() bool { return b.OK != nil && *b.OK }

// failed is the error that the body states, if it is one of failure.
func (b bridgeAnswer) failed() string {
	if b.OK == nil || *b.OK {
		return ""
	}
	return b.Error
}
