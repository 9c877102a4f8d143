package pairing

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/sealpush/sealpush/internal/crossorigin"
)

// Tester sends a test alert to one paired phone, for POST /push/devices/{id}/test. It returns the relay's HTTP status,
// 0 when there was none, and what went wrong. The error's text reaches the caller over HTTP, except that of
// [ErrUnavailable], so it must quote no secret. An id that is not paired is [ErrUnknownDevice]. Requests call it at the
// same time, so it must be safe for concurrent use; relayclient's Notifier.Test is one.
type Tester func(ctx context.Context, deviceID string) (status int, err error)

// HandlerOption changes how [Handler] serves.
type HandlerOption func(*handlerConfig) error

// WithCaller tells the handler who makes a request: caller returns the label of the token that the request was let in
// with, which becomes CreatedBy and UpdatedBy of the phones it pairs. Without it they are "", null in JSON. Requests
// call it at the same time.
func WithCaller(caller func(*http.Request) string) HandlerOption {
	return func(c *handlerConfig) error {
		if caller == nil {
			return errors.New("pairing: WithCaller: the function is nil")
		}
		c.caller = caller
		return nil
	}
}

// WithOwnDevicesOnly lets only the caller that first paired a phone pair it again, replace it by another key, or revoke
// it; others are answered 403. A phone whose CreatedBy is "" can be changed by nobody. It needs [WithCaller]. Listing
// and test alerts stay open to all callers.
func WithOwnDevicesOnly() HandlerOption {
	return func(c *handlerConfig) error {
		c.ownOnly = true
		return nil
	}
}

// WithOrigins lets pages of other origins than the daemon's own use the pairing API, and read its answers: those of a
// web phone, which follows a [Link]. Each origin is written as browsers write it, such as https://phone.example.com,
// and is compared byte by byte. Without it there is none.
//
// A browser asks before it sends such a request, with OPTIONS and without Authorization: a check in front of the
// handler lets OPTIONS pass. What that check refuses, a page cannot read.
func WithOrigins(origins ...string) HandlerOption {
	return func(c *handlerConfig) (err error) {
		if c.origins, err = crossorigin.Parse(origins...); err != nil {
			return fmt.Errorf("pairing: WithOrigins: %w", err)
		}
		return nil
	}
}

// Handler serves the pairing API over a registry, for a daemon to mount at /push/devices and below:
//
//	GET    /push/devices            200 {"devices":[…]}, the first paired first
//	POST   /push/devices            201 or 200 {"device":…,"created":bool}; or 400 {"error":"name must …"}
//	DELETE /push/devices/{id}       200 {"revoked":id}
//	POST   /push/devices/{id}/test  200 or 502 {"device":id,"status":…,"error":…}; 501 when test is nil
//
// Other answers are {"error":text}: 403 for a request that a browser makes on behalf of another site, and see
// [WithOwnDevicesOnly]; 404 for an unknown id, 405, 413 for a body over [MaxRequest] bytes, 503 when the store fails,
// whose details are in the log only, 507 when there is no room for another phone ([ErrFull]). A body is read as JSON in
// UTF-8 whatever its content type is, unless that names another charset: 400. Push tokens are cut to their last six
// characters, public keys are whole and come with their fingerprints. All devices that have an id are listed, also
// those that cannot be used: sealableHere says whether this node can seal to a device.
//
// It does not authenticate anybody: anybody who can reach it decides who is paged. Put a check in front, as
// docs/daemon.md does, and give the server timeouts. It sends no CORS headers, but see [WithOrigins]. The error says
// which argument is wrong.
func Handler(reg *Registry, test Tester, opts ...HandlerOption) (http.Handler, error) {
	if reg == nil {
		return nil, errors.New("pairing: Handler needs a registry")
	}
	h := &handler{reg: reg, test: test}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("pairing: an option is nil")
		}
		if err := opt(&h.handlerConfig); err != nil {
			return nil, err
		}
	}
	if h.caller == nil {
		if h.ownOnly {
			return nil, errors.New("pairing: WithOwnDevicesOnly needs WithCaller")
		}
		h.caller = func(*http.Request) string { return "" }
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /push/devices", h.list)
	mux.HandleFunc("POST /push/devices", h.pair)
	mux.HandleFunc("/push/devices", methodNotAllowed("GET, HEAD, POST"))
	mux.HandleFunc("DELETE /push/devices/{id}", h.revoke)
	mux.HandleFunc("/push/devices/{id}", methodNotAllowed("DELETE"))
	mux.HandleFunc("POST /push/devices/{id}/test", h.testDevice)
	mux.HandleFunc("/push/devices/{id}/test", methodNotAllowed("POST"))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { writeError(w, http.StatusNotFound, "not found") })
	return h.origins.Handler(mux, "GET, POST, DELETE", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeError(w, http.StatusForbidden, "a page of another site may not change anything here")
	})), nil
}

type handler struct {
	handlerConfig
	reg  *Registry
	test Tester
}

// handlerConfig is what the options set.
type handlerConfig struct {
	caller  func(*http.Request) string
	ownOnly bool
	origins crossorigin.Origins
}

func (h *handler) list(w http.ResponseWriter, r *http.Request) {
	devices, err := h.reg.Devices(r.Context())
	if err != nil {
		h.fail(w, r, err)
		return
	}
	views := make([]deviceView, 0, len(devices))
	for _, d := range devices {
		if d.ID != "" { // without an id it could not be revoked
			views = append(views, d.view())
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"devices": views})
}

func (h *handler) pair(w http.ResponseWriter, r *http.Request) {
	if !isUTF8(r.Header.Get("Content-Type")) {
		writeError(w, http.StatusBadRequest, "body must be UTF-8")
		return
	}
	req, err := ParseRequest(http.MaxBytesReader(w, r.Body, MaxRequest))
	if err != nil {
		h.fail(w, r, err)
		return
	}
	device, created, err := h.reg.pair(r.Context(), req, h.caller(r), h.ownOnly)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
	}
	writeJSON(w, status, map[string]any{"device": device.view(), "created": created})
}

// isUTF8 reports whether a content type names no charset, or UTF-8 or its subset.
func isUTF8(contentType string) bool {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return true
	}
	switch strings.ToLower(params["charset"]) {
	case "", "utf-8", "utf8", "us-ascii", "ascii":
		return true
	}
	return false
}

func (h *handler) revoke(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if err := h.reg.revoke(r.Context(), id, h.caller(r), h.ownOnly); err != nil {
		h.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"revoked": id})
}

func (h *handler) testDevice(w http.ResponseWriter, r *http.Request) {
	if h.test == nil {
		writeError(w, http.StatusNotImplemented, "this daemon sends no test alerts")
		return
	}
	id := r.PathValue("id")
	relayStatus, err := h.test(r.Context(), id)
	if errors.Is(err, ErrUnknownDevice) || errors.Is(err, ErrUnavailable) {
		h.fail(w, r, err)
		return
	}
	answer := map[string]any{"device": id, "status": nil, "error": nil}
	status := http.StatusOK
	if relayStatus != 0 {
		answer["status"] = relayStatus
	}
	if err != nil {
		answer["error"] = err.Error()
		status = http.StatusBadGateway
	}
	writeJSON(w, status, answer)
}

// fail answers with what the caller may know of an error.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		writeError(w, http.StatusRequestEntityTooLarge, "body is too large")
		return
	}
	if field, ok := errors.AsType[*FieldError](err); ok {
		writeError(w, http.StatusBadRequest, field.Field+" "+field.Reason)
		return
	}
	if errors.Is(err, ErrUnknownDevice) {
		writeError(w, http.StatusNotFound, "no device with this id is paired")
		return
	}
	if errors.Is(err, errNotYours) {
		writeError(w, http.StatusForbidden, "another caller paired this phone")
		return
	}
	if errors.Is(err, ErrFull) {
		h.reg.log().WarnContext(r.Context(), "no room for another phone", "error", err)
		writeError(w, http.StatusInsufficientStorage, "the registry is full: revoke phones that are not used any more")
		return
	}
	h.reg.log().ErrorContext(r.Context(), "pairing request failed", "method", r.Method, "path", r.URL.Path, "error", err)
	writeError(w, http.StatusServiceUnavailable, "registry unavailable")
}

// methodNotAllowed serves a path's other methods: ServeMux would answer by itself, but not in JSON.
func methodNotAllowed(allow string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Allow", allow)
		writeError(w, http.StatusMethodNotAllowed, "method not allowed")
	}
}

func writeError(w http.ResponseWriter, status int, text string) {
	writeJSON(w, status, map[string]any{"error": text})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(v) // it fails only when the client is gone
}
