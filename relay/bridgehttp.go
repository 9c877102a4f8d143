package relay

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/sealpush/sealpush/internal/requestbody"
)

// maxBridgeBody is the size in bytes of the largest request body that the push relay of bridges and the token service
// read; more is answered 413.
const maxBridgeBody = 8 << 10

// bridgeOK and bridgeFailure are the two bodies that both services answer with, where nothing more is to be said.
type bridgeOK struct {
	OK      bool   `json:"ok"`
	Message string `json:"message"`
}

type bridgeFailure struct {
	OK    bool   `json:"ok"`
	Error string `json:"error"`
}

// A bridgeHandler answers a request whose body has been read.
type bridgeHandler func(w http.ResponseWriter, r *http.Request, body []byte)

// serveBody reads at most limit bytes of the body before anything else, since a server notices that its client has gone
// only once the body is read. A nil handler stands for a method or a path that there is not: like the deployed
// services, both answer 404 to it.
func serveBody(w http.ResponseWriter, r *http.Request, limit int, handler bridgeHandler) {
	announceIdle(w, r)
	if handler == nil {
		if r.ContentLength != 0 {
			requestbody.CloseAfter(w, r) // nobody wants the body
		}
		writeBridgeError(w, http.StatusNotFound, "not found")
		return
	}
	body, err := requestbody.Read(w, r, int64(limit)+1)
	switch {
	case errors.Is(err, requestbody.ErrTimeout):
		requestbody.CloseAfter(w, r)
		writeBridgeError(w, http.StatusRequestTimeout, err.Error())
	case err != nil:
		writeBridgeError(w, http.StatusBadRequest, "body not readable")
	case len(body) > limit:
		requestbody.CloseAfter(w, r)
		writeBridgeError(w, http.StatusRequestEntityTooLarge, "body too large")
	default:
		handler(w, r, body)
	}
}

func serveHealth(w http.ResponseWriter, _ *http.Request, _ []byte) {
	writeBridgeJSON(w, http.StatusOK, struct {
		OK        bool   `json:"ok"`
		Status    string `json:"status"`
		Timestamp string `json:"timestamp"`
	}{true, "healthy", time.Now().UTC().Format("2006-01-02T15:04:05.000Z")})
}

func writeBridgeError(w http.ResponseWriter, status int, reason string) {
	writeBridgeJSON(w, status, bridgeFailure{Error: reason})
}

// refuseBearer answers a request whose token does not do (RFC 6750, section 3).
func refuseBearer(w http.ResponseWriter, status int, reason string) {
	w.Header().Set("WWW-Authenticate", `Bearer error="`+reason+`"`)
	writeBridgeError(w, status, reason)
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

// bridgeBody is the JSON object of a request: its members by their exact names, the last of two with one name.
type bridgeBody map[string]json.RawMessage

// readBridgeBody answers 400 and reports false for a body that is not a JSON object.
func readBridgeBody(w http.ResponseWriter, body []byte) (bridgeBody, bool) {
	var members bridgeBody
	if json.Unmarshal(body, &members) != nil || members == nil {
		writeBridgeError(w, http.StatusBadRequest, "body is not a JSON object")
		return nil, false
	}
	return members, true
}

// text returns a member that should be a text. As at the deployed services, another value counts as the text that it is
// written as, and one that is nothing (null, false, 0) as a missing one.
func (b bridgeBody) text(name string) string {
	raw := bytes.TrimSpace(b[name])
	if len(raw) == 0 {
		return ""
	}
	if raw[0] == '"' {
		return b.string(name)
	}
	if number, err := strconv.ParseFloat(string(raw), 64); err == nil && number == 0 {
		return ""
	}
	if text := string(raw); text != "null" && text != "false" {
		return text
	}
	return ""
}

// string returns a member that must be a text, "" if it is not.
func (b bridgeBody) string(name string) string {
	var text string
	if json.Unmarshal(b[name], &text) != nil {
		return ""
	}
	return text
}
