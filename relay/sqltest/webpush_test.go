package sqltest_test

import (
	"crypto/rand"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/sealpush/sealpush/relay/webpush"
	"github.com/sealpush/sealpush/relay/webpush/storetest"
)

func openSubscriptions(t *testing.T, d database, dsn string) *webpush.SQLStore {
	t.Helper()
	db, _ := open(t, d, dsn)
	store, err := webpush.NewSQLStore(db, d.dialect)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func TestSubscriptionStores(t *testing.T) {
	for name, d := range databases {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) func(*testing.T) webpush.Store {
				dsn := d.newDSN(t)
				return func(t *testing.T) webpush.Store { return openSubscriptions(t, d, dsn) }
			})
		})
	}
}

// Relays that start together on an empty database have one key and one invitation,
// and have them again.
func TestOneKeyAndOneInvitation(t *testing.T) {
	for name, d := range databases {
		t.Run(name, func(t *testing.T) {
			dsn := d.newDSN(t)
			var mu sync.Mutex
			keys, invitations := map[string]bool{}, map[string]bool{}
			ask := func() {
				store := openSubscriptions(t, d, dsn)
				key, err := store.Key(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				invitation, err := store.Invitation(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				keys[key.Private().Reveal()], invitations[invitation.Reveal()] = true, true
			}
			var group sync.WaitGroup
			for range 4 {
				group.Go(ask)
			}
			group.Wait()
			ask()
			if len(keys) != 1 || len(invitations) != 1 {
				t.Errorf("%d keys and %d invitations", len(keys), len(invitations))
			}
			for invitation := range invitations {
				if len(invitation) < 26 {
					t.Errorf("the invitation has %d characters", len(invitation))
				}
			}
		})
	}
}

// What a page gets from one relay is good at another one that shares the database.
func TestSubscriptionOfAnotherRelay(t *testing.T) {
	const body = `{"endpoint":"https://fcm.googleapis.com/fcm/send/x","expirationTime":null,"keys":{"p256dh":` +
		`"BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4","auth":"BTBZMqHH6r4Tts7J_aSIgg"}`
	for name, d := range databases {
		t.Run(name, func(t *testing.T) {
			dsn := d.newDSN(t)
			serve := func(method, path, bearer, body string) (int, string) {
				t.Helper()
				store := openSubscriptions(t, d, dsn)
				key, err := store.Key(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				forwarder, err := webpush.New(key, "mailto:ops@example.com", store)
				if err != nil {
					t.Fatal(err)
				}
				invitation, err := store.Invitation(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if bearer == "" {
					bearer = invitation.Reveal()
				}
				handler, err := webpush.NewSubscriptions(forwarder, invitation)
				if err != nil {
					t.Fatal(err)
				}
				r := httptest.NewRequest(method, path, strings.NewReader(body))
				r.Header.Set("Authorization", "Bearer "+bearer)
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				return w.Code, w.Body.String()
			}
			status, answer := serve(http.MethodPost, "/subscriptions", "", body+"}")
			if status != http.StatusCreated {
				t.Fatalf("%d %s", status, answer)
			}
			parts := strings.Split(answer, `"`) // {"deviceToken":"…","secret":"…"}
			token, password := parts[3], parts[7]
			if status, answer := serve(http.MethodPost, "/subscriptions", password, body+`,"deviceToken":"`+token+`"}`); status != http.StatusOK {
				t.Errorf("another subscription: %d %s", status, answer)
			}
			if status, answer := serve(http.MethodDelete, "/subscriptions/"+token, password, ""); status != http.StatusNoContent {
				t.Errorf("delete: %d %s", status, answer)
			}
		})
	}
}

// A role that may use the tables and make none is enough, once the tables are there.
func TestSubscriptionTablesThatWereMadeBefore(t *testing.T) {
	d, dsn := databases["PostgreSQL"], newPostgresSchema(t)
	db, _ := open(t, d, dsn)
	owner := openSubscriptions(t, d, dsn)
	key, err := owner.Key(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	role := "user_" + strings.ToLower(rand.Text())
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	for _, statement := range []string{
		`CREATE ROLE ` + role, `GRANT ` + role + ` TO CURRENT_USER`, `GRANT USAGE ON SCHEMA ` + query.Get("search_path") + ` TO ` + role,
		`GRANT SELECT, INSERT, UPDATE, DELETE ON sealpush_relay_subscriptions, sealpush_relay_settings TO ` + role,
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		db.Exec(`DROP OWNED BY ` + role)
		db.Exec(`DROP ROLE ` + role)
	})
	query.Set("role", role)
	u.RawQuery = query.Encode()
	limited := openSubscriptions(t, d, u.String())
	again, err := limited.Key(t.Context())
	if err != nil || again.PublicKey() != key.PublicKey() {
		t.Errorf("the key: %v, %v", again, err)
	}
	if _, err := limited.Get(t.Context(), "nobody"); !errors.Is(err, webpush.ErrNotFound) {
		t.Errorf("a subscription: %v", err)
	}
}
