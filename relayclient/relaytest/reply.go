package relaytest

import (
	"encoding/json"
	"net/http"
)

// An outcome is what became of an envelope that a relay took.
type outcome string

const forwarded outcome = "forwarded"

// A reply is what a relay answers an envelope with. Every body says "v":1, then
// an outcome or an error.
type reply struct {
	status int
	allow  string // of a 405

	V       int     `json:"v"`
	Outcome outcome `json:"outcome,omitempty"`
	Error   string  `json:"error,omitempty"`
}

func took(o outcome) *reply {
	return &reply{status: http.StatusAccepted, V: 1, Outcome: o}
}

func refuse(status int, problem string) *reply {
	return &reply{status: status, V: 1, Error: problem}
}

func (r *reply) write(w http.ResponseWriter) {
	body, err := json.Marshal(r)
	if err != nil {
		panic("relaytest: " + err.Error()) // unreachable: strings and a number
	}
	w.Header().Set("Content-Type", "application/json")
	if r.allow != "" {
		w.Header().Set("Allow", r.allow)
	}
	w.WriteHeader(r.status)
	w.Write(body)
}
