package relayclient

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/seal"
)

// How long a ciphertext may be, in characters (live protocol, "Size budget").
const (
	ciphertextFloor   = 3000 // what every relay takes
	ciphertextCeiling = 3800 // what a push message has room for
)

// WithMaxCiphertext lets a ciphertext have up to n characters, from 3000, which is the default and what every relay
// takes, to 3800. More characters leave more of a long alert: 2802 bytes instead of 2202 for a phone with a key of
// suite x25519, 1714 instead of 1114 for one of suite xwing.
//
// A relay may take less than n. To one that answers 400 and names the ciphertext, the alert is fitted to 3000
// characters and posted once more, and for an hour alerts are fitted to 3000 at once.
func WithMaxCiphertext(n int) Option {
	return func(c *config) error {
		if n < ciphertextFloor || n > ciphertextCeiling {
			return fmt.Errorf("relayclient: WithMaxCiphertext: %d: must be %d to %d", n, ciphertextFloor, ciphertextCeiling)
		}
		c.maxCiphertext = n
		return nil
	}
}

// fits has an alert fitted to each budget of a Send, in bytes of plaintext. Each is fitted when it is first asked for.
type fits map[int]func() (payload.Fitted, error)

// prepare makes room for a suite's budget under a limit of the ciphertext.
func (f fits) prepare(alert payload.Alert, suite seal.Suite, limit int) {
	budget := suite.MaxPlaintext(limit)
	if f[budget] == nil {
		f[budget] = sync.OnceValues(func() (payload.Fitted, error) { return payload.Fit(alert, budget) })
	}
}

// to returns the alert as fitted to a budget that was prepared.
func (f fits) to(suite seal.Suite, limit int) (payload.Fitted, error) {
	return f[suite.MaxPlaintext(limit)]()
}

// suitesOf returns the suites of the devices' keys, each once. Without a usable key among them it is X25519, so that an
// alert is checked in any case.
func suitesOf(devices []pairing.Device) []seal.Suite {
	var suites []seal.Suite
	for _, device := range devices {
		if suite := device.PublicKey.Suite(); suite != "" && device.Unusable == nil && !slices.Contains(suites, suite) {
			suites = append(suites, suite)
		}
	}
	if suites == nil {
		return []seal.Suite{seal.X25519}
	}
	return suites
}

// exceedsFloor reports whether the ciphertext of a plaintext is longer than what every relay takes.
func exceedsFloor(suite seal.Suite, plaintext []byte) bool {
	return base64.StdEncoding.EncodedLen(len(plaintext)+suite.Overhead()) > ciphertextFloor
}

// floorFor is how long alerts are fitted to the floor after a relay refused more.
const floorFor = time.Hour

// A shortRelay remembers that the relay refused a ciphertext for its length. Its zero value remembers nothing. It is
// safe for concurrent use.
type shortRelay struct {
	mu    sync.Mutex
	until time.Time
	noted bool
}

// remembered reports whether the relay refused a ciphertext within the last hour.
func (s *shortRelay) remembered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.until)
}

// note remembers a refusal and reports whether it is the first.
func (s *shortRelay) note() (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first = !s.noted
	s.noted, s.until = true, time.Now().Add(floorFor)
	return first
}

// namesCiphertext reports whether the word is among the first 512 characters of the body of a 400 (live protocol, "Size
// budget").
func namesCiphertext(body []byte) bool {
	end := 0
	for range 512 {
		_, size := utf8.DecodeRune(body[end:]) // 1 for a byte that is not UTF-8, 0 at the end
		end += size
	}
	return bytes.Contains(body[:end], []byte("ciphertext"))
}
