package relay

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sealpush/sealpush/internal/addresslimit"
	"github.com/sealpush/sealpush/internal/crossorigin"
	"github.com/sealpush/sealpush/internal/requestbody"
)

// MaxMailboxMessage is the largest message that a mailbox takes, in bytes.
const MaxMailboxMessage = 8 << 10

const (
	mailboxLife = 10 * time.Minute
	mailboxWait = 25 * time.Second // for a message that has not come; most proxies allow 30 s or more

	// maxReaders is how many requests wait for one message at once. One phone and one program read it.
	maxReaders = 4

	// minOpenerSecret is in characters: as many as 128 bits take in base64. A longer secret is no better.
	minOpenerSecret, maxOpenerSecret = 22, 128

	// Each client address has a budget of requests a second, and opening a mailbox takes that of several: an address
	// opens 10 at once and then 10 a minute, so that it cannot have all of them.
	mailboxRate, mailboxBurst, mailboxOpening = 1, 60, 6
)

// Mailboxes let a phone pair with a program that it cannot reach: each leaves one message for the other
// (docs/protocol.md, "Pairing through the relay"). They are an [http.Handler], which an operator mounts at /mailboxes/
// of the relay's origin:
//
//	PUT    /mailboxes/{id}          201; 409 when there is one; 503 with Retry-After when there are too many
//	PUT    /mailboxes/{id}/request  204; 409 when there is a request
//	GET    /mailboxes/{id}/request  200 with the message, or 204 when none came within 25 s
//	PUT    /mailboxes/{id}/answer   204; 409 when there is an answer, or no request yet
//	GET    /mailboxes/{id}/answer   200 with the message, or 204 when none came within 25 s
//	DELETE /mailboxes/{id}          204
//
// An id is 32 random lower-case hexadecimal digits, chosen by the program that opens the mailbox. Anybody who knows it
// may leave the request and read the answer. Opening, reading the request, answering and deleting take a bearer token:
// the opener's own secret, of 22 to 128 characters, of which a hash is kept. A message is base64 of at most
// [MaxMailboxMessage] bytes; the relay cannot open what is sealed in it. Reading does not delete a message, so that it
// can be fetched again if the response was lost.
//
// Mailboxes are in memory, and each is gone ten minutes after it was opened. The other answers are {"error":text}: 400
// for a wrong message or secret, 401 for another secret than the opener's, 403 for a page of another site (see
// [WithMailboxOrigins]), 404 for an unknown mailbox, 405, 408, 413, and 429 with Retry-After for an address that asks
// too often (see [WithClientAddress]) or a message that four requests already wait for.
//
// Its server's WriteTimeout must be longer than 25 s.
type Mailboxes struct {
	config  mailboxConfig
	limiter *addresslimit.Limiter
	handler http.Handler
	closed  chan struct{}
	close   func()

	mu    sync.Mutex
	boxes map[string]*mailbox
}

// A mailbox has its messages guarded by the mutex of all mailboxes.
type mailbox struct {
	opener          [sha256.Size]byte // of the secret
	request, answer message
	gone            chan struct{} // closed when it is deleted
	expiry          *time.Timer
}

// A message comes once.
type message struct {
	text    string
	come    chan struct{} // closed when there is a text
	readers int
}

func (m *message) hasCome() bool {
	select {
	case <-m.come:
		return true
	default:
		return false
	}
}

// A MailboxOption sets up [Mailboxes]. [NewMailboxes] returns its error.
type MailboxOption func(*mailboxConfig) error

type mailboxConfig struct {
	origins   crossorigin.Origins
	max       int
	addressOf func(*http.Request) string
}

// WithMailboxOrigins lets pages of other origins than the relay's own use the mailboxes: those of a page that phones
// open and that is served elsewhere. Each origin is written as browsers write it, such as https://phone.example.com,
// and is compared byte by byte.
func WithMailboxOrigins(origins ...string) MailboxOption {
	return func(c *mailboxConfig) (err error) {
		if c.origins, err = crossorigin.Parse(origins...); err != nil {
			return fmt.Errorf("relay: WithMailboxOrigins: %w", err)
		}
		return nil
	}
}

// WithMaxMailboxes sets how many mailboxes there can be at once: 1000 unless it is set. Each takes up to 18 kB of
// memory.
func WithMaxMailboxes(n int) MailboxOption {
	return func(c *mailboxConfig) error {
		if n < 1 {
			return errors.New("relay: WithMaxMailboxes: at least one is needed")
		}
		c.max = n
		return nil
	}
}

// WithClientAddress sets the function that finds a client's address; requests are limited by it. The default is the
// address of the connection. Behind a proxy, the function should read a header that only the proxy can set. It is
// called by several goroutines at once.
func WithClientAddress(addressOf func(*http.Request) string) MailboxOption {
	return func(c *mailboxConfig) error {
		if addressOf == nil {
			return errors.New("relay: WithClientAddress needs a function")
		}
		c.addressOf = addressOf
		return nil
	}
}

// NewMailboxes makes mailboxes. They are safe for concurrent use.
func NewMailboxes(opts ...MailboxOption) (*Mailboxes, error) {
	c := mailboxConfig{max: 1000}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("relay: an option is nil")
		}
		if err := opt(&c); err != nil {
			return nil, err
		}
	}
	m := &Mailboxes{
		config:  c,
		limiter: addresslimit.New(mailboxRate, mailboxBurst, c.addressOf),
		closed:  make(chan struct{}),
		boxes:   map[string]*mailbox{},
	}
	m.close = sync.OnceFunc(m.shut)
	m.handler = c.origins.Handler(http.HandlerFunc(m.serve), "GET, PUT, DELETE",
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requestbody.CloseAfter(w, r)
			refuseMail(w, http.StatusForbidden, "a page of another site may not use the mailboxes")
		}))
	return m, nil
}

// ServeHTTP answers requests for mailboxes.
func (m *Mailboxes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	announceIdle(w, r)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	m.handler.ServeHTTP(w, r)
}

// Close deletes all mailboxes and answers those that wait. A server that shuts down waits for nobody when Close is
// given to its RegisterOnShutdown. Mailboxes that are closed open no more.
func (m *Mailboxes) Close() { m.close() }

func (m *Mailboxes) shut() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.closed)
	for _, box := range m.boxes {
		box.expiry.Stop()
	}
	clear(m.boxes)
}

// remove takes a mailbox away, unless it is gone already; the caller holds the mutex.
func (m *Mailboxes) remove(id string, box *mailbox) {
	if m.boxes[id] != box {
		return
	}
	delete(m.boxes, id)
	box.expiry.Stop()
	close(box.gone)
}

var mailboxPath = regexp.MustCompile(`^/mailboxes/([0-9a-f]{32})(/request|/answer)?$`)

func (m *Mailboxes) serve(w http.ResponseWriter, r *http.Request) {
	if r.ContentLength != 0 {
		requestbody.CloseAfter(w, r) // unless it is read, below
	}
	path := mailboxPath.FindStringSubmatch(r.URL.EscapedPath())
	cost := 1
	if path != nil && path[2] == "" && r.Method == http.MethodPut {
		cost = mailboxOpening
	}
	if wait, ok := m.limiter.Allow(r, cost); !ok {
		refuseMailUntil(w, http.StatusTooManyRequests, wait, "too many requests from this address")
		return
	}
	if path == nil {
		refuseMail(w, http.StatusNotFound, "there is nothing here: a mailbox is /mailboxes/ and 32 lower-case hexadecimal digits")
		return
	}
	id, part := path[1], path[2]
	switch {
	case part == "" && r.Method == http.MethodPut:
		m.open(w, r, id)
	case part == "" && r.Method == http.MethodDelete:
		m.delete(w, r, id)
	case part != "" && r.Method == http.MethodPut:
		m.leave(w, r, id, part)
	case part != "" && r.Method == http.MethodGet:
		m.fetch(w, r, id, part)
	default:
		allow := "DELETE, PUT"
		if part != "" {
			allow = "GET, PUT"
		}
		w.Header().Set("Allow", allow)
		refuseMail(w, http.StatusMethodNotAllowed, "method not allowed")
	}
}

func (m *Mailboxes) open(w http.ResponseWriter, r *http.Request, id string) {
	secret := bearerOf(r)
	if len(secret) < minOpenerSecret || len(secret) > maxOpenerSecret {
		refuseMail(w, http.StatusBadRequest, fmt.Sprintf("opening a mailbox needs a bearer token that the opener chooses at random, of %d to %d characters",
			minOpenerSecret, maxOpenerSecret))
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.closed:
		refuseMailUntil(w, http.StatusServiceUnavailable, time.Minute, "the relay is shutting down")
		return
	default:
	}
	if m.boxes[id] != nil {
		refuseMail(w, http.StatusConflict, "there is a mailbox with this id")
		return
	}
	if len(m.boxes) >= m.config.max {
		refuseMailUntil(w, http.StatusServiceUnavailable, time.Minute, "the relay has no room for another mailbox: each is deleted after ten minutes")
		return
	}
	box := &mailbox{opener: sha256.Sum256([]byte(secret)), gone: make(chan struct{})}
	box.request.come, box.answer.come = make(chan struct{}), make(chan struct{})
	box.expiry = time.AfterFunc(mailboxLife, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.remove(id, box)
	})
	m.boxes[id] = box
	w.WriteHeader(http.StatusCreated)
}

func (m *Mailboxes) delete(w http.ResponseWriter, r *http.Request, id string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	box := m.find(w, r, id, true)
	if box == nil {
		return
	}
	m.remove(id, box)
	w.WriteHeader(http.StatusNoContent)
}

// find returns the mailbox of an id, or answers that there is none, or that the request is not its opener's. The caller
// holds the mutex.
func (m *Mailboxes) find(w http.ResponseWriter, r *http.Request, id string, opener bool) *mailbox {
	box := m.boxes[id]
	if box == nil {
		refuseGone(w)
		return nil
	}
	sum := sha256.Sum256([]byte(bearerOf(r)))
	if opener && subtle.ConstantTimeCompare(sum[:], box.opener[:]) != 1 {
		w.Header().Set("WWW-Authenticate", `Bearer realm="mailbox"`)
		refuseMail(w, http.StatusUnauthorized, "this needs the secret with which the mailbox was opened")
		return nil
	}
	return box
}

// message returns one of a mailbox's messages. The request is written by anybody and read by the opener, the answer the
// other way round.
func (b *mailbox) message(part string) *message {
	if part == "/request" {
		return &b.request
	}
	return &b.answer
}

// room reports whether a message can be left, or answers why not; the caller holds the mutex.
func (m *Mailboxes) room(w http.ResponseWriter, r *http.Request, id, part string) *message {
	box := m.find(w, r, id, part == "/answer")
	switch {
	case box == nil:
		return nil
	case box.message(part).hasCome():
		refuseMail(w, http.StatusConflict, "there is a message already: a mailbox takes one")
		return nil
	case part == "/answer" && !box.request.hasCome():
		refuseMail(w, http.StatusConflict, "there is no request to answer yet")
		return nil
	}
	return box.message(part)
}

func (m *Mailboxes) leave(w http.ResponseWriter, r *http.Request, id, part string) {
	m.mu.Lock()
	room := m.room(w, r, id, part)
	m.mu.Unlock()
	if room == nil {
		return // before the body is read
	}
	body, err := requestbody.Read(w, r, MaxMailboxMessage+1)
	switch {
	case errors.Is(err, requestbody.ErrTimeout):
		refuseMail(w, http.StatusRequestTimeout, err.Error())
		return
	case err != nil:
		refuseMail(w, http.StatusBadRequest, "body not readable")
		return
	case len(body) > MaxMailboxMessage:
		refuseMail(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("a message is at most %d bytes", MaxMailboxMessage))
		return
	}
	w.Header().Del("Connection") // all of the body is read
	if !isBase64(body) {
		refuseMail(w, http.StatusBadRequest, "a message is base64, and nothing else")
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if room = m.room(w, r, id, part); room == nil {
		return // another one was faster, or the mailbox is gone
	}
	room.text = string(body)
	close(room.come)
	w.WriteHeader(http.StatusNoContent)
}

// isBase64 reports whether a text consists of base64's characters, so that whoever reads it is given nothing but those.
func isBase64(text []byte) bool {
	digits := strings.TrimRight(string(text), "=")
	return digits != "" && len(text)-len(digits) <= 2 && !strings.ContainsFunc(digits, func(r rune) bool {
		return (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '+' && r != '/'
	})
}

// fetch waits for a message.
func (m *Mailboxes) fetch(w http.ResponseWriter, r *http.Request, id, part string) {
	if r.ContentLength != 0 { // or its client could go without being noticed
		refuseMail(w, http.StatusBadRequest, "GET takes no body")
		return
	}
	m.mu.Lock()
	box := m.find(w, r, id, part == "/request")
	if box == nil {
		m.mu.Unlock()
		return
	}
	message := box.message(part)
	if message.readers >= maxReaders {
		m.mu.Unlock()
		refuseMailUntil(w, http.StatusTooManyRequests, mailboxWait, "others are waiting for this message already")
		return
	}
	message.readers++
	m.mu.Unlock()
	defer func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		message.readers--
	}()
	wait := time.NewTimer(mailboxWait)
	defer wait.Stop()
	select {
	case <-message.come:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		io.WriteString(w, message.text) // it does not change any more
	case <-m.closed:
		w.WriteHeader(http.StatusNoContent)
	case <-box.gone:
		refuseGone(w)
	case <-wait.C:
		w.WriteHeader(http.StatusNoContent)
	case <-r.Context().Done(): // the client has gone
		w.WriteHeader(http.StatusNoContent)
	}
}

// bearerOf is a request's bearer token, "" if it has none.
func bearerOf(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return token
}

func refuseGone(w http.ResponseWriter) {
	refuseMail(w, http.StatusNotFound, "there is no such mailbox: it was deleted, or its ten minutes are over")
}

func refuseMailUntil(w http.ResponseWriter, status int, wait time.Duration, problem string) {
	w.Header().Set("Retry-After", strconv.FormatFloat(math.Ceil(wait.Seconds()), 'f', 0, 64))
	refuseMail(w, status, problem)
}

func refuseMail(w http.ResponseWriter, status int, problem string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]string{"error": problem})
}
