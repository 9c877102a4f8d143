package relay

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/sealpush/sealpush/internal/requestbody"
)

// maxBridgeBody is the size in bytes of the largest request body that the push
// relay of bridges and the token service read; more is answered 413.
const maxBridgeBody = 8 << 10

// bridgeOK and bridgeFailure are the two bodies that both services answer with,
// where nothing more is to be said.
type bridgeOK struct {
	OK      bool   `json:"ok"`
	Message string `json:"message"`
}

type bridgeFailure struct {
	OK    bool   `json:"ok"`
	Error string `json:"error"`
}

type bridgeRoute struct {
	method, path string
	serve        http.HandlerFunc
}

// bridgeRoutes is a handler whose every answer is JSON, those of 404 and 405 too.
func bridgeRoutes(routes []bridgeRoute) http.Handler {
	mux := http.NewServeMux()
	allowed := map[string][]string{}
	for _, route := range routes {
		mux.Handle(route.method+" "+route.path, withBody(route.serve))
		allowed[route.path] = append(allowed[route.path], route.method)
	}
	for path, methods := range allowed {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", strings.Join(methods, ", "))
			writeBridgeError(w, http.StatusMethodNotAllowed, "method not allowed")
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeBridgeError(w, http.StatusNotFound, "not found")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		announceIdle(w, r)
		mux.ServeHTTP(w, r)
	})
}

// withBody reads the body before anything else: a server notices that its client
// has gone only once the body is read.
func withBody(serve http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := requestbody.Read(w, r, maxBridgeBody+1)
		switch {
		case errors.Is(err, requestbody.ErrTimeout):
			requestbody.CloseAfter(w, r)
			writeBridgeError(w, http.StatusRequestTimeout, err.Error())
		case err != nil:
			writeBridgeError(w, http.StatusBadRequest, "body not readable")
		case len(body) > maxBridgeBody:
			writeBridgeError(w, http.StatusRequestEntityTooLarge, "body too large")
		default:
			r.Body = &requestbody.Replay{Body: body}
			serve(w, r)
		}
	})
}

func serveHealth(w http.ResponseWriter, _ *http.Request) {
	writeBridgeJSON(w, http.StatusOK, bridgeOK{OK: true, Message: "healthy"})
}

func writeBridgeError(w http.ResponseWriter, status int, reason string) {
	writeBridgeJSON(w, status, bridgeFailure{Error: reason})
}

func writeBridgeJSON(w http.ResponseWriter, status int, body any) {
	encoded, err := json.Marshal(body)
	if err != nil {
		panic(err) // none of our answers holds what JSON cannot
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(encoded, '\n'))
}

// readBridgeJSON decodes the body, of which members that into does not know are
// ignored. If it cannot, it answers 400 and reports false.
func readBridgeJSON(w http.ResponseWriter, r *http.Request, into any) bool {
	body, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(body, into) != nil {
		writeBridgeError(w, http.StatusBadRequest, "body is not the JSON that is expected here")
		return false
	}
	return true
}
