package relaytest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sealpush/sealpush/relay/apns"
	"github.com/sealpush/sealpush/secret"
)

// Bounds of one fetch.
const (
	inboxWait  = 25 * time.Second // less than most proxies let a request wait
	inboxBatch = 100              // messages
)

// InboxHandler serves the relay's inboxes to phones in other processes. It stands in for the push service and for
// nothing in the relay protocol, so a real relay has no such thing. Mount it where the phone looks for it:
//
//	GET ?after=NEXT     Authorization: Bearer DEVICE-TOKEN
//	200 {"messages":[{"header":{…},"payload":{…}}],"next":"…"}
//
// The answer has the oldest messages after the one that next stood for in an earlier answer, or from the first that is
// kept, at most 100. Without any it waits for one, 25 seconds at most, and then has none, so give the server longer
// timeouts. The device token is all it takes to read an inbox. It is a header, because paths and queries end up in
// logs.
//
// Other answers are {"v":1,"error":text}: 400 for an after that no answer gave, 401 for a device token that is not 16
// to 512 hex digits, 405, and 503 once the relay is closed, which also ends what waits. With a forwarder of your own
// ([WithRelay]) or [WithHistory] of 0 there is nothing to fetch.
func (r *Relay) InboxHandler() http.Handler { return http.HandlerFunc(r.serveInbox) }

// fetched is what a phone gets: the messages and where to go on.
type fetched struct {
	Messages []fetchedMessage `json:"messages"`
	Next     string           `json:"next"`
}

type fetchedMessage struct {
	Header  http.Header     `json:"header"`
	Payload json.RawMessage `json:"payload"`
}

func (r *Relay) serveInbox(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		refuse(w, http.StatusMethodNotAllowed, "method must be GET")
		return
	}
	scheme, device, _ := strings.Cut(req.Header.Get("Authorization"), " ")
	if _, err := apns.DeviceName(device); err != nil || !strings.EqualFold(scheme, "Bearer") {
		w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(w, http.StatusUnauthorized, "Authorization must be Bearer and the phone's push token in hex")
		return
	}
	after, ok := r.inbox.position(req.URL.Query().Get("after"))
	if !ok {
		refuse(w, http.StatusBadRequest, "after must be what next was in an earlier answer")
		return
	}

	ctx, cancel := context.WithTimeout(req.Context(), inboxWait)
	defer cancel()
	defer context.AfterFunc(r.life, cancel)()
	answer := r.inbox.fetch(ctx, device, after)
	if len(answer.Messages) == 0 && r.life.Err() != nil {
		refuse(w, http.StatusServiceUnavailable, "the relay is closed")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	json.NewEncoder(w).Encode(answer) // fails only when the phone is gone
}

// refuse answers with an error in the shape of the relay's own.
func refuse(w http.ResponseWriter, status int, problem string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(struct {
		V     int    `json:"v"`
		Error string `json:"error"`
	}{1, problem})
}

// position reads what an answer said in next: how many messages the inbox had been forwarded by then. That of another
// relay counts for nothing, as when a relay was started anew and its numbers begin again.
func (b *inbox) position(next string) (after int, ok bool) {
	if next == "" {
		return 0, true
	}
	id, number, _ := strings.Cut(next, "-")
	after, err := strconv.Atoi(number)
	if err != nil || after < 0 {
		return 0, false
	}
	if id != b.id {
		return 0, true
	}
	return after, true
}

// fetch waits for messages to a device, until ctx is done.
func (b *inbox) fetch(ctx context.Context, device string, after int) fetched {
	var found fetched
	look := func() bool {
		found = b.from(device, after)
		return len(found.Messages) > 0
	}
	if err := b.await(ctx, look); err != nil {
		// One last look: when a relay is closed right after its last message, the end of the wait may be noticed first.
		b.Lock()
		defer b.Unlock()
		look()
	}
	return found
}

// from returns the messages to a device after that many of all; the caller holds the mutex.
func (b *inbox) from(device string, after int) fetched {
	kept := b.messages.latest()
	dropped := b.forwarded - len(kept)
	after = min(max(after, dropped), b.forwarded)
	found := fetched{Messages: []fetchedMessage{}}
	token := secret.New(strings.ToLower(device))
	for _, m := range kept[after-dropped:] {
		if len(found.Messages) == inboxBatch {
			break
		}
		after++
		if m.Device.Equal(token) {
			found.Messages = append(found.Messages, fetchedMessage{m.Header, m.Payload})
		}
	}
	found.Next = fmt.Sprintf("%s-%d", b.id, after)
	return found
}
