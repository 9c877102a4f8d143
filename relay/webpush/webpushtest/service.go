package webpushtest

import (
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// maxMessage is the size of the largest message that a push service must take, in bytes (RFC 8030, section 7.2), and
// all that this one takes.
const maxMessage = 4096

// A Service is a push service on the loopback interface. It is safe for concurrent use.
type Service struct {
	// URL is the service's origin, such as https://127.0.0.1:4711.
	URL string

	server *httptest.Server

	mu       sync.Mutex
	browsers map[string]*browser // by path
	messages []Message
	awaited  int           // how many of the messages Await has returned
	arrived  chan struct{} // closed at the next message
	failing  int           // the status of every answer; 0 for none
}

// A browser is where the messages of one subscription end up.
type browser struct {
	private *ecdh.PrivateKey
	auth    []byte
	server  string // the VAPID key whose holder may push; "" until the first message
	gone    bool
}

// A Subscription is what a browser gives to a page. Its JSON is that of PushSubscription.toJSON().
type Subscription struct {
	Endpoint       string `json:"endpoint"`
	ExpirationTime *int64 `json:"expirationTime"` // Unix time in milliseconds; nil for never
	Keys           Keys   `json:"keys"`
}

// Keys are what messages to a subscription are encrypted with, in base64url without padding.
type Keys struct {
	P256DH string `json:"p256dh"` // public key of the browser, 65 bytes
	Auth   string `json:"auth"`   // authentication secret, 16 bytes
}

// A Message is one that a browser has opened.
type Message struct {
	Endpoint  string      // of the subscription
	Header    http.Header // of the POST, as it came
	TTL       time.Duration
	Urgency   string // very-low, low, normal or high
	Topic     string // at most 32 characters of base64url; "" for none
	VAPID     VAPID
	Plaintext []byte
}

// New starts a service that ends with the test.
func New(tb testing.TB) *Service {
	tb.Helper()
	s := &Service{browsers: map[string]*browser{}, arrived: make(chan struct{})}
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.server.EnableHTTP2 = true
	s.server.StartTLS()
	tb.Cleanup(s.server.Close)
	s.URL = s.server.URL
	return s
}

// Client returns an HTTP client that trusts the service.
func (s *Service) Client() *http.Client { return s.server.Client() }

// CertPool returns the certificates to trust for the service.
func (s *Service) CertPool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.server.Certificate())
	return pool
}

// Certificate returns the service's certificate in PEM, as for the file that SSL_CERT_FILE names to a process.
func (s *Service) Certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
}

// Subscribe makes a subscription of a new browser. The first sender that pushes to it is the only one that may (RFC
// 8292, section 4).
func (s *Service) Subscribe() Subscription {
	private, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		panic(err) // unreachable: crypto/rand does not fail
	}
	b := &browser{private: private, auth: make([]byte, authSize)}
	rand.Read(b.auth)
	path := "/push/" + rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.browsers[path] = b
	return Subscription{Endpoint: s.URL + path, Keys: Keys{
		P256DH: base64.RawURLEncoding.EncodeToString(private.PublicKey().Bytes()),
		Auth:   base64.RawURLEncoding.EncodeToString(b.auth),
	}}
}

// Gone ends a subscription: messages to it are answered 410 from now on.
func (s *Service) Gone(subscription Subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.browsers[strings.TrimPrefix(subscription.Endpoint, s.URL)]; b != nil {
		b.gone = true
	}
}

// Fail answers every message with a status from now on, with Retry-After: 7 where that is 429 or 503. Fail(0) ends it.
func (s *Service) Fail(status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failing = status
}

// Messages returns what browsers have opened so far, in the order of arrival.
func (s *Service) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Message(nil), s.messages...)
}

// Await returns the next message: the first call the first, and so on. It waits for one that has not arrived, until the
// context ends.
func (s *Service) Await(ctx context.Context) (Message, error) {
	for {
		s.mu.Lock()
		if s.awaited < len(s.messages) {
			s.awaited++
			message := s.messages[s.awaited-1]
			s.mu.Unlock()
			return message, nil
		}
		arrived := s.arrived
		s.mu.Unlock()
		select {
		case <-arrived:
		case <-ctx.Done():
			return Message{}, fmt.Errorf("webpushtest: no message arrived: %w", ctx.Err())
		}
	}
}

func (s *Service) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxMessage+1))
	if err != nil {
		http.Error(w, "the body could not be read", http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing != 0 {
		if s.failing == http.StatusTooManyRequests || s.failing == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "7")
		}
		http.Error(w, "as the test has asked for", s.failing)
		return
	}
	status, problem := s.take(r, body)
	if status != http.StatusCreated {
		http.Error(w, problem, status)
		return
	}
	w.Header().Set("Location", s.URL+"/message/"+rand.Text())
	w.WriteHeader(status)
}

// topicPattern is what RFC 8030, section 5.4, allows.
var topicPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{0,32}$`)

// take keeps a message, or says why it is refused.
func (s *Service) take(r *http.Request, body []byte) (status int, problem string) {
	b := s.browsers[r.URL.Path]
	switch {
	case b == nil:
		return http.StatusNotFound, "there is no such subscription"
	case r.Method != http.MethodPost:
		return http.StatusMethodNotAllowed, "messages are posted"
	case b.gone:
		return http.StatusGone, "the subscription has ended"
	case len(body) > maxMessage:
		return http.StatusRequestEntityTooLarge, "a message has at most 4096 bytes"
	case r.Header.Get("Content-Encoding") != "aes128gcm":
		return http.StatusBadRequest, "Content-Encoding must be aes128gcm"
	case !topicPattern.MatchString(r.Header.Get("Topic")):
		return http.StatusBadRequest, "Topic must be at most 32 characters of base64url"
	}
	ttl, err := strconv.ParseUint(r.Header.Get("TTL"), 10, 31)
	if err != nil {
		return http.StatusBadRequest, "TTL must be a number of seconds"
	}
	urgency := r.Header.Get("Urgency")
	switch urgency {
	case "":
		urgency = "normal"
	case "very-low", "low", "normal", "high":
	default:
		return http.StatusBadRequest, "Urgency must be very-low, low, normal or high"
	}
	if r.Header.Get("Authorization") == "" {
		return http.StatusUnauthorized, "VAPID is required"
	}
	vapid, err := checkVAPID(r.Header.Get("Authorization"), s.URL, time.Now())
	if err != nil {
		return http.StatusForbidden, err.Error()
	}
	if b.server == "" {
		b.server = vapid.PublicKey
	}
	if b.server != vapid.PublicKey {
		return http.StatusForbidden, "the subscription is for another VAPID key"
	}
	plaintext, err := open(b.private, b.auth, body)
	if err != nil {
		return http.StatusBadRequest, err.Error()
	}
	s.messages = append(s.messages, Message{
		Endpoint: s.URL + r.URL.Path, Header: r.Header.Clone(), TTL: time.Duration(ttl) * time.Second,
		Urgency: urgency, Topic: r.Header.Get("Topic"), VAPID: vapid, Plaintext: plaintext,
	})
	close(s.arrived)
	s.arrived = make(chan struct{})
	return http.StatusCreated, ""
}
