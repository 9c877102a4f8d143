package pairing_test

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/sealpush/sealpush/relayclient/pairing"
	"github.com/sealpush/sealpush/secret"
)

func Example() {
	dir, err := os.MkdirTemp("", "daemon")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	store, err := pairing.OpenFile(filepath.Join(dir, "devices.json"))
	if err != nil {
		log.Fatal(err)
	}
	registry, err := pairing.NewRegistry(store)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()

	// What a phone sends when it pairs.
	request, err := pairing.ParseRequest(strings.NewReader(`{
		"name": "parker-iphone", "platform": "ios",
		"publicKey": "B7WiMw5fZXrC7NEEsvpMejYHHtQEV+sX3/AninjK+Ss=",
		"pushToken": "c6a5387777330bdbd7210dff076ce2ef87b0b125ec1d7da0a6eb8c9ebd69fe29"
	}`))
	if err != nil {
		log.Fatal(err) // a *pairing.FieldError names the member that is wrong
	}
	device, created, err := registry.Pair(ctx, request, "parker")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("created:", created)
	fmt.Println("compare with the phone:", device.PublicKey.Fingerprint())

	// The path of an alert: who gets it, and the salt of its collapse id.
	to := registry.Recipients(ctx)
	fmt.Println("recipients:", len(to.Devices), "salt digits:", len(to.Salt.Reveal()))

	if err := registry.Revoke(ctx, device.ID); err != nil {
		log.Fatal(err)
	}
	devices, err := registry.Devices(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("paired:", len(devices))
	// Output:
	// created: true
	// compare with the phone: c28e-6b91-eb26
	// recipients: 1 salt digits: 32
	// paired: 0
}

func ExampleParseRequest() {
	_, err := pairing.ParseRequest(strings.NewReader(`{"name": "  ", "platform": "ios"}`))
	fmt.Println(err)
	// Output: pairing: name must be a non-empty string
}

// A link for an API that listens on an address of the network. PhoneAddresses refuses one that no phone can reach.
func ExampleLink() {
	addresses, err := pairing.PhoneAddresses("192.168.1.7:8787")
	if err != nil {
		log.Fatal(err)
	}
	link := pairing.Link{Name: "node-a", URL: "http://" + addresses[0], Token: secret.New("s3cret-token")}
	fmt.Println(link.JSON())
	text, err := link.At("https://relay.example/alerts") // to be shown as a QR code: see package qr
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(text)

	_, err = pairing.PhoneAddresses("127.0.0.1:8787")
	fmt.Println(err)
	// Output:
	// {"v":1,"name":"node-a","url":"http://192.168.1.7:8787","token":"s3cret-token"}
	// https://relay.example/pair#eyJ2IjoxLCJuYW1lIjoibm9kZS1hIiwidXJsIjoiaHR0cDovLzE5Mi4xNjguMS43Ojg3ODciLCJ0b2tlbiI6InMzY3JldC10b2tlbiJ9
	// pairing: the API listens on this machine only, so no phone can reach it: it listens on 127.0.0.1:8787
}

// requireToken lets requests through that carry the bearer token. It compares digests, in constant time, so that
// neither the token nor its length can be guessed from how long a refusal takes.
func requireToken(token string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		got := sha256.Sum256([]byte(given))
		if !ok || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "unauthorized", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// The handler has no authentication of its own: mount it behind yours.
func ExampleHandler() {
	dir, err := os.MkdirTemp("", "daemon")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	store, err := pairing.OpenFile(filepath.Join(dir, "devices.json"))
	if err != nil {
		log.Fatal(err)
	}
	registry, err := pairing.NewRegistry(store)
	if err != nil {
		log.Fatal(err)
	}
	sendTest := func(ctx context.Context, deviceID string) (status int, err error) {
		return http.StatusAccepted, nil // a daemon seals a test alert and posts it to its relay
	}
	// There is one token here, so its label is fixed; with several, look up the one in the request.
	caller := pairing.WithCaller(func(*http.Request) string { return "parker" })

	api, err := pairing.Handler(registry, sendTest, caller)
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/push/", requireToken("a long random token", api))
	server := httptest.NewServer(mux)
	defer server.Close()

	for _, authorization := range []string{"", "Bearer a long random token"} {
		req, err := http.NewRequest("GET", server.URL+"/push/devices", nil)
		if err != nil {
			log.Fatal(err)
		}
		req.Header.Set("Authorization", authorization)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			log.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(resp.StatusCode, strings.TrimSpace(string(body)))
	}
	// Output:
	// 401 unauthorized
	// 200 {"devices":[]}
}
