package sqltest_test

import (
	"context"
	"database/sql"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relay/webpush"
)

// What docs/self-host.md says to write.
func TestSelfHostGuide(t *testing.T) {
	t.Setenv("DATABASE_URL", newPostgresSchema(t))
	if err := useState(t, taker{}); err != nil {
		t.Fatal(err)
	}
}

type taker struct{}

func (taker) Device(token string) (string, error)           { return token, nil }
func (taker) Forward(context.Context, relay.Envelope) error { return nil }

func useState(t *testing.T, forwarder relay.Forwarder) error {
	db, err := sql.Open("pgx", os.Getenv("DATABASE_URL"))
	if err != nil {
		return err
	}
	defer db.Close()
	state, err := relay.NewSQLState(db, relay.PostgreSQL)
	if err != nil {
		return err
	}
	sealed, err := relay.New(relay.WithForwarder(forwarder), relay.WithState(state))
	if err != nil {
		return err
	}
	defer sealed.Close()

	for _, want := range []string{"forwarded", "coalesced"} {
		body := `{"v":1,"device":"8f3a1b5577990024","ciphertext":"` + strings.Repeat("A", 68) +
			`","collapseId":"93bc5d02dc2a24b5365347573b6f5115","priority":"passive","event":false}`
		w := httptest.NewRecorder()
		sealed.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("answered %d %s, want %s", w.Code, w.Body, want)
		}
	}
	return nil
}

func TestWebPushGuide(t *testing.T) {
	d := databases["SQLite"]
	db, _ := open(t, d, d.newDSN(t))
	mux := http.NewServeMux()
	if err := useBrowsers(t.Context(), db, mux); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/subscriptions", nil))
	if !strings.Contains(w.Body.String(), `"publicKey":"B`) {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
}

func useBrowsers(ctx context.Context, db *sql.DB, mux *http.ServeMux) error {
	store, err := webpush.NewSQLStore(db, relay.SQLite)
	if err != nil {
		return err
	}
	key, err := store.Key(ctx) // generated on first use and stored
	if err != nil {
		return err
	}
	forwarder, err := webpush.New(key, "mailto:ops@example.com", store)
	if err != nil {
		return err
	}
	defer forwarder.Close()
	invitation, err := store.Invitation(ctx) // what a browser needs to subscribe
	if err != nil {
		return err
	}
	subscriptions, err := webpush.NewSubscriptions(forwarder, invitation)
	if err != nil {
		return err
	}
	mux.Handle("/subscriptions", subscriptions)
	mux.Handle("/subscriptions/", subscriptions)
	return nil
}
