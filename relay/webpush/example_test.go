package webpush_test

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/sealpush/sealpush/relay"
	"github.com/sealpush/sealpush/relay/webpush"
	"github.com/sealpush/sealpush/secret"
)

// A page posts what pushManager.subscribe returned, and gets the device token that it gives to a daemon.
func Example() {
	store := webpush.NewMemoryStore() // NewSQLStore, where a restart must lose nobody
	forwarder, err := webpush.New(webpush.GenerateKey(), "mailto:ops@example.com", store)
	if err != nil {
		log.Fatal(err)
	}
	defer forwarder.Close()
	sealed, err := relay.New(relay.WithForwarder(forwarder))
	if err != nil {
		log.Fatal(err)
	}
	defer sealed.Close()
	subscriptions, err := webpush.NewSubscriptions(forwarder, secret.New("of-the-operator-alone"))
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/relay", http.StripPrefix("/relay", sealed))
	mux.Handle("/subscriptions", subscriptions)
	mux.Handle("/subscriptions/", subscriptions)

	page := httptest.NewRequest(http.MethodPost, "/subscriptions", strings.NewReader(`{
		"endpoint": "https://fcm.googleapis.com/fcm/send/abc",
		"expirationTime": null,
		"keys": {
			"p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
			"auth": "BTBZMqHH6r4Tts7J_aSIgg"
		}
	}`))
	page.Header.Set("Authorization", "Bearer of-the-operator-alone")
	answer := httptest.NewRecorder()
	mux.ServeHTTP(answer, page)
	var phone struct{ DeviceToken, Secret string } // the daemon gets the token; the page keeps both
	if err := json.Unmarshal(answer.Body.Bytes(), &phone); err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Code, len(phone.DeviceToken), "hex digits")
	// Output: 201 64 hex digits
}
