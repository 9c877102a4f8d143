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

	"github.com/sealpush/sealpush/internal/answer"
	"github.com/sealpush/sealpush/internal/clock"
)

const (
	fetchTimeout  = 5 * time.Second
	fetchInterval = 10 * time.Second // from the end of one fetch to the start of the next
	maxSetSize    = 256 << 10        // bytes
)

// keySet is the token service's JWK set. The parsing of keys is jwkset's; when
// to fetch is decided here, because its client (and keyfunc, which wraps it)
// refreshes from a goroutine that runs for ever, reads bodies without a bound,
// drops a whole set for one bad key, and fails all but one of the callers that
// need the same fetch.
type keySet struct {
	url      string
	client   *http.Client
	logger   *slog.Logger
	lifetime time.Duration

	mu       sync.Mutex
	keys     map[string]*rsa.PublicKey // by kid; the last good set
	expires  clock.Deadline            // when keys is to be fetched anew, reached without keys
	idle     clock.Deadline            // until when no other fetch is made
	err      error                     // how it ended
	fetching chan struct{}             // closed at the end of the fetch in flight, nil without one
}

// lookup returns the key of that id, from a fetched set if need be.
func (s *keySet) lookup(ctx context.Context, kid string) (*rsa.PublicKey, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if key, ok := s.keys[kid]; ok && !s.expires.Reached() {
		return key, nil
	}
	var gaveUp error
	if fetched := s.refresh(ctx); fetched != nil {
		s.mu.Unlock()
		gaveUp = wait(ctx, fetched)
		s.mu.Lock()
	}
	if key, ok := s.keys[kid]; ok { // an old one too, when no newer set could be had
		return key, nil
	}
	if gaveUp != nil {
		return nil, &keysError{gaveUp}
	}
	if s.err != nil {
		return nil, &keysError{s.err}
	}
	return nil, errUnknownKey
}

func wait(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// refresh joins the fetch in flight or starts one, and returns what is closed at
// its end: nil if it is too early for another. The caller holds the lock.
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

func (s *keySet) store(keys map[string]*rsa.PublicKey, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.fetching, s.idle, s.err = nil, clock.NewDeadline(now, fetchInterval), err
	if err == nil {
		s.keys, s.expires = keys, clock.NewDeadline(now, s.lifetime)
		return
	}
	logger := s.logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.Warn("cannot fetch the token service's keys", "error", err, "keys_held", len(s.keys))
}

func (s *keySet) fetch(ctx context.Context) (map[string]*rsa.PublicKey, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return nil, errors.New("the URL is malformed")
	}
	req.Header.Set("Accept", "application/json")
	answer.NoCompression(req.Header)
	resp, err := s.client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // the URL is in the relay's configuration, and none of its callers' business
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

// parseKeys reads a JWK set. Keys that cannot verify an RS256 signature are
// left out (RFC 7517 section 5); a set in which nothing is left is an error, so
// that it does not replace a good one.
func parseKeys(body []byte) (map[string]*rsa.PublicKey, error) {
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(body, &set); err != nil {
		return nil, errors.New("the key set is not JSON with a list of keys")
	}
	keys := make(map[string]*rsa.PublicKey, len(set.Keys))
	for _, raw := range set.Keys {
		if kid, key := parseKey(raw); key != nil {
			keys[kid] = key
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
