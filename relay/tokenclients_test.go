package relay

import (
	"bytes"
	"crypto/pbkdf2"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
)

// A client's secret is held as its PBKDF2-SHA256 hash alone, of 100 000 rounds unless a test wants fewer. No answer
// shows that, so it is looked at from inside.
func TestSecretsAreHeldHashed(t *testing.T) {
	for name, tt := range map[string]struct {
		opts   []TokenOption
		rounds int
	}{
		"as deployed": {nil, 100_000},
		"quick":       {[]TokenOption{WithHashRounds(7)}, 7},
	} {
		t.Run(name, func(t *testing.T) {
			service, err := NewTokenService(append(tt.opts, WithIssuer("http://token.example"), WithAudience("http://relay.example"))...)
			if err != nil {
				t.Fatal(err)
			}
			clients := service.clients
			clients.set("alice", "the secret", scopePush)
			clients.set("bob", "the secret", scopePush)
			alice, bob := clients.byID["alice"], clients.byID["bob"]
			want, err := pbkdf2.Key(sha256.New, "the secret", alice.salt[:], tt.rounds, sha256.Size)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(alice.hash, want) {
				t.Error("the hash is not PBKDF2-SHA256 of the secret and the salt")
			}
			if alice.salt == bob.salt || bytes.Equal(alice.hash, bob.hash) {
				t.Error("two clients share a salt")
			}
			if strings.Contains(fmt.Sprintf("%s", clients.byID), "the secret") {
				t.Error("the secret is held in the clear")
			}
		})
	}
}
