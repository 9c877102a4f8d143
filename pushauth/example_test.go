package pushauth_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/sealpush/sealpush/pushauth"
)

// Every request of the client carries a token; the token service is asked once.
func Example() {
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Println("token service:", r.Method, r.URL.Path)
		io.WriteString(w, `{"access_token":"the-token","token_type":"Bearer","expires_in":3600}`)
	}))
	defer tokens.Close()
	relay := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		fmt.Println("relay:", r.Method, r.URL.Path, r.Header.Get("Authorization"))
	}))
	defer relay.Close()

	source, err := pushauth.NewSource(pushauth.Credentials{
		TokenURL:     tokens.URL,
		ClientID:     "bridge-home-office",
		ClientSecret: "shown once, when the client was created",
	})
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: &pushauth.Transport{Source: source}, Timeout: 20 * time.Second}
	for _, path := range []string{"/push", "/push"} {
		resp, err := client.Post(relay.URL+path, "application/json", http.NoBody)
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
	}
	// Output:
	// token service: POST /token
	// relay: POST /push Bearer the-token
	// relay: POST /push Bearer the-token
}

// Credentials can be logged as they are.
func ExampleCredentials() {
	fmt.Printf("%+v\n", pushauth.Credentials{
		TokenURL:     "https://token.example",
		ClientID:     "bridge-home-office",
		ClientSecret: "hunter2",
	})
	// Output: pushauth.Credentials{ClientID: "bridge-home-office", ClientSecret: [redacted]}
}
