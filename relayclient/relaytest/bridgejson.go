package relaytest

import (
	"encoding/json"
	"io"
	"net/http"
)

// bridgeOK and bridgeFailure are the two bodies that both halves of a
// BridgeService answer with, where nothing more is to be said.
type bridgeOK struct {
	OK      bool   `json:"ok"`
	Message string `json:"message"`
}

type bridgeFailure struct {
	OK    bool   `json:"ok"`
	Error string `json:"error"`
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
