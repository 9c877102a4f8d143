package relaytest

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Always scripts an [Answer] for every request from now on.
const Always = -1

// An Answer tells a server of this package what to do with a request instead of its ordinary work, or before it. Its
// parts take place in this order, each only if it is set:
//
//	Delay  wait that long
//	Hold   wait until that channel is closed
//	Drop   close the connection without an answer
//	Status answer with this status, Header and Body; zero: go on as usual
//
// Both waits end with the request and with the server's Close. A server does nothing with a request that Answer has
// answered, except to record it.
type Answer struct {
	Delay  time.Duration
	Hold   <-chan struct{}
	Drop   bool
	Status int // 200 to 599
	Header http.Header
	Body   string
}

// script holds the answers that a server was told to give. It is safe for concurrent use; its zero value is empty.
type script struct {
	mu    sync.Mutex
	lines map[string][]scriptLine // in order, by what they are for; "" is for any request
}

type scriptLine struct {
	answer Answer
	left   int // negative: without end
}

// add lines up an answer for the next requests with that key.
func (s *script) add(key string, times int, a Answer) {
	if a.Status != 0 && (a.Status < 200 || a.Status > 599) {
		panic(fmt.Sprintf("relaytest: cannot script status %d, want 200 to 599", a.Status))
	}
	if times == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines == nil {
		s.lines = make(map[string][]scriptLine)
	}
	s.lines[key] = append(s.lines[key], scriptLine{a, times})
}

// clear forgets what was lined up.
func (s *script) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.lines)
}

// next takes the answer for a request: the first for its key or, if there is none, the first for any request.
func (s *script) next(key string) (Answer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range slices.Compact([]string{key, ""}) {
		lines := s.lines[k]
		if len(lines) == 0 {
			continue
		}
		answer := lines[0].answer
		if lines[0].left > 0 {
			lines[0].left--
		}
		if lines[0].left == 0 {
			s.lines[k] = lines[1:]
		}
		return answer, true
	}
	return Answer{}, false
}

// play does what was scripted for a request with that key and reports whether the request has its answer. Waits end
// when closing does.
func (s *script) play(closing <-chan struct{}, key string, w http.ResponseWriter, r *http.Request) (answered bool) {
	answer, ok := s.next(key)
	if !ok {
		return false
	}
	if !answer.wait(closing, r.Context().Done()) || answer.Drop {
		panic(http.ErrAbortHandler) // how a handler closes its connection
	}
	if answer.Status == 0 {
		return false
	}
	maps.Copy(w.Header(), answer.Header)
	w.WriteHeader(answer.Status)
	io.WriteString(w, answer.Body)
	return true
}

// wait reports whether Delay and Hold passed before either channel closed.
func (a Answer) wait(closing, request <-chan struct{}) bool {
	if a.Delay > 0 {
		timer := time.NewTimer(a.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-closing:
			return false
		case <-request:
			return false
		}
	}
	if a.Hold != nil {
		select {
		case <-a.Hold:
		case <-closing:
			return false
		case <-request:
			return false
		}
	}
	return true
}
