package pushauth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/sealpush/sealpush/pushauth"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/secret"
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
		ClientSecret: secret.New("SHOWN-ONCE"),
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

// Wrong credentials are told apart, and not sent again for a minute.
func ExampleSource_Token() {
	service := relaytest.NewBridgeService() // in place of a token service
	defer service.Close()
	service.AddClient("bridge-home-office")
	source, err := pushauth.NewSource(pushauth.Credentials{
		TokenURL:     service.TokenURL,
		ClientID:     "bridge-home-office",
		ClientSecret: secret.New("mistyped"),
	})
	if err != nil {
		log.Fatal(err)
	}
	for range 2 {
		_, err := source.Token(context.Background())
		if errors.Is(err, pushauth.ErrInvalidClient) {
			fmt.Println("check client id and client secret")
		}
		if held, ok := errors.AsType[*pushauth.BackoffError](err); ok {
			fmt.Println("not asked again:", held.Err)
		}
	}
	fmt.Println(service.RequestCount(relaytest.EndpointToken), "request")
	// Output:
	// check client id and client secret
	// check client id and client secret
	// not asked again: pushauth: token service answered 401 Unauthorized: invalid_client (check client id and client secret)
	// 1 request
}

// The token service has changed its key: the relay refuses the old token, and the caller does not notice.
func ExampleTransport() {
	service := relaytest.NewBridgeService() // in place of a token service and a push relay
	defer service.Close()
	source, err := pushauth.NewSource(pushauth.Credentials{
		TokenURL:     service.TokenURL,
		ClientID:     "bridge-home-office",
		ClientSecret: service.AddClient("bridge-home-office"),
	}, pushauth.WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: &pushauth.Transport{Source: source}, Timeout: 20 * time.Second}
	push := func() {
		resp, err := client.Post(service.RelayURL+"/push", "application/json", strings.NewReader(`{"title":"Agent Name","body":"New activity"}`))
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
		fmt.Println(resp.StatusCode)
	}
	push()
	service.RotateKey()
	push()
	fmt.Println("requests to the relay:", service.RequestCount(relaytest.EndpointPush))
	fmt.Println("requests for a token:", service.RequestCount(relaytest.EndpointToken))
	// Output:
	// 200
	// 200
	// requests to the relay: 3
	// requests for a token: 2
}

// Credentials can be logged as they are.
func ExampleCredentials() {
	fmt.Printf("%+v\n", pushauth.Credentials{
		TokenURL:     "https://token.example",
		ClientID:     "bridge-home-office",
		ClientSecret: secret.New("hunter2"),
	})
	// Output: {TokenURL:https://token.example ClientID:bridge-home-office ClientSecret:[secret]}
}
