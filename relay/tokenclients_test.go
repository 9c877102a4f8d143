package relay

import (
	"bytes"
	"crypto/pbkdf2"
	"crypto/sha256"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
)

func newTestTokenService(t *testing.T, opts ...TokenOption) *TokenService {
	t.Helper()
	service, err := NewTokenService(append(opts, WithIssuer("http://token.example"), WithAudience("http://relay.example"))...)
	if err != nil {
		t.Fatal(err)
	}
	return service
}

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
			service := newTestTokenService(t, tt.opts...)
			secret := service.AddClient("alice").Reveal()
			client := service.clients.byID["alice"]
			want, err := pbkdf2.Key(sha256.New, secret, client.salt[:], tt.rounds, sha256.Size)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(client.hash, want) {
				t.Error("the hash is not PBKDF2-SHA256 of the secret and the salt")
			}
			service.AddClient("bob")
			if client.salt == service.clients.byID["bob"].salt {
				t.Error("two clients share a salt")
			}
			if held := fmt.Sprintf("%+v %+v", service.clients, *client); strings.Contains(held, secret) || strings.Contains(held, secret[:32]) {
				t.Error("the secret is held in the clear")
			}
		})
	}
}

// 400 wrong credentials at once took both processors for 6 s. Now they are refused while the one hash that may be
// computed at a time is not to be had, which shows that none is computed for them.
func TestWrongCredentialsCostNoHash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		service := newTestTokenService(t, WithHashRounds(1))
		secret, other := service.AddClient("alice").Reveal(), service.AddClient("bob").Reveal()
		ask := func(id, secret string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			service.ServeHTTP(w, httptest.NewRequest("POST", "/token", strings.NewReader(fmt.Sprintf(`{"client_id":%q,"client_secret":%q}`, id, secret))))
			return w
		}
		service.clients.hashing <- struct{}{} // a hash that takes its time

		var wrong sync.WaitGroup
		for i := range 400 {
			wrong.Go(func() {
				guess := []string{"", "wrong", other, strings.Repeat("0", 64), secret[:63] + "x"}[i%5]
				if got := ask("alice", guess); got.Code != 401 {
					t.Errorf("%q answered %d", guess, got.Code)
				}
			})
		}
		wrong.Wait()

		// Those who know a secret wait for their turn, eight of one client.
		codes := make(chan int, 100)
		for range 20 {
			go func() {
				got := ask("alice", secret)
				if got.Code == 429 && got.Header().Get("Retry-After") != "1" {
					t.Errorf("429 with Retry-After %q", got.Header().Get("Retry-After"))
				}
				codes <- got.Code
			}()
		}
		synctest.Wait()
		for range 12 {
			if code := <-codes; code != 429 {
				t.Errorf("answered %d while 8 others wait", code)
			}
		}
		go func() { codes <- ask("bob", other).Code }()
		synctest.Wait()
		<-service.clients.hashing
		for range 8 + 1 {
			if code := <-codes; code != 200 {
				t.Errorf("answered %d in its turn", code)
			}
		}
	})
}
