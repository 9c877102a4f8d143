package webpush

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sealpush/sealpush/internal/addresslimit"
	"github.com/sealpush/sealpush/internal/crossorigin"
	"github.com/sealpush/sealpush/internal/requestbody"
	"github.com/sealpush/sealpush/secret"
)

const (
	maxBody       = 8 << 10 // bytes
	minInvitation = 16      // characters

	// DefaultMaxSubscriptions is how many device tokens a relay keeps.
	DefaultMaxSubscriptions = 10_000

	// Each client address has a budget of requests a second, and subscribing takes that of several: an address
	// subscribes 6 times at once and then 6 times a minute.
	requestRate, requestBurst, subscribing = 1, 60, 10
)

// Subscriptions turn what a browser gives to a page into a device token, which daemons treat like any other. They are
// an [http.Handler], which an operator mounts at /subscriptions and /subscriptions/ of the relay's origin:
//
//	GET    /subscriptions          200 {"publicKey":"…"}: the relay's VAPID key
//	POST   /subscriptions          201 {"deviceToken":"…","secret":"…"}
//	POST   /subscriptions          200 {"deviceToken":"…"}, with a deviceToken in the request
//	DELETE /subscriptions/{token}  204
//
// What is posted is the JSON of PushSubscription.toJSON(), of at most 8 KiB. To subscribe, a page sends the relay's
// invitation as a bearer token. It gets a device token of 64 hex digits and a secret. That secret is the bearer token
// of later requests: with the device token as a member of the JSON, a POST puts another subscription in place of the
// old one, which browsers ask for now and then, and DELETE forgets the device token. A wrong secret and an unknown
// device token are both 404.
//
// The other answers are {"error":text}: 400 for JSON or keys that are wrong, 401 without the right invitation, 403 for
// a page of another site (see [WithOrigins]), 405, 408, 413, 422 for an endpoint that the [Forwarder] does not send to,
// 429 with Retry-After for an address that asks too often, 503 when the store cannot be reached, and 507 when it is
// full.
type Subscriptions struct {
	subscriptionsConfig
	forwarder      *Forwarder
	invitationHash string
	limiter        *addresslimit.Limiter
	handler        http.Handler
}

// subscriptionsConfig is what the options set.
type subscriptionsConfig struct {
	limit     int
	addressOf func(*http.Request) string
	origins   crossorigin.Origins
	logger    *slog.Logger // nil for slog.Default at the time of a line
}

// A SubscriptionsOption sets up [Subscriptions]. [NewSubscriptions] returns its error.
type SubscriptionsOption func(*subscriptionsConfig) error

// WithMaxSubscriptions sets how many device tokens are kept: [DefaultMaxSubscriptions] unless it is set.
func WithMaxSubscriptions(n int) SubscriptionsOption {
	return func(c *subscriptionsConfig) error {
		if n < 1 {
			return errors.New("webpush: WithMaxSubscriptions: at least one is needed")
		}
		c.limit = n
		return nil
	}
}

// WithOrigins lets pages of other origins than the relay's own subscribe: those of a page that is served elsewhere.
// Each origin is written as browsers write it, such as https://phone.example.com, and is compared byte by byte.
func WithOrigins(origins ...string) SubscriptionsOption {
	return func(c *subscriptionsConfig) (err error) {
		if c.origins, err = crossorigin.Parse(origins...); err != nil {
			return fmt.Errorf("webpush: WithOrigins: %w", err)
		}
		return nil
	}
}

// WithClientAddress sets the function that finds a client's address; requests are limited by it. The default is the
// address of the connection. Behind a proxy, the function should read a header that only the proxy can set. It is
// called by several goroutines at once.
func WithClientAddress(addressOf func(*http.Request) string) SubscriptionsOption {
	return func(c *subscriptionsConfig) error {
		if addressOf == nil {
			return errors.New("webpush: WithClientAddress: the function is nil")
		}
		c.addressOf = addressOf
		return nil
	}
}

// WithLogger logs what the store fails at, at Error. Without it, or when it is nil, that is logged to [slog.Default] at
// the time of each line.
func WithLogger(logger *slog.Logger) SubscriptionsOption {
	return func(c *subscriptionsConfig) error {
		c.logger = logger
		return nil
	}
}

// NewSubscriptions makes the handler for a forwarder, whose store, key and push services it uses. The invitation is a
// secret that a browser needs to subscribe. It must have at least 16 characters; use [rand.Text] to make one. The
// handler is safe for concurrent use.
func NewSubscriptions(forwarder *Forwarder, invitation secret.Text, opts ...SubscriptionsOption) (*Subscriptions, error) {
	switch {
	case forwarder == nil:
		return nil, errors.New("webpush: NewSubscriptions needs a forwarder")
	case len(invitation.Reveal()) < minInvitation || strings.ContainsFunc(invitation.Reveal(), func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, fmt.Errorf("webpush: the invitation must have at least %d characters, of ASCII and without spaces", minInvitation)
	}
	s := &Subscriptions{forwarder: forwarder, invitationHash: hashOf(invitation.Reveal()), subscriptionsConfig: subscriptionsConfig{limit: DefaultMaxSubscriptions}}
	for _, opt := range opts {
		if opt == nil {
			return nil, errors.New("webpush: an option is nil")
		}
		if err := opt(&s.subscriptionsConfig); err != nil {
			return nil, err
		}
	}
	s.limiter = addresslimit.New(requestRate, requestBurst, s.addressOf)
	s.handler = s.origins.Handler(http.HandlerFunc(s.serve), "GET, POST, DELETE",
		http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requestbody.CloseAfter(w, r)
			refuse(http.StatusForbidden, "a page of another site may not subscribe here").write(w)
		}))
	return s, nil
}

// Format prints nothing of the invitation, for every verb.
func (s *Subscriptions) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "Web Push subscriptions with %v", s.forwarder.key)
}

// ServeHTTP answers requests of pages.
func (s *Subscriptions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	s.handler.ServeHTTP(w, r)
}

// A reply is what is answered.
type reply struct {
	status     int
	allow      string        // of a 405
	retryAfter time.Duration // of a 429 and a 503
	bearer     bool          // of a 401

	PublicKey   string `json:"publicKey,omitempty"`
	DeviceToken string `json:"deviceToken,omitempty"`
	Secret      string `json:"secret,omitempty"`
	Error       string `json:"error,omitempty"`
}

func refuse(status int, problem string) *reply { return &reply{status: status, Error: problem} }

func (a *reply) write(w http.ResponseWriter) {
	if a.allow != "" {
		w.Header().Set("Allow", a.allow)
	}
	if a.bearer {
		w.Header().Set("WWW-Authenticate", `Bearer realm="subscriptions"`)
	}
	if a.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatFloat(math.Ceil(a.retryAfter.Seconds()), 'f', 0, 64))
	}
	if a.status == http.StatusNoContent {
		w.WriteHeader(a.status)
		return
	}
	body, err := json.Marshal(a)
	if err != nil {
		panic("webpush: " + err.Error()) // unreachable: strings
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(a.status)
	w.Write(body)
}

func (s *Subscriptions) serve(w http.ResponseWriter, r *http.Request) {
	answer := s.answer(w, r)
	if answer.status >= 400 {
		requestbody.CloseAfter(w, r) // the body may not have been read
	}
	answer.write(w)
}

func (s *Subscriptions) answer(w http.ResponseWriter, r *http.Request) *reply {
	device, one := strings.CutPrefix(r.URL.Path, "/subscriptions/")
	all := r.URL.Path == "/subscriptions"
	cost := 1
	if all && r.Method == http.MethodPost {
		cost = subscribing
	}
	if wait, ok := s.limiter.Allow(r, cost); !ok {
		answer := refuse(http.StatusTooManyRequests, "too many requests from this address")
		answer.retryAfter = wait
		return answer
	}
	switch {
	case all && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		return &reply{status: http.StatusOK, PublicKey: s.forwarder.key.PublicKey()}
	case all && r.Method == http.MethodPost:
		return s.post(w, r)
	case all:
		return &reply{status: http.StatusMethodNotAllowed, allow: "GET, HEAD, POST", Error: "method not allowed"}
	case one && r.Method == http.MethodDelete:
		return s.delete(r.Context(), bearerOf(r), device)
	case one:
		return &reply{status: http.StatusMethodNotAllowed, allow: "DELETE", Error: "method not allowed"}
	}
	return refuse(http.StatusNotFound, "there is nothing here: subscriptions are at /subscriptions")
}

// bearerOf returns the token of an Authorization header, "" if there is none.
func bearerOf(r *http.Request) string {
	scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " ")
	if !found || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// sameHash compares two hashes in a time that does not depend on where they differ.
func sameHash(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func (s *Subscriptions) post(w http.ResponseWriter, r *http.Request) *reply {
	bearer := bearerOf(r)
	invited := sameHash(hashOf(bearer), s.invitationHash)
	if !invited && len(bearer) != secretLength {
		return uninvited()
	}
	body, err := requestbody.Read(w, r, maxBody+1)
	switch {
	case errors.Is(err, requestbody.ErrTimeout):
		return refuse(http.StatusRequestTimeout, err.Error())
	case err != nil:
		return refuse(http.StatusBadRequest, "the body could not be read to its end")
	case len(body) > maxBody:
		return refuse(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is larger than %d bytes", maxBody))
	}
	var request struct {
		Endpoint    secret.Text `json:"endpoint"`
		DeviceToken *string     `json:"deviceToken"`
		Keys        struct {
			P256DH string      `json:"p256dh"`
			Auth   secret.Text `json:"auth"`
		} `json:"keys"`
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return refuse(http.StatusBadRequest, "the body must be the JSON of a PushSubscription")
	}
	subscription := Subscription{Endpoint: request.Endpoint, P256DH: request.Keys.P256DH, Auth: request.Keys.Auth}
	device := ""
	if request.DeviceToken == nil {
		if !invited {
			return uninvited()
		}
	} else {
		var refusal *reply
		if device, refusal = s.authenticate(r.Context(), bearer, *request.DeviceToken); refusal != nil {
			return refusal
		}
	}
	if err := subscription.checkKeys(); err != nil {
		return refuse(http.StatusBadRequest, err.Error())
	}
	if err := checkEndpoint(subscription.Endpoint.Reveal(), s.forwarder.services); err != nil {
		return refuse(http.StatusUnprocessableEntity, err.Error())
	}
	if request.DeviceToken == nil {
		return s.add(r.Context(), subscription)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), storeTimeout)
	defer cancel()
	if err := s.forwarder.store.Replace(ctx, device, subscription, time.Now()); err != nil {
		return s.failed(err)
	}
	return &reply{status: http.StatusOK, DeviceToken: strings.ToLower(*request.DeviceToken)}
}

// secretLength is the length of a secret: 32 bytes in base64url without padding.
const secretLength = 43

// add makes a device token and its secret. It does not end with the request: the page may have the answer when the
// connection breaks.
func (s *Subscriptions) add(ctx context.Context, subscription Subscription) *reply {
	var token, password [32]byte
	rand.Read(token[:])
	rand.Read(password[:])
	answer := &reply{
		status:      http.StatusCreated,
		DeviceToken: hex.EncodeToString(token[:]),
		Secret:      base64.RawURLEncoding.EncodeToString(password[:]),
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	err := s.forwarder.store.Add(ctx, Stored{
		Device:       DeviceKey(answer.DeviceToken),
		SecretHash:   hashOf(answer.Secret),
		Subscription: subscription,
		Updated:      time.Now(),
	}, s.limit)
	if err != nil {
		return s.failed(err)
	}
	return answer
}

// authenticate returns the store's key of a device token if the bearer has its secret.
func (s *Subscriptions) authenticate(ctx context.Context, bearer, deviceToken string) (device string, refusal *reply) {
	name, err := deviceName(deviceToken)
	if err != nil || len(bearer) != secretLength {
		return "", s.failed(ErrNotFound)
	}
	device = DeviceKey(name)
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	stored, err := s.forwarder.store.Get(ctx, device)
	if err == nil && !sameHash(hashOf(bearer), stored.SecretHash) {
		err = ErrNotFound
	}
	if err != nil {
		return "", s.failed(err)
	}
	return device, nil
}

func (s *Subscriptions) delete(ctx context.Context, bearer, deviceToken string) *reply {
	device, refusal := s.authenticate(ctx, bearer, deviceToken)
	if refusal != nil {
		return refusal
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if err := s.forwarder.store.Delete(ctx, device); err != nil {
		return s.failed(err)
	}
	return &reply{status: http.StatusNoContent}
}

func uninvited() *reply {
	return &reply{status: http.StatusUnauthorized, bearer: true,
		Error: "subscribing needs the relay's invitation: ask its operator for the link"}
}

// failed says what an error of the store means.
func (s *Subscriptions) failed(err error) *reply {
	switch {
	case errors.Is(err, ErrNotFound):
		return refuse(http.StatusNotFound, "there is no such subscription, or its secret is wrong: subscribe again")
	case errors.Is(err, ErrStoreFull):
		s.log().Warn("webpush: no room for another subscription", "limit", s.limit)
		return refuse(http.StatusInsufficientStorage, "the relay serves as many phones as it can")
	}
	s.log().Error("webpush: store not reached", "error", err)
	answer := refuse(http.StatusServiceUnavailable, "the relay cannot reach its store: try again")
	answer.retryAfter = 10 * time.Second
	return answer
}

func (s *Subscriptions) log() *slog.Logger {
	if s.logger == nil {
		return slog.Default()
	}
	return s.logger
}
