package relaytest_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"

	"github.com/sealpush/sealpush/relayclient/relaytest"
)

// What a bridge says on the wire, from its secret to a push.
func ExampleBridgeService() {
	service := relaytest.NewBridgeService()
	defer service.Close()
	secret := service.AddClient("bridge-home-office").Reveal()

	post := func(url, bearer, body string) []byte {
		req, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			log.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+bearer)
		resp, err := service.Client().Do(req)
		if err != nil {
			log.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			log.Fatal(err)
		}
		return answer
	}

	var token struct {
		Value string `json:"access_token"`
	}
	answer := post(service.TokenURL+"/token", "", `{"client_id":"bridge-home-office","client_secret":"`+secret+`"}`)
	if err := json.Unmarshal(answer, &token); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s", post(service.RelayURL+"/register", token.Value, `{"device_token":"test-token","platform":"ios"}`))
	fmt.Printf("%s", post(service.RelayURL+"/push", token.Value, `{"title":"Test","body":"Push relay is working"}`))

	for _, push := range service.Pushes("bridge-home-office") {
		fmt.Println(push.Title, push.Results)
	}
	// Output:
	// {"ok":true,"message":"Device registered"}
	// {"ok":true,"results":[{"platform":"ios","status":"sent"}]}
	// Test [{ios sent }]
}

// A relay that is down for a while, and a device whose app was deleted.
func ExampleBridgeService_Script() {
	service := relaytest.NewBridgeService()
	defer service.Close()

	service.Script(relaytest.EndpointPush, 1, relaytest.Answer{Status: http.StatusBadGateway, Body: "down for a while"})
	service.KillDevice("test-token")

	token := service.Token("bridge-home-office")
	for _, call := range []struct{ path, body string }{
		{"/register", `{"device_token":"test-token","platform":"android"}`},
		{"/push", `{"title":"Agent","body":"New activity"}`},
		{"/push", `{"title":"Agent","body":"New activity"}`},
	} {
		req, err := http.NewRequest(http.MethodPost, service.RelayURL+call.path, strings.NewReader(call.body))
		if err != nil {
			log.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := service.Client().Do(req)
		if err != nil {
			log.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			log.Fatal(err)
		}
		resp.Body.Close()
		fmt.Printf("%d %s\n", resp.StatusCode, strings.TrimSpace(string(body)))
	}
	fmt.Println(len(service.Devices("bridge-home-office")), "devices left,", service.RequestCount(relaytest.EndpointPush), "requests to push")
	// Output:
	// 200 {"ok":true,"message":"Device registered"}
	// 502 down for a while
	// 200 {"ok":true,"results":[{"platform":"android","status":"removed","reason":"UNREGISTERED"}]}
	// 0 devices left, 2 requests to push
}
