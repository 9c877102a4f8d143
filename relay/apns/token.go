package apns

import (
	"fmt"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// refreshAfter is how old a provider token may get. Apple refuses one of more than an hour, and a new one within 20
// minutes of the last.
const refreshAfter = 40 * time.Minute

// A tokenSource makes provider tokens and keeps the latest. It is safe for concurrent use.
type tokenSource struct {
	key *Key

	mu     sync.Mutex
	signed string
	issued time.Time
}

// token returns the provider token to use at now.
func (s *tokenSource) token(now time.Time) (string, error) {
	// By the wall clock, which is Apple's too: the monotonic one stands still while the machine sleeps.
	now = now.Round(0)
	s.mu.Lock()
	defer s.mu.Unlock()
	if age := now.Sub(s.issued); s.signed != "" && age >= 0 && age < refreshAfter {
		return s.signed, nil
	}
	token := jwt.NewWithClaims(jwt.SigningMethodES256, jwt.MapClaims{"iss": s.key.team, "iat": now.Unix()})
	token.Header["kid"] = s.key.id
	signed, err := token.SignedString(s.key.private())
	if err != nil {
		return "", fmt.Errorf("apns: provider token: %w", err)
	}
	s.signed, s.issued = signed, now
	return signed, nil
}
