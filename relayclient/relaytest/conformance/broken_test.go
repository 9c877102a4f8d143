package conformance_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"time"
)

// A brokenRelay is a relay that does one thing wrong. It looks at a post before
// the right relay does, and at the answer after that.
type brokenRelay struct {
	// before may change the post, or answer it itself and return true.
	before func(w http.ResponseWriter, p *post) (answered bool)
	// after may change the answer.
	after func(p *post, a *httptest.ResponseRecorder)
	// slow serves requests itself, with the right relay at hand.
	slow func(relay http.Handler) http.Handler
	// serialHeaders makes connections wait for one another's headers.
	serialHeaders bool
}

// A post is a request as a broken relay sees it.
type post struct {
	*http.Request
	body    []byte
	members map[string]any // nil if the body is no JSON object
}

func (p *post) text(name string) string {
	s, _ := p.members[name].(string)
	return s
}

// set changes a member of the body.
func (p *post) set(name string, value any) {
	p.members[name] = value
	p.body, _ = json.Marshal(p.members)
}

// over puts the relay behind what is broken about it.
func (b brokenRelay) over(relay http.Handler) http.Handler {
	if b.slow != nil {
		return b.slow(relay)
	}
	var mu sync.Mutex // so that before and after need none
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p := &post{Request: r}
		var err error
		if p.body, err = io.ReadAll(io.LimitReader(r.Body, 1<<19)); err != nil {
			panic(http.ErrAbortHandler)
		}
		json.Unmarshal(p.body, &p.members)
		if b.before != nil && locked(&mu, func() bool { return b.before(w, p) }) {
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(p.body)), int64(len(p.body))
		if b.after == nil {
			relay.ServeHTTP(w, r)
			return
		}
		a := httptest.NewRecorder()
		relay.ServeHTTP(a, r)
		locked(&mu, func() bool { b.after(p, a); return true })
		for name, values := range a.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(a.Code)
		w.Write(a.Body.Bytes())
	})
}

func locked(mu *sync.Mutex, f func() bool) bool {
	mu.Lock()
	defer mu.Unlock()
	return f()
}

func answer(w http.ResponseWriter, status int, body string) bool {
	w.WriteHeader(status)
	io.WriteString(w, body)
	return true
}

func takes(w http.ResponseWriter) bool {
	return answer(w, http.StatusAccepted, `{"v":1,"outcome":"forwarded"}`)
}

// refusesWhere refuses posts that a relay must take.
func refusesWhere(where func(p *post) bool) brokenRelay {
	return brokenRelay{before: func(w http.ResponseWriter, p *post) bool {
		return where(p) && answer(w, http.StatusBadRequest, `{"v":1,"error":"body is not to my liking"}`)
	}}
}

// takesWhere takes posts that a relay must refuse.
func takesWhere(where func(p *post) bool) brokenRelay {
	return brokenRelay{before: func(w http.ResponseWriter, p *post) bool { return where(p) && takes(w) }}
}

// ignores does not look at a member where it is wrong in a way that where says,
// but at all the others. It looks at all members where several are null.
func ignores(name string, right any, where func(value any, has bool) bool) brokenRelay {
	return brokenRelay{before: func(_ http.ResponseWriter, p *post) bool {
		nulls := 0
		for _, value := range p.members {
			if value == nil {
				nulls++
			}
		}
		if value, has := p.members[name]; p.members != nil && nulls < 2 && p.Method == http.MethodPost && where(value, has) {
			p.set(name, right)
		}
		return false
	}}
}

func noMembers(p *post) bool { return string(p.body) == "{}" }

func missing(_ any, has bool) bool { return !has }

// answersWhere answers some posts itself.
func answersWhere(where func(p *post) bool, status int, body string) brokenRelay {
	return brokenRelay{before: func(w http.ResponseWriter, p *post) bool { return where(p) && answer(w, status, body) }}
}

func answersInstead(status, instead int) brokenRelay {
	return brokenRelay{after: func(_ *post, a *httptest.ResponseRecorder) {
		if a.Code == status {
			a.Code = instead
		}
	}}
}

// ciphertextOf is a condition on the ciphertext's length.
func ciphertextOf(length int) func(*post) bool {
	return func(p *post) bool { return len(p.text("ciphertext")) == length }
}

const rightHex = "8f3a1bc2d4e5f60718293a4b5c6d7e8f"

var rightBox = strings.Repeat("AAAA", 30)

// brokenRelays has, under the name of each check, relays that only this check
// finds to be wrong.
func brokenRelays() map[string][]brokenRelay {
	return map[string][]brokenRelay{
		"accept-envelope": {onlyOnce(func(*post) bool { return true }, http.StatusBadRequest)},
		"accept-passive":  {refusesWhere(func(p *post) bool { return p.text("priority") == "passive" })},
		"accept-event":    {refusesWhere(func(p *post) bool { return p.members["event"] == true })},
		"accept-json": {
			refusesWhere(func(p *post) bool { return bytes.ContainsAny(p.body, "\n") }),
			refusesWhere(func(p *post) bool { return bytes.HasPrefix(p.body, []byte(`{"event"`)) }),
			refusesWhere(func(p *post) bool { return bytes.Contains(p.body, []byte(`\u0049`)) }),
		},
		"accept-unknown-members": {refusesWhere(func(p *post) bool { return p.members["ttl"] != nil })},
		"accept-device-lengths": {
			refusesWhere(func(p *post) bool { n := len(p.text("device")); return n > 15 && n < 64 }),
			refusesWhere(func(p *post) bool { n := len(p.text("device")); return n > 64 && n < 513 }),
		},
		"size-2996":          {refusesWhere(ciphertextOf(2996))},
		"size-3000":          {refusesWhere(ciphertextOf(3000)), refusesWhere(func(p *post) bool { return ciphertextOf(3000)(p) && strings.HasSuffix(p.text("ciphertext"), "==") })},
		"size-2999-unpadded": {takesWhere(ciphertextOf(2999))},
		"size-3800": {
			refusesWhere(ciphertextOf(3800)),
			refusesWhere(func(p *post) bool { return ciphertextOf(3800)(p) && p.text("suite") == "xwing" }),
		},
		"size-3804": {
			takesWhere(ciphertextOf(3804)),
			answersWhere(ciphertextOf(3804), http.StatusRequestEntityTooLarge, `{"v":1,"error":"ciphertext is too long"}`),
			answersWhere(ciphertextOf(3804), http.StatusBadRequest, `{"v":1,"error":"alert is too long"}`),
			answersWhere(ciphertextOf(3804), http.StatusBadRequest, strings.Repeat(" ", 510)+`ciphertext`),
		},
		"size-body-8192": {refusesWhere(func(p *post) bool { return len(p.body) == 8192 })},

		"suite-known": {
			refusesWhere(func(p *post) bool { return p.text("suite") == "xwing" && len(p.text("ciphertext")) == 1916 }),
			answersWhere(func(p *post) bool { return p.text("suite") == "xwing" && len(p.text("ciphertext")) == 1916 }, http.StatusBadGateway, "PayloadTooLarge"),
		},
		"suite-unknown": {
			refusesWhere(func(p *post) bool { return p.text("suite") == "a-" && len(p.text("ciphertext")) == 400 }),
			refusesWhere(func(p *post) bool { return len(p.text("suite")) == 16 }),
		},
		"suite-grammar": {
			ignores("suite", "x25519", func(v any, has bool) bool { return has && v == nil }),
			ignores("suite", "x25519", func(v any, _ bool) bool { s, _ := v.(string); return len(s) == 17 }),
			answersWhere(func(p *post) bool { return p.text("suite") == "X25519" }, http.StatusUnprocessableEntity, `{"v":1,"error":"suite is wrong"}`),
			answersWhere(func(p *post) bool { return p.text("suite") == "X25519" }, http.StatusBadRequest, `{"v":1,"error":"body is wrong"}`),
		},
		"suite-shortest-taken": {refusesWhere(ciphertextOf(68)), refusesWhere(ciphertextOf(1520))},
		"suite-shorter-refused": {
			takesWhere(ciphertextOf(1516)),
			takesWhere(func(p *post) bool { return ciphertextOf(64)(p) && p.text("suite") == "a-" }),
		},

		"refuse-not-json": {
			takesWhere(func(p *post) bool { return p.Method == http.MethodPost && !json.Valid(p.body) && len(p.body) < 1<<19 }),
			takesWhere(func(p *post) bool { return bytes.HasSuffix(p.body, []byte("}}}")) }),
		},
		"refuse-not-object": {
			takesWhere(func(p *post) bool { return json.Valid(p.body) && p.members == nil }),
			takesWhere(func(p *post) bool { return bytes.HasPrefix(p.body, []byte("[")) }),
		},
		"refuse-v": {ignores("v", 1, func(v any, _ bool) bool { return v != 1.0 && v != 2.0 }), ignores("v", 1, missing)},
		"refuse-device": {
			ignores("device", rightHex, notText),
			takesWhere(func(p *post) bool { _, has := p.members["device"]; return len(p.members) == 5 && !has }),
		},
		"refuse-ciphertext":  {ignores("ciphertext", rightBox, func(v any, has bool) bool { s, _ := v.(string); return notText(v, has) || strings.Contains(s, "*") })},
		"refuse-collapse-id": {ignores("collapseId", rightHex, notText), ignores("collapseId", rightHex, missing)},
		"refuse-priority": {
			ignores("priority", "passive", func(v any, _ bool) bool { return v != "passive" && v != "time-sensitive" }),
			ignores("priority", "passive", missing),
		},
		"refuse-event": {ignores("event", false, func(v any, _ bool) bool { return v != true && v != false })},

		"form-v-2":        {ignores("v", 1, func(v any, _ bool) bool { return v == 2.0 })},
		"form-device":     {ignores("device", rightHex, func(v any, _ bool) bool { s, _ := v.(string); return len(s) == 15 || len(s) == 60 || len(s) == 513 })},
		"form-ciphertext": {ignores("ciphertext", rightBox, func(v any, _ bool) bool { s, _ := v.(string); return strings.ContainsAny(s, "\r-") })},
		"form-collapse-id": {ignores("collapseId", rightHex, func(v any, _ bool) bool {
			s, _ := v.(string)
			return len(s) > 30 && strings.Trim(s, "0123456789abcdef") != ""
		})},
		"form-names": {brokenRelay{before: func(_ http.ResponseWriter, p *post) bool {
			if device := p.members["Device"]; device != nil {
				p.set("device", device)
			}
			return false
		}}},

		"answer-accepted": {
			answersInstead(http.StatusAccepted, http.StatusOK),
			changesFirstBody(`"outcome":"coalesced"`, `"outcome":"dropped"`),
		},
		"answer-order": {answersWhere(func(p *post) bool {
			return p.members != nil && p.members["suite"] == nil && p.members["ciphertext"] == nil && p.text("collapseId") != ""
		}, http.StatusBadRequest, `{"v":1,"error":"ciphertext must be a string"}`)},
		"answer-refused":         {changesBody(http.StatusBadRequest, `"v":1,`, "")},
		"answer-names-member":    {answersWhere(noMembers, http.StatusBadRequest, `{"v":1,"error":"something is missing"}`)},
		"answer-quotes-no-token": {brokenRelay{after: quotesToken}},
		"status-400":             {answersWhere(noMembers, http.StatusUnprocessableEntity, `{"v":1,"error":"v is missing"}`)},
		"status-404":             {brokenRelay{before: func(_ http.ResponseWriter, p *post) bool { p.URL.Path = "/"; return false }}},
		"status-405":             {answersInstead(http.StatusMethodNotAllowed, http.StatusNotImplemented), withoutHeader("Allow")},
		"status-413":             {answersInstead(http.StatusRequestEntityTooLarge, http.StatusBadRequest)},

		"dedup-repeat": {newIDWhere(func(p *post, seen map[string]int) bool {
			seen[string(p.body)]++
			return seen[string(p.body)] > 1
		})},
		"dedup-nodes": {newIDWhere(func(p *post, seen map[string]int) bool {
			if id := p.text("collapseId"); seen[id] == 0 {
				seen[id] = 1
				seen[p.text("ciphertext")] = 1
			}
			return seen[p.text("ciphertext")] == 0 // of another node's
		})},
		"dedup-other-device": {coalescesBy(func(p *post) string { return p.text("collapseId") }, 2)},
		"dedup-other-id": {
			coalescesBy(func(p *post) string { return p.text("device") + p.text("collapseId")[:31] }, 2),
			coalescesBy(func(p *post) string { return p.text("device") + p.text("collapseId")[1:] }, 2),
		},
		"burst-100":              {countsAlerts(50, http.StatusServiceUnavailable), countsAlerts(50, http.StatusTooManyRequests)},
		"rate-limit-429":         {answersInstead(http.StatusTooManyRequests, http.StatusForbidden)},
		"rate-limit-retry-after": {withoutHeader("Retry-After")},
		"rate-limit-per-device":  {limitsTheNext()},

		"endure-slow-header": {{serialHeaders: true}},
		"endure-slow-body":   {{slow: oneBodyAtATime}},
		"endure-broken-body": {{slow: stumblesOverBrokenBodies}},
		"endure-oversize":    {stumblesOverLargeBodies(), takesWhere(func(p *post) bool { return len(p.body) == 1<<19 })},
	}
}

func notText(v any, has bool) bool { return has && (v == nil || v == "" || !isText(v)) }

func isText(v any) bool { _, is := v.(string); return is }

// onlyOnce answers the first post of a kind with a status.
func onlyOnce(where func(*post) bool, status int) brokenRelay {
	done := false
	return brokenRelay{before: func(w http.ResponseWriter, p *post) bool {
		if done || !where(p) {
			return false
		}
		done = true
		return answer(w, status, "try again")
	}}
}

func changesBody(status int, from, to string) brokenRelay {
	return brokenRelay{after: func(_ *post, a *httptest.ResponseRecorder) {
		if a.Code == status {
			a.Body = bytes.NewBufferString(strings.Replace(a.Body.String(), from, to, 1))
		}
	}}
}

// changesFirstBody changes the first answer that has something in its body.
func changesFirstBody(from, to string) brokenRelay {
	done := false
	return brokenRelay{after: func(_ *post, a *httptest.ResponseRecorder) {
		if body := a.Body.String(); !done && strings.Contains(body, from) {
			done = true
			a.Body = bytes.NewBufferString(strings.Replace(body, from, to, 1))
		}
	}}
}

func withoutHeader(name string) brokenRelay {
	return brokenRelay{after: func(_ *post, a *httptest.ResponseRecorder) { a.Header().Del(name) }}
}

func quotesToken(p *post, a *httptest.ResponseRecorder) {
	if a.Code == http.StatusBadRequest && p.text("device") != "" {
		a.Body = bytes.NewBufferString(strings.Replace(a.Body.String(), `"error":"`, `"error":"`+p.text("device")+" ", 1))
	}
}

// newIDWhere forwards some posts as though they were another alert.
func newIDWhere(where func(p *post, seen map[string]int) bool) brokenRelay {
	seen := map[string]int{}
	return brokenRelay{before: func(_ http.ResponseWriter, p *post) bool {
		if p.Method == http.MethodPost && len(p.text("collapseId")) == 32 && where(p, seen) {
			p.set("collapseId", randomHex())
		}
		return false
	}}
}

// coalescesBy coalesces posts of one key, which is not the right one, from the
// nth on where collapse id and device are not both the same.
func coalescesBy(key func(*post) string, nth int) brokenRelay {
	type alert struct{ device, id string }
	seen := map[string]map[alert]bool{}
	return brokenRelay{before: func(w http.ResponseWriter, p *post) bool {
		if len(p.text("collapseId")) != 32 || p.text("device") == "" || p.Method != http.MethodPost {
			return false
		}
		k, a := key(p), alert{p.text("device"), p.text("collapseId")}
		if seen[k] == nil {
			seen[k] = map[alert]bool{}
		}
		if seen[k][a] {
			return false
		}
		seen[k][a] = true
		return len(seen[k]) >= nth && answer(w, http.StatusAccepted, `{"v":1,"outcome":"coalesced"}`)
	}}
}

// countsAlerts answers a status once a collapse id has been posted too often.
func countsAlerts(most, status int) brokenRelay {
	seen := map[string]int{}
	return brokenRelay{before: func(w http.ResponseWriter, p *post) bool {
		id := p.text("collapseId")
		seen[id]++
		return id != "" && seen[id] > most && answer(w, status, "too many")
	}}
}

// limitsTheNext answers 429 to the post after one that was over a limit.
func limitsTheNext() brokenRelay {
	limited := false
	return brokenRelay{
		before: func(w http.ResponseWriter, _ *post) bool {
			if !limited {
				return false
			}
			limited = false
			w.Header().Set("Retry-After", "5")
			return answer(w, http.StatusTooManyRequests, "too many")
		},
		after: func(_ *post, a *httptest.ResponseRecorder) { limited = a.Code == http.StatusTooManyRequests },
	}
}

// oneBodyAtATime reads one body while all other requests wait.
func oneBodyAtATime(relay http.Handler) http.Handler {
	turn := make(chan struct{}, 1)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		turn <- struct{}{}
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<19))
		<-turn
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		relay.ServeHTTP(w, r)
	})
}

// stumblesOverBrokenBodies answers 500 to the request after one whose body
// broke off. In a bubble, the pause lets all that has happened be noticed.
func stumblesOverBrokenBodies(relay http.Handler) http.Handler {
	var mu sync.Mutex
	stumbling := false
	stumble := func(now bool) (before bool) {
		mu.Lock()
		defer mu.Unlock()
		before, stumbling = stumbling, now
		return before
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(io.LimitReader(r.Body, 1<<19))
		if err != nil {
			stumble(true)
			panic(http.ErrAbortHandler)
		}
		<-time.After(time.Millisecond)
		if stumble(false) {
			http.Error(w, "stumbled", http.StatusInternalServerError)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		relay.ServeHTTP(w, r)
	})
}

// stumblesOverLargeBodies answers 500 to the request after a large one.
func stumblesOverLargeBodies() brokenRelay {
	stumbling := false
	return brokenRelay{before: func(w http.ResponseWriter, p *post) bool {
		before := stumbling
		stumbling = len(p.body) == 1<<19
		return before && answer(w, http.StatusInternalServerError, "stumbled")
	}}
}
