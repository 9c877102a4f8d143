package relaytest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"net/http"

	"github.com/sealpush/sealpush/payload"
	"github.com/sealpush/sealpush/relayclient/relaytest"
	"github.com/sealpush/sealpush/seal"
)

// The way of an alert, step by step. Package relayclient takes all of them.
func Example() {
	relay := relaytest.NewRelay()
	defer relay.Close()
	phone := relaytest.NewPhone()

	alert := payload.NewFailure("db1", "nightly-backup")
	alert.FailReason = "exit status 1"
	fitted, err := payload.Fit(alert, seal.X25519.MaxPlaintext(3000))
	if err != nil {
		log.Fatal(err)
	}
	ciphertext, err := seal.Seal(phone.PublicKey(), fitted.Plaintext)
	if err != nil {
		log.Fatal(err)
	}
	envelope, err := json.Marshal(map[string]any{
		"v":          1,
		"device":     phone.PushToken(),
		"ciphertext": ciphertext,
		"collapseId": alert.CollapseID(payload.NewSalt()),
		"priority":   "time-sensitive",
		"event":      false,
	})
	if err != nil {
		log.Fatal(err)
	}
	resp, err := relay.Client().Post(relay.URL, "application/json", bytes.NewReader(envelope))
	if err != nil {
		log.Fatal(err)
	}
	resp.Body.Close()
	fmt.Println("relay:", resp.Status)

	pages, err := phone.Received(relay)
	if err != nil {
		log.Fatal(err)
	}
	for _, page := range pages {
		fmt.Printf("phone: %s on %s: %s\n", page.Alert.Name, page.Alert.Host, page.Alert.FailReason)
	}
	seen := relay.Requests()[0].Body
	fmt.Println("the relay saw the job's name:", bytes.Contains(seen, []byte("nightly-backup")))
	// Output:
	// relay: 202 Accepted
	// phone: nightly-backup on db1: exit status 1
	// the relay saw the job's name: false
}

// A relay that is down for two requests.
func ExampleRelay_Script() {
	relay := relaytest.NewRelay()
	defer relay.Close()
	relay.Script(2, relaytest.Answer{Status: http.StatusServiceUnavailable, Body: "back soon"})

	for range 3 {
		resp, err := relay.Client().Post(relay.URL, "application/json", bytes.NewReader(nil))
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
		fmt.Println(resp.Status)
	}
	// Output:
	// 503 Service Unavailable
	// 503 Service Unavailable
	// 400 Bad Request
}
