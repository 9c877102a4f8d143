package verify

import (
	"context"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/MicahParks/jwkset"
	"github.com/golang-jwt/jwt/v5"

	"github.com/sealpush/sealpush/internal/answer"
	"github.com/sealpush/sealpush/internal/clock"
)

const (
	fetchTimeout  = 5 * time.Second
	fetchInterval = 10 * time.Second // from the end of one fetch to the start of the next
	staleLifetime = 5 * time.Minute  // for which a set is used past its life while there is no newer one
	maxSetSize    = 256 << 10        // bytes
)

// keySet fetches the token service's JWK set and holds the last good one. The parsing of keys is jwkset's; when to
// fetch is decided here, because its client (and keyfunc, which wraps it) refreshes from a goroutine that runs for
// ever, reads bodies without a bound, drops a whole set for one bad key, and fails all but one of the callers that need
// the same fetch.
type keySet struct {
	url      string
	client   *http.Client
	logger   *slog.Logger
	lifetime time.Duration

	mu       sync.Mutex
	held     *heldKeys      // the last good set, nil before there is one
	idle     clock.Deadline // until when no other fetch is made
	err      error          // how the last fetch ended
	fetching chan struct{}  // closed at the end of the fetch in flight, nil without one
}

// heldKeys is one fetched set. Only its deadlines are ever replaced, by tests.
type heldKeys struct {
	byID    map[string][]jwt.VerificationKey // all keys of an id: RFC 7517 does not say that ids are unique
	expires clock.Deadline                   // when the set is to be fetched anew
	ends    clock.Deadline                   // when it is no longer used at all
}

// lookup returns a set that has keys of that id, from a new fetch if need be.
//
// A set past its life is used for [staleLifetime] more, while the next one is fetched: a token service that hangs holds
// up no request whose key is known.
func (s *keySet) lookup(ctx context.Context, kid string) (*heldKeys, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held.has(kid) && !s.held.ends.Reached() {
		if s.held.expires.Reached() {
			s.refresh(ctx)
		}
		return s.held, nil
	}
	err := s.await(ctx, s.refresh(ctx))
	switch {
	case s.held.has(kid) && !s.held.ends.Reached():
		return s.held, nil
	case err != nil:
		return nil, &keysError{err}
	case s.err != nil:
		return nil, &keysError{s.err}
	}
	return nil, errUnknownKey
}

// newer returns a set that was fetched after old, from a new fetch if the time has come for one. It returns nil if
// there is none.
func (s *keySet) newer(ctx context.Context, old *heldKeys) *heldKeys {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == old {
		s.await(ctx, s.refresh(ctx))
	}
	if s.held == old {
		return nil
	}
	return s.held
}

func (h *heldKeys) has(kid string) bool { return h != nil && len(h.byID[kid]) > 0 }

// await waits for done, if it is not nil, or the end of ctx, whose cause it returns. The caller holds the lock, which
// is free meanwhile.
func (s *keySet) await(ctx context.Context, done <-chan struct{}) error {
	if done == nil {
		return nil
	}
	s.mu.Unlock()
	defer s.mu.Lock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// refresh joins the fetch in flight or starts one, and returns what is closed at its end: nil if it is too early for
// another. The caller holds the lock.
func (s *keySet) refresh(ctx context.Context) <-chan struct{} {
	if s.fetching != nil {
		return s.fetching
	}
	if !s.idle.Reached() {
		return nil
	}
	done := make(chan struct{})
	s.fetching = done
	// Others may wait for this fetch when the caller that started it has gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchTimeout)
	go func() {
		defer close(done)
		defer cancel()
		s.store(s.fetch(ctx))
	}()
	return done
}

// store keeps what a fetch gave, or says why it gave nothing.
func (s *keySet) store(keys map[string][]jwt.VerificationKey, err error) {
	held := s.keep(keys, err)
	if err == nil {
		return
	}
	logger := s.logger // without the lock, because its handler may wait, or have a token verified
	if logger == nil {
		logger = slog.Default()
	}
	logger.Warn("cannot fetch the token service's keys", "error", err, "keys_held", held)
}

// keep returns how many ids the keys have that are in use from now on.
func (s *keySet) keep(keys map[string][]jwt.VerificationKey, err error) (held int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.fetching, s.idle, s.err = nil, clock.NewDeadline(now, fetchInterval), err
	if err == nil {
		s.held = &heldKeys{
			byID:    keys,
			expires: clock.NewDeadline(now, s.lifetime),
			ends:    clock.NewDeadline(now, s.lifetime+staleLifetime),
		}
	}
	if s.held == nil || s.held.ends.Reached() {
		return 0
	}
	return len(s.held.byID)
}

func (s *keySet) fetch(ctx context.Context) (map[string][]jwt.VerificationKey, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, errors.New("the URL is malformed")
	}
	req.Header.Set("Accept", "application/json")
	answer.NoCompression(req.Header)
	resp, err := s.client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the URL, which is part of the relay's configuration and not for its callers
		}
		return nil, answer.Error(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the token service answered %d", resp.StatusCode)
	}
	body, err := answer.Read(resp, maxSetSize)
	if err != nil {
		return nil, fmt.Errorf("the key set cannot be read: %w", answer.Error(err))
	}
	return parseKeys(body)
}

// parseKeys reads a JWK set. Keys that cannot verify an RS256 signature are left out (RFC 7517 section 5); a set in
// which nothing is left is an error, so that it does not replace a good one.
func parseKeys(body []byte) (map[string][]jwt.VerificationKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, errors.New("the key set is not JSON with a list of keys")
	}
	keys := make(map[string][]jwt.VerificationKey, len(set.Keys))
	for _, raw := range set.Keys {
		if kid, key := parseKey(raw); key != nil {
			keys[kid] = append(keys[kid], key)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("none of the key set's %d keys can verify RS256", len(set.Keys))
	}
	return keys, nil
}

// parseKey returns a nil key for one that must not verify a token.
func parseKey(raw json.RawMessage) (kid string, key *rsa.PublicKey) {
	jwk, err := jwkset.NewJWKFromRawJSON(raw, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{})
	if err != nil {
		return "", nil
	}
	key, isRSA := jwk.Key().(*rsa.PublicKey)
	if !isRSA {
		return "", nil
	}
	m, bits := jwk.Marshal(), key.N.BitLen()
	usable := m.KID != "" &&
		(m.ALG == "" || m.ALG == jwkset.AlgRS256) &&
		(m.USE == "" || m.USE == jwkset.UseSig) &&
		(len(m.KEYOPS) == 0 || slices.Contains(m.KEYOPS, jwkset.KeyOpsVerify)) &&
		bits >= MinKeyBits && bits <= MaxKeyBits
	if !usable {
		return "", nil
	}
	return m.KID, key
}
