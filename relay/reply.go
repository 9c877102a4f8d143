package relay

import (
	"encoding/json"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/sealpush/sealpush/internal/requestbody"
)

// An outcome is what becomes of an envelope that is right.
type outcome string

const (
	forwarded  outcome = "forwarded"  // to the push service
	coalesced  outcome = "coalesced"  // with a page that was just forwarded
	suppressed outcome = "suppressed" // because its collapse id flaps
	digested   outcome = "digested"   // because the device's quota is used up
	limited    outcome = "limited"    // refused: the device's bucket is empty
	underway   outcome = "underway"   // not known yet: its page is being forwarded
)

// A reply is what a relay answers. To an envelope, every body says "v":1, then an outcome or an error.
type reply struct {
	status     int
	page       string        // of a 200: a text instead of JSON
	allow      string        // of a 405
	hangUp     bool          // close the connection
	retryAfter time.Duration // of a 429

	V       int     `json:"v"`
	Outcome outcome `json:"outcome,omitempty"`
	Error   string  `json:"error,omitempty"`
	Reason  string  `json:"reason,omitempty"`
}

func took(o outcome) *reply {
	return &reply{status: http.StatusAccepted, V: 1, Outcome: o}
}

func refuse(status int, problem string) *reply {
	return &reply{status: status, V: 1, Error: problem}
}

func (r *reply) write(w http.ResponseWriter, req *http.Request) {
	if r.page != "" {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, r.page)
		return
	}
	body, err := json.Marshal(r)
	if err != nil {
		panic("relay: " + err.Error()) // unreachable: strings and a number
	}
	w.Header().Set("Content-Type", "application/json")
	if r.hangUp {
		requestbody.CloseAfter(w, req)
	}
	if r.allow != "" {
		w.Header().Set("Allow", r.allow)
	}
	if r.retryAfter > 0 {
		seconds := math.Ceil(r.retryAfter.Seconds())
		w.Header().Set("Retry-After", strconv.FormatFloat(seconds, 'f', 0, 64))
	}
	w.WriteHeader(r.status)
	w.Write(body)
}
